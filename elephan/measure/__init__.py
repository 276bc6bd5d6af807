"""One path test now: the reflector it goes to, the test itself, its outcome in words."""

"""Path tests where the truth is known."""

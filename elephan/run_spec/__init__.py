"""The specification of one run as Python sees it: types and defaults, both generated from the crate spec."""

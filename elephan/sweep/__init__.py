"""Sweeps: a scenario becomes points (`grid`), and points become records (`executor`)."""

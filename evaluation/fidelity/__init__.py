"""Evaluate the simulator's fidelity: against formulas, against ns-2, against measurements of the Linux kernel.

`reference.toml` holds the grids, the numbers of others with where they come from, and the tolerances; `make fidelity`
(this package) writes docs/results/fidelity.md from it, tests/evaluation holds a quick part of it in every test run.
"""

"""How true the simulator is: against formulas, against ns-2, against what the Linux kernel was measured to do.

`reference.toml` holds the grids, the numbers of others with where they come from, and the tolerances; `make fidelity`
(this package) writes docs/results/fidelity.md from it, tests/evaluation holds a quick part of it in every test run.
"""

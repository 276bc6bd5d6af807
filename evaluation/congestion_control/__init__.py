"""Evaluate each congestion control: its response to loss beside the published one, and its sharing of a line.

`congestion_controls.toml` holds the congestion controls, what is published of each, the grids and the tolerances; `make
cc` (this package) writes docs/results/congestion-control.md and docs/img/response.png from it, tests/evaluation holds a
quick part of it in every test run.
"""

"""Fibre Channel over distance, by simulation: `python -m evaluation.gateways` writes docs/results/gateways.md."""

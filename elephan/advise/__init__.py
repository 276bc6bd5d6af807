"""Advice on a path: measured, fitted to a scenario, simulated with candidates; one is proposed with reasons."""

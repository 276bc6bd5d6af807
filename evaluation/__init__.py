"""Harnesses that measure elephan: performance, fidelity, congestion controls, detection of elephants, mitigations of
moves, and the claims of papers. `runner.py` runs and stores what they simulate; `papers/` is for `elephan paper`."""

"""Evaluation of elephan: performance, fidelity, congestion controls, detection of elephants, mitigations of moves."""

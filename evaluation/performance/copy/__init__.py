"""Copies over long paths, by elephan and by the programs that people use: `python -m evaluation.performance.copy`."""

"""Advice for a copy over a path: facts of the path, candidates simulated on it, one proposed with reasons."""

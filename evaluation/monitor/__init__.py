"""Costs of a monitor: space and time of its store, memory and processor time of its process."""

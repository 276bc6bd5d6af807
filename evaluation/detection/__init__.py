"""Evaluate how well the manager of a hybrid network tells elephants from mice, by sampling rate and flow table size."""

"""Limits of the TCP flows that are there, watched without load, and the effect of other settings on them."""

from elephan.diagnose.watching import Selection, Watched, watch

__all__ = ["Selection", "Watched", "watch"]

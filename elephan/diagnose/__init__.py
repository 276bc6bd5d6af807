"""What limits the TCP flows that are there, watched without load, and what other settings would give them."""

from elephan.diagnose.watching import Selection, Watched, watch

__all__ = ["Selection", "Watched", "watch"]

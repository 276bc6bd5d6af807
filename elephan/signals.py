"""The signals that tell a program to end: a terminal's Ctrl-C, kill(1) and a closed terminal."""

from __future__ import annotations

import signal

END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

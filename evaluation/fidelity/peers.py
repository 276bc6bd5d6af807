"""Goodput of dumbbells in ns-2, each in a process of its own."""

from __future__ import annotations

import json
import subprocess

from evaluation.performance import engines
from evaluation.performance.dumbbell import NS_PER_S, PAYLOAD_BYTES, Dumbbell


def ns2_goodput(bell: Dumbbell) -> float:
    """Return ns-2's goodput over the whole run, bit/s of payload acknowledged."""
    command = engines.ns2_command(bell, mark_s=bell.duration_ns / NS_PER_S)
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=engines.ROOT)
    marks = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    delivered: int = marks[-1]["delivered_packets"]
    simulated_s: float = marks[-1]["simulated_s"]
    return delivered * 8 * PAYLOAD_BYTES / simulated_s

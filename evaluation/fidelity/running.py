"""Runs dumbbells on elephan's core and on ns-2, on all cores, in the order given."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from evaluation.performance import engines
from evaluation.performance.dumbbell import NS_PER_S, PAYLOAD_BYTES, Dumbbell, run_spec


def simulate_spec(spec: dict[str, Any]) -> Any:
    """Return what elephan's core makes of a specification: metrics, flows, links, series."""
    from elephan import _native

    return _native.simulate(json.dumps(spec), None, 1.0)


def simulate(bell: Dumbbell) -> dict[str, Any]:
    """Return the metrics of one run of elephan's core."""
    return dict(simulate_spec(run_spec(bell)).metrics)


def simulate_all(bells: Iterable[Dumbbell]) -> list[dict[str, Any]]:
    """Run many; the core releases the GIL, so threads suffice."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(simulate, bells))


def ns2_goodput(bell: Dumbbell) -> float:
    """Return ns-2's goodput over the whole run, bit/s of payload acknowledged."""
    command = engines.ns2_command(bell, mark_s=bell.duration_ns / NS_PER_S)
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=engines.ROOT)
    marks = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return marks[-1]["delivered_packets"] * 8 * PAYLOAD_BYTES / marks[-1]["simulated_s"]


def ns2_goodputs(bells: Sequence[Dumbbell]) -> list[float]:
    """Run many; each is a process of its own."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(ns2_goodput, bells))

"""Results of the kernel backend, a line of JSON per run, appended as each ends: an interrupted evaluation goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parent / "measured.jsonl"

KEPT = (
    "goodput_bps",
    "jain_index",
    "retransmitted_segments",
    "timeouts",
    "rtt_mean_s",
    "emulator_late_p99_s",
    "emulator_own_drops",
    "emulator_cpu_share",
)
"""Metrics of a run that are kept."""


def load(file: Path = FILE) -> dict[str, dict[str, Any]]:
    """Return the runs by key. One that was measured again counts as it was last."""
    if not file.exists():
        return {}
    lines = (json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())
    return {line["key"]: line for line in lines}


def append(run: dict[str, Any], file: Path = FILE) -> None:
    """Add one run, whole or not at all."""
    with file.open("a", encoding="utf-8") as out:
        out.write(json.dumps(run, sort_keys=True) + "\n")
        out.flush()
        os.fsync(out.fileno())


def honoured(run: dict[str, Any]) -> bool:
    """Return True if the emulator followed the scenario."""
    return not run["faults"]


def kept(key: str, cell: tuple[str, ...], seed: int, record: Any) -> dict[str, Any]:
    """Return the line of one record."""
    return {
        "key": key,
        "cell": list(cell),
        "seed": seed,
        "windows": None,
        "metrics": {name: record.metrics[name] for name in KEPT if record.metrics.get(name) is not None},
        "flow_goodput_bps": [flow.get("goodput_bps") for flow in record.flows],
        "faults": [note for note in record.notes if note.startswith("EMULATOR:")],
        # The suffix of a distributor or of a machine's owner does not matter here.
        "kernel": ".".join(record.host["kernel"].split(".")[:2]),
        "version": record.version,
        "date": record.created[:10],
    }


def kernels(runs: Iterable[dict[str, Any]]) -> str:
    """Name the kernels that the runs were made on."""
    return ", ".join(sorted({run["kernel"] for run in runs}))

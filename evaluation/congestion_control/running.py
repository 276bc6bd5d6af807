"""Runs cells on all cores and keeps each one's numbers, so that a second `make cc` runs only what has changed.

A kept cell is found by what went in: its spec, what is measured of it, and the sources that it ran through. A changed
algorithm makes its own cells run again, a changed transport all of them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from evaluation.congestion_control import measuring
from evaluation.congestion_control.cases import Cell

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "out" / "congestion_controls"
CORES = ("units", "congestion", "link", "tcp", "wire", "storage", "sim", "te", "experiment", "python")


@cache
def digest_of(*files: Path) -> str:
    """Return the SHA-256 over files, with their names."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()


@cache
def simulator_digest() -> str:
    """Return the digest of everything but the algorithms: the crates' sources and what is measured."""
    files = [file for crate in CORES for file in (ROOT / "crates" / crate / "src").rglob("*") if file.is_file()]
    files += [ROOT / "Cargo.lock", Path(measuring.__file__), ROOT / "congestion" / "cc.h"]
    files += (ROOT / "congestion" / "native").iterdir()
    return digest_of(*sorted(files))


def key_of(cell: Cell) -> str:
    """Return the name under which a cell is kept."""
    names = sorted({flow["transport"]["congestion_control"] for flow in cell.spec["flows"]})
    parts = [
        simulator_digest(),
        *(digest_of(ROOT / "congestion" / f"{name}.c") for name in names),
        json.dumps([cell.kind, cell.spec, cell.options], sort_keys=True),
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def run(
    cells: Sequence[Cell], ended: Callable[[Cell], None] | None = None, *, keep: bool = True, again: bool = False
) -> list[dict[str, Any]]:
    """Return the numbers of each cell, in order; those that are kept are run only `again`."""

    def one(cell: Cell) -> dict[str, Any]:
        file = KEPT / f"{key_of(cell)}.json"
        if keep and not again and file.exists():
            numbers: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        else:
            numbers = measuring.measure(cell.kind, cell.spec, cell.options)
            if keep:
                file.parent.mkdir(parents=True, exist_ok=True)
                part = file.with_suffix(f".{os.getpid()}.part")
                part.write_text(json.dumps(numbers), encoding="utf-8")
                part.replace(file)
        if ended is not None:
            ended(cell)
        return numbers

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(one, cells))

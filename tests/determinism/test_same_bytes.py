"""Same scenario, seed and version: same bytes for every user and machine (invariant 3 of ARCHITECTURE.md).

`Record.reproducible` leaves out the machine's part: host, date, processor time, and the places of files.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import elephan
from elephan.record import canonical_json
from elephan.store import open_store

SCENARIO = Path(__file__).parent / "golden" / "random.toml"
"""Every source of randomness at once: loss on both ways, RED, hashing, jitter, other traffic; what changes in time."""

RUNS = 8

COMMAND = [sys.executable, "-c", "from elephan.cli import main; main()"]
"""`elephan` with the interpreter of the tests."""


def records_of(store: Path) -> dict[str, str]:
    """Return the reproducible part of each stored run's record, as text, by id."""
    found = open_store(str(store)).list()
    assert len(found) == RUNS
    return {record.id: canonical_json(record.reproducible()) for record in found}


def parquet_of(store: Path) -> dict[str, bytes]:
    """Return the series as they lie on the disk, by file name."""
    found = {path.name: path.read_bytes() for path in store.with_suffix(".series").rglob("*.parquet")}
    assert len(found) == 2 * RUNS
    return found


def test_twice_in_one_process(tmp_path: Path) -> None:
    stores = [tmp_path / "first.sqlite", tmp_path / "second.sqlite"]
    for store in stores:
        elephan.run(SCENARIO, store=str(store))
    assert records_of(stores[0]) == records_of(stores[1])
    assert parquet_of(stores[0]) == parquet_of(stores[1])


def test_with_one_worker_and_with_two(tmp_path: Path) -> None:
    stores = {workers: tmp_path / f"{workers}.sqlite" for workers in (1, 2)}
    for workers, store in stores.items():
        elephan.run(SCENARIO, workers=workers, store=str(store))
    assert records_of(stores[1]) == records_of(stores[2])
    assert parquet_of(stores[1]) == parquet_of(stores[2])


def test_in_two_processes(tmp_path: Path) -> None:
    """Two interpreters with different hash seeds, so that no order of a set or a hash table gets into a result."""
    stores = [tmp_path / "first.sqlite", tmp_path / "second.sqlite"]
    for hash_seed, store in enumerate(stores):
        subprocess.run(
            [*COMMAND, "run", SCENARIO, "--store", store, "--no-report"],
            env=os.environ | {"PYTHONHASHSEED": str(hash_seed)},
            stdout=subprocess.DEVNULL,
            check=True,
        )
    assert records_of(stores[0]) == records_of(stores[1])
    assert parquet_of(stores[0]) == parquet_of(stores[1])


def test_another_seed_gives_another_run(tmp_path: Path) -> None:
    """The records that the tests above compare do depend on the randomness."""
    results = elephan.run(SCENARIO, {"run.repetitions": 2}, store="none")
    for first, second in zip(results[::2], results[1::2], strict=True):
        assert (first.seed, second.seed) == (42, 43)
        assert first.metrics["delivered_bytes"] != second.metrics["delivered_bytes"]
        assert first.series.sha256 != second.series.sha256

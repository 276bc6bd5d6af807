"""Compare stored runs with the digests that were stored beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from elephan.errors import StoreError
from elephan.record import Record
from elephan.store.database import Damaged, Store, Stored
from elephan.store.rows import columns_of, digest_of


@dataclass
class Checked:
    """Numbers of runs that were checked, had no digest, or are damaged."""

    runs: int = 0
    without_digest: int = 0
    """Runs of elephan 0.1.0, which stored none: only the form of their record could be checked."""
    damaged: int = 0


def check(
    store: Store, ids: Sequence[str], summary: Checked, on_progress: Callable[[int, int], None] | None = None
) -> Iterator[Damaged]:
    """Yield the faults of these runs, and count in `summary`; `on_progress` receives the numbers of done and all.

    Raises `StoreError` when the database itself cannot be read.
    """
    for number, run_id in enumerate(ids):
        stored = store.stored(run_id)
        # Another command may have removed it.
        if stored is not None:
            reason = _wrong(store, stored)
            summary.runs += 1
            summary.without_digest += stored.sha256 is None
            summary.damaged += reason is not None
            if reason is not None:
                yield Damaged(run_id, reason)
        if on_progress is not None:
            on_progress(number + 1, len(ids))


def _wrong(store: Store, stored: Stored) -> str | None:
    try:
        record = Record.from_json(stored.record)
    except StoreError as error:
        return str(error)
    if stored.sha256 is not None and digest_of(stored.record) != stored.sha256:
        return "its record is damaged: it is not what was stored (SHA-256)"
    own = columns_of(record)
    other = [name for name, value in stored.columns.items() if name != "format" and value != own[name]]
    if other:
        name = other[0]
        return (
            f"its row is damaged: {name} is {str(stored.columns[name])[:60]!r}, in its record {str(own[name])[:60]!r}"
        )
    if record.id != stored.id:
        return f"its record is damaged: it is that of run {record.id}"
    try:
        series = store.series_named(stored.series)
        if series is not None and record.series is not None and series.digest() != record.series.sha256:
            return "its series are damaged: they are not what was stored (SHA-256)"
    except StoreError as error:
        return str(error)
    return None

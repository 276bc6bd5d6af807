"""Stored runs for the pages: lists, one run, its manager, and its report, which a process of its own draws."""

from __future__ import annotations

import subprocess
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from elephan.errors import InputError, StoreError
from elephan.python_process import python_command
from elephan.store.database import Damaged, Filter, Store, Summary, to_look_at

if TYPE_CHECKING:
    from elephan.record import Record
    from elephan.report.management import Managed

PAGE = 50
"""Runs on one page of the list."""

REPORT_TIMEOUT_S = 120.0
"""Longest time that drawing a report may take; a large one takes some seconds."""

REPORTS_MAX = 16
"""Reports that are kept in memory, of about half a megabyte each; a stored run never changes."""

SHOWN = ("goodput_bps", "lag_p99_s", "latency_p99_s", "retransmitted_segments", "dropped_packets")
"""Metrics in the list of runs."""


@dataclass(frozen=True)
class Row:
    """A run in a list."""

    id: str
    created: str
    scenario: str
    backend: str
    seed: str
    record: Record | None
    """None: its record is damaged."""


class Runs:
    """Runs of one store, read as it is: nothing is made, upgraded or sent."""

    def __init__(self, location: str | None) -> None:
        self._location = location
        self._store: Store | None = None
        self._opening = threading.Lock()
        self._drawing = threading.Lock()
        self._reports: OrderedDict[tuple[str, str], bytes] = OrderedDict()

    def store(self) -> Store | None:
        """Return the store, None while there is none."""
        with self._opening:
            if self._store is None:
                self._store = to_look_at(self._location)
            return self._store

    def page(self, scenario: str | None, first: int) -> tuple[list[Row], bool]:
        """Return a page of runs, newest first, and True if there are more. Raises `StoreError`."""
        store = self.store()
        if store is None:
            return [], False
        found = store.summaries(Filter(scenario=scenario, newest=first + PAGE + 1))[first:]
        return self._rows(store, found[:PAGE]), len(found) > PAGE

    def managed(self, first: int) -> tuple[list[Row], bool]:
        """Return a page of runs that had a manager, newest first, and True if there are more. Raises `StoreError`."""
        store = self.store()
        if store is None:
            return [], False
        found = store.summaries(Filter(metric="moves", newest=first + PAGE + 1))[first:]
        return self._rows(store, found[:PAGE]), len(found) > PAGE

    def _rows(self, store: Store, found: list[Summary]) -> list[Row]:
        records = store.find_all([one.id for one in found])
        return [Row(one.id, one.created, one.scenario, one.backend, one.seed, records.get(one.id)) for one in found]

    def one(self, run_id: str) -> Record | Damaged | None:
        """Return the run whose id begins so, its damage, or None when there is none, or more than one."""
        store = self.store()
        if store is None:
            return None
        try:
            return store.look(run_id)
        except InputError:
            return None

    def management(self, record: Record) -> Managed:
        """Return what the manager of a run did, for its page. Raises `StoreError` when its series are missing."""
        from elephan.report.management import managed_of

        store = self.store()
        return managed_of([record], lambda one: None if store is None else store.series(one.id))[0]

    def report(self, record: Record) -> bytes:
        """Return the report of a run, HTML. Raises `StoreError` when it cannot be drawn.

        Matplotlib draws it, which takes a second and 100 MB that this process would keep.
        """
        key = (record.id, record.created)
        # One at a time: each takes a core.
        with self._drawing:
            if key not in self._reports:
                self._reports[key] = self._draw(record)
                while len(self._reports) > REPORTS_MAX:
                    self._reports.popitem(last=False)
            self._reports.move_to_end(key)
            return self._reports[key]

    def _draw(self, record: Record) -> bytes:
        # The store by stdin: a URL may have a password, and everybody can read arguments.
        command = python_command("-m", "elephan.web.draw_report", record.id)
        try:
            drawn = subprocess.run(
                command, input=(self._location or "").encode(), capture_output=True, timeout=REPORT_TIMEOUT_S
            )
        except subprocess.TimeoutExpired as error:
            raise StoreError(f"run {record.id}: its report took more than {REPORT_TIMEOUT_S:.0f} s") from error
        if drawn.returncode:
            reason = drawn.stderr.decode("utf-8", "replace").strip().splitlines()
            raise StoreError(f"run {record.id}: cannot draw its report: {reason[-1] if reason else drawn.returncode}")
        return drawn.stdout

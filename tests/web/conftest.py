"""A store with a few days of paths and a run with a manager, its server, and a real browser."""

from __future__ import annotations

import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from elephan.backup.synthetic import fill as fill_backup
from elephan.monitor import journal
from elephan.monitor.synthetic import fill
from elephan.monitor.tables import path_folder
from elephan.record import Record
from elephan.store.database import open_store
from elephan.store.place import Place
from elephan.store.series import Series
from elephan.web.listen import Listen
from elephan.web.serve import Listening, listening
from tests.report.test_management import manager

CHROMIUM = shutil.which("chromium")


@dataclass
class Stored:
    """A store that a test may add to."""

    file: str
    paths: list[int]
    run: str

    def execute(self, sql: str, *values: Any) -> None:
        """Change a table of the store."""
        with sqlite3.connect(self.file) as database:
            database.execute(sql, values)
        database.close()

    def sample(self, path: int, rtt_s: float) -> None:
        """Add a sample, as the monitor does."""
        now_s = time.time()
        folder = path_folder(Place.of(self.file), path)
        with open(journal.journal_path(folder, journal.day_of(now_s)), "ab") as file:
            file.write(journal.encode([journal.Sample(int(now_s * 1e9), int(rtt_s * 1e9), int(rtt_s * 5e8), 50)]))

    def alert(self, path: int, identity: int, text: str, ended_s: float | None = None) -> None:
        """Add an alert, as the monitor does."""
        now_s = time.time()
        self.execute(
            "insert into monitor_alert values (?, ?, 'rtt_s', 'step', ?, ?, ?, ?, ?, 'route', ?)",
            identity, path, now_s - 60, now_s - 55, ended_s, text, '{"before": 0.008, "after": 0.02, "samples": 5}',
            '[{"scenario": "tonight.toml", "text": "tonight: 3 h instead of 40 min"}]',
        )  # fmt: skip
        self.execute("update monitor_path set changed = ? where id = ?", time.time_ns(), path)


@pytest.fixture(scope="session")
def stored_once(
    tmp_path_factory: pytest.TempPathFactory, make_record: Callable[..., Record], make_series: Callable[..., Series]
) -> Stored:
    file = str(tmp_path_factory.mktemp("web") / "store.sqlite")
    fill_backup(file)
    paths = fill(file, paths=3, days=9, raw_days=1, seed=5)
    series = make_series(count=1000)
    record = make_record(name="<i>managed</i>", series=series)
    spec = {**record.spec, "manager": {"observation_window_ns": 2 * 10**9}}
    metrics = {**record.metrics, "moves": 1, "wasted_moves": 0, "offloaded_bytes": 80_000_000}
    with open_store(file) as store:
        store.save(record.model_copy(update={"manager": manager(), "spec": spec, "metrics": metrics}), series)
        store.save(make_record(cc="cubic", seed=2), None)
    database = sqlite3.connect(file)
    with database:
        # Two of three share a bottleneck; none of their names are harmless.
        for name, becomes in (("geneva", "<b>geneva</b>"), ("frankfurt", "O'Hare & co")):
            database.execute("update monitor_path set name = ? where name = ?", (becomes, name))
            database.execute(
                "update monitor_path set settings = json_set(settings, '$.bottleneck', 'alps') where name = ?",
                (becomes,),
            )
    database.close()
    return Stored(file, paths, record.id)


@pytest.fixture
def stored(stored_once: Stored, tmp_path: Path) -> Stored:
    """A copy that the test may change."""
    folder = Path(stored_once.file).parent
    shutil.copytree(folder, tmp_path / "web")
    return Stored(str(tmp_path / "web" / "store.sqlite"), stored_once.paths, stored_once.run)


Served = Callable[..., str]


@pytest.fixture
def serve() -> Iterator[Served]:
    """Serve a store in a thread; return the URL without its last slash."""
    running: list[tuple[Listening, threading.Thread]] = []

    def start(store: str, tokens: Path | None = None, certificate: Path | None = None, key: Path | None = None) -> str:
        ready = listening(store, Listen.of("127.0.0.1:0"), certificate, key, tokens)
        thread = threading.Thread(target=ready.run)
        thread.start()
        running.append((ready, thread))
        return ready.url.rstrip("/")

    yield start
    for ready, _ in running:
        ready.server.should_exit = True
    for _, thread in running:
        thread.join(10)
        assert not thread.is_alive()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-quic"]
        )
        yield found
        found.close()

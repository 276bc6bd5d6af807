"""Path tests that an operator asks a running monitor for: each waits in a thread until the monitor has its outcome."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elephan.command_socket import ask
from elephan.errors import ElephanError
from elephan.monitor.reading import TESTS, PathState
from elephan.monitor.tables import monitor_folder
from elephan.store.place import Place

AT_ONCE = 4
"""AskedTests that may wait for their outcome; the monitor itself runs none beside another on one bottleneck."""

KEPT_S = 600.0
"""Time for which a page says how a test ended, s."""


@dataclass(frozen=True)
class Asked:
    """A path test that was asked for, and how it goes."""

    test: str
    by: str
    at_s: float
    text: str
    is_over: bool
    is_fault: bool = False


class Busy(ElephanError):
    """Another test is still waited for."""


class AskedTests:
    """The tests that were asked for, by path; at most one each."""

    def __init__(self, place: Place, on_news: Callable[[], None] = lambda: None) -> None:
        self._place = place
        self._asked: dict[int, Asked] = {}
        self._lock = threading.Lock()
        self.on_news = on_news

    def of(self, path: PathState) -> Asked | None:
        """Return the test that was asked for last, for as long as a page says so."""
        with self._lock:
            found = self._asked.get(path.id)
        return None if found is None or (found.is_over and time.time() - found.at_s > KEPT_S) else found

    def is_running(self, path: PathState) -> bool:
        """Return True if the path's monitor listens."""
        return self._socket(path).exists()

    def _socket(self, path: PathState) -> Path:
        return (monitor_folder(self._place) / f"monitor-{path.monitor}").with_suffix(".socket")

    def start(self, path: PathState, test: str, by: str) -> None:
        """Ask for a test and return at once. Raises `Busy`."""
        with self._lock:
            waiting = [one for one in self._asked.values() if not one.is_over]
            mine = self._asked.get(path.id)
            if mine is not None and not mine.is_over:
                raise Busy(f"{path.name}: {mine.test} is still measured; its outcome comes first")
            if len(waiting) >= AT_ONCE:
                raise Busy(f"{len(waiting)} tests are still measured; at most {AT_ONCE} may be asked for at once")
            self._asked[path.id] = Asked(test, by, time.time(), "waits for the monitor, or is measured now", False)
        threading.Thread(target=self._wait, args=(path, test, by), daemon=True).start()

    def _wait(self, path: PathState, test: str, by: str) -> None:
        asked: dict[str, Any] = {"do": "now", "path": path.name, "test": test}
        try:
            answer = ask(self._socket(path), asked)
            fault = "" if answer is not None else f"monitor {path.monitor} does not run"
        except (ElephanError, OSError, ValueError) as error:
            fault = str(error) or type(error).__name__
        ended = Asked(test, by, time.time(), fault or "done; its outcome is below", True, bool(fault))
        with self._lock:
            self._asked[path.id] = ended
        self.on_news()


def may_ask(test: str) -> bool:
    """Return True if there is such a path test."""
    return test in TESTS

"""News for open pages by server-sent events: one look at the store a second, however many pages are open."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from elephan.admission import network_of
from elephan.backup.reading import BackupReader
from elephan.errors import ElephanError
from elephan.monitor.reading import MonitorReader, PathState
from elephan.web.drawing import WORDS, address
from elephan.web.quantities import quantity

LOOK_S = 1.0
"""Time between two looks at the store, as long as a page is open."""

NEWS_S = 2.0
"""Least time between two messages of a path's numbers: nobody reads faster."""

BEAT_S = 15.0
"""Time without news after which a comment is sent, so that nothing on the way closes the connection."""

CHECK_S = 60.0
"""Time without news after which states are looked at anyway: a path falls silent without a change in the store."""

PAGES_MAX = 64
"""Open pages with news."""

PAGES_PER_ADDRESS = PAGES_MAX // 2
"""Of them from one address, which may be that of a proxy or of `ssh -L`."""

WAITING_MAX = 4
"""Messages that wait for one page; a slower one misses the oldest, and each message says all that is so."""

OPEN_ALERTS_MAX = 100


class Full(Exception):
    """Too many pages are open."""


class Hub:
    """Looks at the store while a page is open, and tells all of them."""

    def __init__(self, reader: MonitorReader, backups: BackupReader, call: Callable[..., Any]) -> None:
        """`call` runs a function in a thread: `await call(function, *arguments)`."""
        self._reader = reader
        self._backups = backups
        self._backed_up = 0
        """Time of the newest change of a backup."""
        self._call = call
        self._pages: dict[asyncio.Queue[str | None], str] = {}
        """Queues with the networks of their clients."""
        self._looking: asyncio.Task[None] | None = None
        self._is_ended = False
        self._notes = 0

    def note(self) -> None:
        """Take it that something changed, though the store may not say so. For any thread."""
        self._notes += 1

    def end(self) -> None:
        """End all streams: the server stops. For the thread of the loop."""
        self._is_ended = True
        if self._looking is not None:
            self._looking.cancel()
        for page in self._pages:
            _put(page, None)

    async def stream(self, client: str) -> AsyncIterator[str]:
        """Yield the events of one page, at the address `client`. Raises `Full`."""
        network = network_of(client)
        if len(self._pages) >= PAGES_MAX or list(self._pages.values()).count(network) >= PAGES_PER_ADDRESS:
            raise Full
        page: asyncio.Queue[str | None] = asyncio.Queue(WAITING_MAX)
        self._pages[page] = network
        try:
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look())
            looking = self._looking
            # A browser that lost the connection comes back after that many milliseconds.
            yield "retry: 2000\n\n"
            # If the task fails, the streams end, and browsers that come back start it again.
            while not (self._is_ended or looking.done()):
                try:
                    message = await asyncio.wait_for(page.get(), BEAT_S)
                except TimeoutError:
                    message = ": still here\n\n"
                if message is not None:
                    yield message
        finally:
            self._pages.pop(page, None)

    async def _look(self) -> None:
        marker, told_s, changed, noted = 0, -NEWS_S, True, self._notes
        while self._pages and not self._is_ended:
            now_s = time.monotonic()
            with contextlib.suppress(ElephanError):
                marker, news = await self._call(self._reader.changes_since, marker)
                before, self._backed_up = self._backed_up, await self._call(self._backups.newest_change)
                changed = changed or bool(news) or self._backed_up != before
                changed = changed or self._notes != noted or now_s - told_s > CHECK_S
                if changed and now_s - told_s >= NEWS_S:
                    noted = self._notes
                    message = await self._call(self._message)
                    changed, told_s = False, now_s
                    for page in self._pages:
                        _put(page, message)
            await asyncio.sleep(LOOK_S)

    def _message(self) -> str:
        """Return the present state of all paths and alerts as an event."""
        paths = self._reader.paths()
        by_id = {path.id: path for path in paths}
        alerts = self._reader.alerts(open_only=True, limit=OPEN_ALERTS_MAX)
        content = {
            "notes": self._notes,
            # Text: JavaScript's numbers have no 64 bits.
            "backups": str(self._backed_up),
            "paths": {str(path.id): _state(path) for path in paths},
            "alerts": [
                {
                    "id": alert.id,
                    "text": alert.text,
                    "path": str(alert.path_id),
                    "url": address(by_id[alert.path_id]) if alert.path_id in by_id else "/alerts",
                }
                for alert in alerts
            ],
        }
        return f"event: state\ndata: {json.dumps(content)}\n\n"


def _put(page: asyncio.Queue[str | None], message: str | None) -> None:
    if page.full():
        page.get_nowait()
    page.put_nowait(message)


def _state(path: PathState) -> dict[str, Any]:
    return {
        "state": path.state,
        "word": WORDS[path.state],
        "open": path.alerts_open,
        "last": path.last_sample_s,
        "latest": {name: quantity(name).show(value) for name, value in path.latest.items()},
    }

"""The signals that tell a program to end: a terminal's Ctrl-C, kill(1) and a closed terminal.

A handler runs between any two steps of the main thread, also where that thread has an Event's lock: an Event that a
handler sets and its own thread waits for, or sets, can stand still for ever. What is here takes no locks.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Mark:
    """Something that is so from some moment on, for handlers to set and threads to look at."""

    def __init__(self) -> None:
        """Make one that is not set."""
        self._is_set = False

    def set(self) -> None:
        """Set it, for good."""
        self._is_set = True

    def is_set(self) -> bool:
        """Whether it is set."""
        return self._is_set


@contextmanager
def told_to_end(numbers: Sequence[int] = END_SIGNALS) -> Iterator[Callable[[float | None], bool]]:
    """Take the signals over, and yield a wait: for so many seconds (None: no end), or until one came.

    It says whether one ever did. Signals that are ignored stay so, as SIGHUP under nohup. Only the main thread may
    (signal.signal raises `ValueError` elsewhere).
    """
    ear, mouth = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def tell(*_: object) -> None:
        # A full pipe has been told often enough.
        with suppress(BlockingIOError):
            os.write(mouth, b"!")

    def wait(seconds: float | None) -> bool:
        return bool(select.select([ear], [], [], seconds)[0])

    before = {}
    try:
        for number in (one for one in numbers if signal.getsignal(one) != signal.SIG_IGN):
            before[number] = signal.signal(number, tell)
        yield wait
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(ear)
        os.close(mouth)

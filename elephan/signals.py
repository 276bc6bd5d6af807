"""The signals that tell a program to end: a terminal's Ctrl-C, kill(1) and a closed terminal.

A handler runs between any two steps of the main thread, also where that thread has an Event's lock: an Event that a
handler sets and its own thread waits for, or sets, can stand still for ever. What is here takes no locks.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Flag:
    """A flag that is set once, for handlers to set and threads to read."""

    def __init__(self) -> None:
        """Make one that is not set."""
        self._is_set = False

    def set(self) -> None:
        """Set it, for good."""
        self._is_set = True

    def is_set(self) -> bool:
        """Return True if it is set."""
        return self._is_set


MODELS = "/pydantic/_internal/_model_construction.py"
"""File of the functions that make models."""
IMPORT_POLL_S = 0.01
"""Interval of checks for the end of an import that an interrupt came into, s."""


def interrupt_between_imports() -> None:
    """Have Ctrl-C wait for the end of an import, where SIGINT has Python's own handler.

    An exception inside an import leaves half a module, is taken for an ImportError, or is printed with a traceback by
    what cannot pass it on. Imports take a second at most. So it is with the validators that pydantic makes at a model's
    first use: its core turns an interrupt into a SchemaError.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    signal.signal(signal.SIGINT, _interrupt)
    print_others = sys.unraisablehook

    def unraisable(lost: sys.UnraisableHookArgs) -> None:
        # A destructor or a C library met it, and Python would print it and go on.
        if issubclass(lost.exc_type, KeyboardInterrupt):
            _interrupt_later()
        else:
            print_others(lost)

    sys.unraisablehook = unraisable


def end_interrupts() -> None:
    """Let Ctrl-C end the process as it ends any program: Python's own handler would end it in a traceback."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _interrupt(_: int, frame: FrameType | None) -> None:
    if not _is_importing(frame):
        raise KeyboardInterrupt
    _interrupt_later()


def _interrupt_later() -> None:
    # The handler of SIGINT at that time is called.
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, IMPORT_POLL_S)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib") or frame.f_code.co_filename.endswith(MODELS):
            return True
        frame = frame.f_back
    return False


@contextmanager
def termination_requested(numbers: Sequence[int] = END_SIGNALS) -> Iterator[Callable[[float | None], bool]]:
    """Take the signals over, and yield a wait: for so many seconds (None: no end), or until one came.

    It says whether one ever did. Signals that are ignored stay so, as SIGHUP under nohup. Only the main thread may
    (signal.signal raises `ValueError` elsewhere).
    """
    ear, mouth = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def note(*_: object) -> None:
        # A full pipe already holds enough.
        with suppress(BlockingIOError):
            os.write(mouth, b"!")

    def wait(seconds: float | None) -> bool:
        return bool(select.select([ear], [], [], seconds)[0])

    before = {}
    try:
        for number in (one for one in numbers if signal.getsignal(one) != signal.SIG_IGN):
            before[number] = signal.signal(number, note)
        yield wait
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(ear)
        os.close(mouth)

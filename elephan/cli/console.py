"""Where the command writes: results to stdout, everything else to stderr."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

PIPE_WIDTH = 200
"""Columns where stdout is no terminal: a table in a file is not folded to 80."""


@cache
def console() -> Console:
    """Return the console for results."""
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            reader_gone()

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    return Plain(file=sys.stdout, width=width, highlight=False, soft_wrap=False)


def reader_gone() -> NoReturn:
    """End quietly and well when the reader of stdout (head, less) has gone: rich and typer would call it a failure."""
    import typer

    # Python must not complain again when it flushes stdout at its end.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise typer.Exit


def say(text: str) -> None:
    """Say something about a run that is no result: to stderr, so that --json stays clean."""
    print(text, file=sys.stderr)


def failed(text: str, code: int) -> int:
    """Say what is wrong and return the exit code."""
    print(f"error: {text}", file=sys.stderr)
    return code


@contextmanager
def counted(title: str) -> Iterator[Callable[[int, int], None]]:
    """Give a function that is told how many of how many are done; a bar shows it on a terminal, after a second."""
    began_s = time.monotonic()
    bar: Progress | None = None

    def tell(done: int, total: int) -> None:
        nonlocal bar
        if bar is None and sys.stderr.isatty() and time.monotonic() - began_s > 1.0:
            from rich.console import Console
            from rich.progress import Progress

            bar = Progress(console=Console(file=sys.stderr), transient=True)
            bar.add_task(title, total=total)
            bar.start()
        if bar is not None:
            bar.update(bar.task_ids[0], completed=done)

    try:
        yield tell
    finally:
        if bar is not None:
            bar.stop()


def emit(text: str) -> None:
    """Write a result as it is."""
    try:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        reader_gone()

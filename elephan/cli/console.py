"""The command's output: results to stdout, everything else to stderr."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, NoReturn

from elephan.printable import has_control, printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

PIPE_WIDTH = 200
"""Columns where stdout is no terminal: a table in a file is not folded to 80."""


@cache
def console() -> Console:
    """Return the console for results; a terminal acts on no character that comes from a file or a record.

    A table that is too wide for it becomes a block of lines for each row.
    """
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            reader_gone()

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
            table = sys.modules.get("rich.table")
            if table is not None and isinstance(renderable, table.Table):
                from elephan.cli.blocks import fitted

                renderable = fitted(renderable, self.width if options is None else options.max_width)
            for segment in super().render(renderable, options):
                if segment.control or not has_control(segment.text):
                    yield segment
                else:
                    yield Segment(printable(segment.text), segment.style)

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    return Plain(file=sys.stdout, width=width, highlight=False, soft_wrap=False)


def reader_gone() -> NoReturn:
    """End quietly and well when the reader of stdout (head, less) has gone: rich and typer would call it a failure."""
    import typer

    drop_output()
    raise typer.Exit


def drop_output() -> None:
    """Drop the output that stdout has not taken: Python would raise again when it flushes it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(text: str) -> None:
    """Print a text about a run that is no result: to stderr, so that --json stays clean."""
    print(printable(text), file=sys.stderr)


def failed(text: str, code: int) -> int:
    """Print an error and return the exit code."""
    print(f"error: {printable(text)}", file=sys.stderr)
    return code


@contextmanager
def counted(title: str) -> Iterator[Callable[[int, int], None]]:
    """Give a function that takes the numbers of done and all; a bar shows them on a terminal, after a second."""
    began_s = time.monotonic()
    bar: Progress | None = None

    def on_progress(done: int, total: int) -> None:
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
        yield on_progress
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

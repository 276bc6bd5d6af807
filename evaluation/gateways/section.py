"""A part of the page: its text and its picture, and the helpers that its numbers share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elephan.api import jobs_of, load
from elephan.backends import Job
from elephan.record import Record
from elephan.report.draw import Ink

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Picture:
    """A picture of docs/img."""

    name: str
    """File without its ending."""
    says: str
    """Text in its place."""
    draw: Callable[[Any, Ink], None]
    size_inches: tuple[float, float] = (7.4, 3.6)


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    title: str
    text: str
    """Markdown with the table."""
    picture: Picture


def jobs(file: str, changes: dict[str, Any] | None = None) -> list[Job]:
    """Return the jobs of a scenario of this folder, with changes."""
    return list(jobs_of(load(FOLDER / file, changes)))


def number(record: Record, name: str) -> float:
    """Return a metric of a run. Raises KeyError where the record lacks it."""
    return float(record.metrics[name] or 0)


def mean(records: Sequence[Record], name: str) -> float:
    """Return the mean of a metric over repetitions. Raises KeyError where a record lacks it."""
    return sum(number(record, name) for record in records) / len(records)


def payload(record: Record) -> float:
    """Return the payload of frames that reached their N_Port, MB/s."""
    return number(record, "fc_bytes_per_s") / 1e6

"""A soak: one stream for hours, its series on the disk line by line, in parts where it was interrupted.

A folder has `soak.json`, which says what is sent, and `part-N.jsonl` for each part: a first line about the part, a
line for each row of the series, and at the end the outcome. Each line is on the disk before the next one is measured; a
line that a crash cut off is passed over.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TextIO

from elephan.errors import InputError, StoreError
from elephan.line.methods.ber import Bound, of_counts
from elephan.line.mix import Mix
from elephan.line.trial import Outcome, Row, Trial
from elephan.store.files import write_atomically

SETTINGS = "soak.json"
FORMAT = 1
"""Of the folder's files."""
SERIES_NS = 10 * 10**9
"""Interval of the series' rows: the paper's points are of 10 s."""

Send = Callable[[Trial, Callable[[Row], None]], Outcome]
"""Sends a stream, and gives each row of its series to a function."""


@dataclass(frozen=True)
class Settings:
    """Settings of a soak: those of every part, but for its length."""

    to: str
    """Address of the receiver."""
    line_bps: int
    rate_bps: int
    sizes: tuple[tuple[int, int], ...]
    mix: str
    """Name of the mix."""
    payload: str
    series_ns: int
    vlan: int | None
    pcp: int | None

    @property
    def frames(self) -> Mix:
        """The mix of frames."""
        return Mix(self.sizes, self.mix)

    def trial(self, duration_ns: int, ramp_ns: int) -> Trial:
        """Return the stream of a part."""
        return Trial(
            self.frames,
            self.rate_bps,
            duration_ns,
            payload=self.payload,
            ramp_ns=ramp_ns,
            series_ns=self.series_ns,
            pcp=self.pcp,
        )


@dataclass(frozen=True)
class Part:
    """A part as its file has it."""

    number: int
    start: datetime
    facts: Mapping[str, Any]
    """Facts about both ends."""
    rows: tuple[Row, ...]
    outcome: Outcome | None
    """None: the part was killed; its rows are what there is of it."""

    @property
    def span_ns(self) -> int:
        """Measured time, ns."""
        if self.outcome is not None:
            return self.outcome.sent.span_ns
        return self.rows[-1].time_ns if self.rows else 0

    @property
    def end(self) -> datetime:
        """End of the measured time, by the clock of the day."""
        return self.start + timedelta(microseconds=self.span_ns / 1000)


@dataclass(frozen=True)
class Totals:
    """Sums over all parts."""

    sent: int
    sent_bytes: int
    lost: int
    duplicates: int
    reordered: int
    bit_errors: int
    errored_frames: int
    bits_checked: int
    """Of parts that ended: rows do not have it."""
    bad_headers: int
    receiver_drops: int
    late_frames: int
    left_out_frames: int
    unanswered_rows: int
    span_ns: int
    latency_min_ns: int | None
    latency_max_ns: int | None
    clock_error_ns: int | None
    """The largest of the parts that ended."""

    @property
    def line_lost(self) -> int:
        """Lost frames without those that the receiver dropped itself."""
        return max(0, self.lost - self.receiver_drops)

    @property
    def bounds(self) -> tuple[Bound, Bound]:
        """Bit error rates: of payloads that arrived, and of the line with each lost frame as one error."""
        lost = self.line_lost + self.bad_headers
        return of_counts(self.bit_errors, self.bits_checked, lost, self.sent_bytes * 8)


@dataclass(frozen=True)
class Soak:
    """A soak as its folder has it."""

    settings: Settings
    parts: tuple[Part, ...]

    @property
    def span_ns(self) -> int:
        """Time measured so far, ns."""
        return sum(part.span_ns for part in self.parts)

    @property
    def gaps(self) -> list[tuple[datetime, timedelta]]:
        """Begin and length of each time between two parts."""
        pairs = zip(self.parts, self.parts[1:], strict=False)
        return [(one.end, max(timedelta(0), two.start - one.end)) for one, two in pairs]

    def rows(self) -> Iterator[tuple[float, Row]]:
        """Yield each row with its time since the start of the first part, s."""
        for part in self.parts:
            since_s = (part.start - self.parts[0].start).total_seconds()
            for row in part.rows:
                yield since_s + row.time_ns / 1e9, row

    def totals(self) -> Totals:
        """Return the sums over all parts."""
        mean_bytes = (self.settings.frames.frame_bytes, self.settings.frames.weights)
        counts = [_counts(part, mean_bytes) for part in self.parts]
        names = [one.name for one in fields(Totals) if one.type == "int"]
        summed = {name: sum(int(one.get(name) or 0) for one in counts) for name in names}
        least = [one["latency_min_ns"] for one in counts if one["latency_min_ns"] is not None]
        most = [one["latency_max_ns"] for one in counts if one["latency_max_ns"] is not None]
        errors = [part.outcome.clock.error_ns for part in self.parts if part.outcome and part.outcome.clock]
        return Totals(
            **summed,
            latency_min_ns=min(least, default=None),
            latency_max_ns=max(most, default=None),
            clock_error_ns=max(errors, default=None),
        )


def _counts(part: Part, mean_bytes: tuple[int, int]) -> dict[str, Any]:
    """Return the counts of a part, by its outcome, or else by its rows."""
    rows = part.rows
    found: dict[str, Any] = {
        "span_ns": part.span_ns,
        "unanswered_rows": sum(not row.is_answered for row in rows),
        "latency_min_ns": min((row.latency_min_ns for row in rows if row.latency_min_ns is not None), default=None),
        "latency_max_ns": max((row.latency_max_ns for row in rows if row.latency_max_ns is not None), default=None),
    }
    outcome = part.outcome
    if outcome is None or outcome.received is None:
        for name in ("sent", "lost", "bit_errors", "errored_frames", "late_frames", "left_out_frames"):
            found[name] = sum(getattr(row, name) for row in rows)
        found["sent_bytes"] = found["sent"] * mean_bytes[0] // mean_bytes[1]
        return found
    sent, got = outcome.sent, outcome.received
    found |= {"sent": sent.frames, "sent_bytes": sent.bytes, "late_frames": sent.late_frames}
    found["left_out_frames"] = sent.left_out_frames
    for name in ("lost", "duplicates", "reordered", "bit_errors", "errored_frames", "bits_checked", "bad_headers"):
        found[name] = getattr(got, name)
    found["receiver_drops"] = got.drops
    if got.latency_ns is not None:
        found |= {"latency_min_ns": got.latency_ns.min, "latency_max_ns": got.latency_ns.max}
    return found


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder for one soak. Raises `InputError` where another has it, `StoreError`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StoreError(f"cannot write {folder}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"--into {folder}: another soak writes there; name another folder") from None
        yield
    finally:
        os.close(descriptor)


def measure(
    send: Send,
    settings: Settings,
    folder: Path,
    span_ns: int,
    ramp_ns: int,
    facts: Mapping[str, Any],
    on_row: Callable[[Row], None],
) -> Soak:
    """Send until the folder's parts have `span_ns` together, and return all of them; the folder is `locked`.

    Raises `InputError` where the folder holds another soak, `StoreError`.
    """
    _check(settings, folder)
    before = read(folder) if (folder / SETTINGS).exists() else None
    if before is None:
        write_atomically(folder / SETTINGS, (json.dumps({"format": FORMAT, **asdict(settings)}, indent=1)).encode())
    # A part shorter than one interval would have no row.
    left_ns = span_ns - (before.span_ns if before is not None else 0)
    if left_ns >= min(settings.series_ns, span_ns):
        number = 1 + max((part.number for part in before.parts), default=0) if before is not None else 1
        trial = settings.trial(left_ns, ramp_ns)
        with _part_file(folder, number) as write:
            start = datetime.now(UTC) + timedelta(microseconds=ramp_ns / 1000)
            write({"part": number, "start": start.isoformat(), "facts": dict(facts)})

            def take(row: Row) -> None:
                write({"row": asdict(row)})
                on_row(row)

            write({"outcome": send(trial, take).as_json()})
    return read(folder)


def _check(settings: Settings, folder: Path) -> None:
    """Raise `InputError` where the folder holds a soak with other settings."""
    if not (folder / SETTINGS).exists():
        others = [path.name for path in folder.iterdir() if path.name != "lock"]
        if others:
            raise InputError(f"--into {folder}: it holds {sorted(others)[0]} and no soak; name a new folder")
        return
    there = read_settings(folder)
    for one in fields(Settings):
        was, now = getattr(there, one.name), getattr(settings, one.name)
        if was != now:
            raise InputError(f"--into {folder}: its soak has {one.name} {was}, not {now}; name another folder")


def read_settings(folder: Path) -> Settings:
    """Return the settings of a folder's soak. Raises `InputError`."""
    try:
        given = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
        if given.pop("format") != FORMAT:
            raise InputError(f"{folder / SETTINGS}: written by a newer elephan")
        return Settings(**{**given, "sizes": tuple((size, weight) for size, weight in given["sizes"])})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{folder / SETTINGS}: no settings of a soak: {error}") from error


def read(folder: Path) -> Soak:
    """Return the soak of a folder. Raises `InputError`."""
    parts = []
    for path in sorted(folder.glob("part-*.jsonl")):
        part = _part(path)
        if part is not None:
            parts.append(part)
    return Soak(read_settings(folder), tuple(parts))


def _part(path: Path) -> Part | None:
    """Return a part by its file; None where it was killed before its first line was there."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    # After the last line feed there is nothing, or the rest of a line that a crash cut off.
    lines = text.split("\n")[:-1]
    if not lines:
        return None
    try:
        return _part_of([json.loads(line) for line in lines])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: no part of a soak: {error}") from error


def _part_of(lines: Sequence[Mapping[str, Any]]) -> Part:
    first = lines[0]
    rows = tuple(Row.of(line["row"]) for line in lines if "row" in line)
    outcomes = [Outcome.from_json(json.dumps(line["outcome"])) for line in lines if "outcome" in line]
    start = datetime.fromisoformat(first["start"])
    return Part(int(first["part"]), start, first["facts"], rows, outcomes[-1] if outcomes else None)


@contextmanager
def _part_file(folder: Path, number: int) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Give a function that puts a line on the disk."""
    path = folder / f"part-{number:03}.jsonl"
    try:
        file: TextIO
        with path.open("x", encoding="utf-8") as file:

            def write(line: Mapping[str, Any]) -> None:
                try:
                    file.write(json.dumps(line) + "\n")
                    file.flush()
                    os.fsync(file.fileno())
                except OSError as error:
                    raise StoreError(f"cannot write {path}: {error.strerror}") from error

            yield write
    except FileExistsError as error:
        raise StoreError(f"cannot write {path}: it is there already") from error

"""A soak: one stream for hours, its series on the disk line by line, in parts where it was interrupted.

A folder has `soak.json`, which says what is sent, and `part-N.jsonl` for each part: a first line about the part, a
line for each row of the series, and at the end the outcome. Each line is on the disk before the next one is measured; a
line that a crash cut off is passed over.

Rows that the receiver did not answer are covered by the next answer, which has the counts since the last one. Of frames
in rows that no answer covers nothing is known: they are in no sum but their own.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from elephan import user_files
from elephan.core import native
from elephan.errors import InputError, StoreError
from elephan.line.methods.ber import Bound, of_counts, proven_bits
from elephan.line.mix import Mix
from elephan.line.session import BUSY, STOPPED, OnRow
from elephan.line.trial import Outcome, Row, Trial
from elephan.store.files import write_atomically

SETTINGS = "soak.json"
FORMAT = 1
"""Of the folder's files."""
SERIES_NS = 10 * 10**9
"""Interval of the series' rows: the paper's points are of 10 s."""
LEAST_NS = 10**8
"""A soak that lacks less than this is complete."""
SILENT_ROWS = 3
"""Rows in sequence without an answer, after which a part ends and the receiver is looked for again ..."""
SILENT_NS = 10 * 10**9
"""... if they are at least as long as this together."""
SILENT = "the receiver did not answer any more"
"""Reason of such an end."""
TRIES = 30
"""Looks for a receiver that has fallen silent."""
FRUITLESS_PARTS = 3
"""Parts in sequence without any answer, after which no further one is tried."""
BUSY_WAIT_S = 1.0
"""Wait where the receiver takes no stream, since it does not know yet that the one before is over."""

Send = Callable[[Trial, OnRow], Outcome]
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
    interface: str
    """The sender's."""
    ramp_ns: int

    @property
    def frames(self) -> Mix:
        """The mix of frames."""
        return Mix(self.sizes, self.mix)

    def trial(self, duration_ns: int) -> Trial:
        """Return the stream of a part; one shorter than an interval is a row of its own."""
        return Trial(
            self.frames,
            self.rate_bps,
            duration_ns,
            payload=self.payload,
            ramp_ns=self.ramp_ns,
            series_ns=min(self.series_ns, duration_ns),
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
    def covered(self) -> tuple[Row, ...]:
        """Rows of which the receiver's counts are known: all before its last answer."""
        if self.outcome is not None and self.outcome.received is not None:
            return self.rows
        answered = [index for index, row in enumerate(self.rows) if row.is_answered]
        return self.rows[: answered[-1] + 1] if answered else ()

    @property
    def span_ns(self) -> int:
        """Measured time, ns: that of which the receiver's counts are known."""
        if self.outcome is not None and self.outcome.received is not None:
            return self.outcome.sent.span_ns
        covered = self.covered
        return covered[-1].time_ns if covered else 0

    @property
    def end(self) -> datetime:
        """End of the measured time, by the clock of the day."""
        return self.start + timedelta(microseconds=self.span_ns / 1000)


@dataclass(frozen=True)
class Totals:
    """Sums over all parts."""

    sent: int
    sent_bytes: int
    proven_bits: int
    """Bits of frames that arrived or that the line lost."""
    lost: int
    """Frames that were sent and did not arrive."""
    sent_lost: int
    """Those without as many as the ends dropped themselves in the same part."""
    no_carrier_frames: int
    """Due while the interface had no carrier, and not sent."""
    duplicates: int
    reordered: int
    bit_errors: int
    errored_frames: int
    wrong_lengths: int
    bits_checked: int
    """Of parts that ended: rows do not have it."""
    bad_headers: int
    """They are among the lost ones."""
    receiver_drops: int
    sender_drops: int
    """Dropped by the sender's interface."""
    late_frames: int
    left_out_frames: int
    unanswered_rows: int
    unknown_rows: int
    """Rows of them that no later answer covers."""
    unknown_frames: int
    """Frames sent in those: they are in no other sum."""
    span_ns: int
    latency_min_ns: int | None
    latency_max_ns: int | None
    clock_error_ns: int | None
    """The largest of the parts that ended."""

    @property
    def line_lost(self) -> int:
        """Frames that the line lost: those, and those that found no carrier."""
        return self.sent_lost + self.no_carrier_frames

    @property
    def bounds(self) -> tuple[Bound, Bound]:
        """Bit error rates: of payloads that arrived, and of the line with each lost frame as one error."""
        wrong = self.bit_errors + self.wrong_lengths
        return of_counts(wrong, self.bits_checked, self.sent_lost, self.proven_bits)


@dataclass(frozen=True)
class Soak:
    """A soak as its folder has it."""

    settings: Settings
    parts: tuple[Part, ...]
    ended: str | None = None
    """Reason why the measurement just now ended before its time."""

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
    rows = part.covered
    unknown = part.rows[len(rows) :]
    found: dict[str, Any] = {
        "span_ns": part.span_ns,
        "unanswered_rows": sum(not row.is_answered for row in part.rows),
        "unknown_rows": len(unknown),
        "unknown_frames": sum(row.sent for row in unknown),
        # Those are known without the receiver.
        "no_carrier_frames": sum(row.no_carrier_frames for row in part.rows),
        "latency_min_ns": min((row.latency_min_ns for row in rows if row.latency_min_ns is not None), default=None),
        "latency_max_ns": max((row.latency_max_ns for row in rows if row.latency_max_ns is not None), default=None),
    }
    outcome = part.outcome
    if outcome is None or outcome.received is None:
        for name in ("sent", "lost", "bit_errors", "errored_frames", "late_frames", "left_out_frames"):
            found[name] = sum(getattr(row, name) for row in rows)
        found["sent_bytes"] = found["sent"] * mean_bytes[0] // mean_bytes[1]
        found["sent_lost"] = max(0, found["lost"])
        # Drops of the ends are not in the rows: they count as lost.
        found["proven_bits"] = found["sent_bytes"] * 8
        return found
    sent, got = outcome.sent, outcome.received
    found |= {"sent": sent.frames, "sent_bytes": sent.bytes, "late_frames": sent.late_frames}
    found |= {"left_out_frames": sent.left_out_frames, "no_carrier_frames": sent.no_carrier_frames}
    for name in ("lost", "duplicates", "reordered", "bit_errors", "errored_frames", "wrong_lengths", "bits_checked"):
        found[name] = getattr(got, name)
    found |= {"bad_headers": got.bad_headers, "receiver_drops": got.drops, "sender_drops": sent.interface_drops}
    found |= {"sent_lost": outcome.sent_lost, "proven_bits": proven_bits(outcome)}
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
    facts: Mapping[str, Any],
    on_row: Callable[[Row], None],
    answers: Callable[[], bool],
) -> Soak:
    """Send until the folder's parts have `span_ns` together, and return all of them; the folder is `locked`.

    A receiver that falls silent ends a part: `answers` looks for it again, which takes some time, and a further part
    begins. Raises `InputError` where the folder holds another soak, `StoreError`, `RunError`.
    """
    _check(settings, folder)
    if not (folder / SETTINGS).exists():
        write_atomically(folder / SETTINGS, (json.dumps({"format": FORMAT, **asdict(settings)}, indent=1)).encode())
    ended = None
    fruitless = refused = 0
    was_silent = False
    while ended is None:
        left_ns = span_ns - read(folder).span_ns
        if left_ns < min(LEAST_NS, span_ns):
            break
        outcome = _measure_part(send, settings.trial(left_ns), folder, facts, on_row)
        if outcome.ended is None or outcome.ended == STOPPED:
            ended = outcome.ended
            break
        if outcome.ended.startswith(BUSY):
            refused += 1
            # Another sender's stream is no reason to wait, one's own is that fell silent.
            ended = outcome.ended if not was_silent or refused == TRIES else None
            time.sleep(0 if ended else BUSY_WAIT_S)
            continue
        was_silent, refused = True, 0
        fruitless = 0 if read(folder).parts[-1].span_ns else fruitless + 1
        if outcome.ended != SILENT and outcome.received is not None:
            ended = outcome.ended
        elif fruitless == FRUITLESS_PARTS:
            ended = f"{SILENT}, in {FRUITLESS_PARTS} streams in sequence"
        else:
            ended = _wait_for(answers)
    return replace(read(folder), ended=ended)


def _measure_part(
    send: Send, trial: Trial, folder: Path, facts: Mapping[str, Any], on_row: Callable[[Row], None]
) -> Outcome:
    """Measure a part into a file of its own."""
    # A file that a crash or a full disk left empty has a number too.
    numbers = [path.stem.removeprefix("part-") for path in folder.glob("part-*.jsonl")]
    number = 1 + max((int(one) for one in numbers if one.isdecimal()), default=0)
    with _part_file(folder, number) as write:
        start = datetime.now(UTC) + timedelta(microseconds=trial.ramp_ns / 1000)
        write({"part": number, "start": start.isoformat(), "facts": dict(facts)})
        silent_rows = 0
        answered_ns = 0

        def take(row: Row) -> str | None:
            nonlocal silent_rows, answered_ns
            write({"row": asdict(row)})
            on_row(row)
            if row.is_answered:
                silent_rows, answered_ns = 0, row.time_ns
                return None
            silent_rows += 1
            return SILENT if silent_rows >= SILENT_ROWS and row.time_ns - answered_ns >= SILENT_NS else None

        outcome = send(trial, take)
        write({"outcome": outcome.as_json()})
    return outcome


def _wait_for(answers: Callable[[], bool]) -> str | None:
    """Wait until the receiver answers; return the reason why it is waited for no longer, if it does not."""
    try:
        found = any(answers() for _ in range(TRIES))
    except native.Stopped:
        return STOPPED
    return None if found else f"{SILENT}, nor when it was looked for {TRIES} times"


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
        given = json.loads(user_files.read_text(folder / SETTINGS, user_files.STATE))
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
        # A soak of days has many lines.
        with open(user_files.open_regular(path), encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    # After the last line feed there is nothing, or the rest of a line that a crash cut off.
    lines = text.split("\n")[:-1]
    found = []
    try:
        for number, line in enumerate(lines, 1):
            try:
                found.append(json.loads(line))
            except ValueError:
                # A crash may leave zeros in place of the last line.
                if number < len(lines):
                    raise
        return _part_of(found) if found else None
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
        # Without a buffer: what a full disk did not take is not tried again when the file is closed.
        file = path.open("xb", buffering=0)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}") from error

    def write(line: Mapping[str, Any]) -> None:
        rest = json.dumps(line).encode() + b"\n"
        try:
            while rest:
                rest = rest[file.write(rest) :]
            os.fsync(file.fileno())
        except OSError as error:
            raise StoreError(f"cannot write {path}: {error.strerror}") from error

    with file:
        yield write

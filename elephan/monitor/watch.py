"""One path as the monitor knows it: its samples into journal, minutes and detectors; all of it goes on after a kill.

**Invariant: the journal is on the disk before anything that was made of it.** What a kill takes from the summaries and
the detectors is made again of the journal.
"""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any

from elephan.core import native
from elephan.monitor import bins, journal
from elephan.monitor.journal import LOST, UNKNOWN, Sample
from elephan.monitor.losses import LossRate
from elephan.monitor.spec import PathSpec
from elephan.monitor.summaries import row
from elephan.monitor.writing import Journal, save

SAVE_S = 300.0
"""Time between two savings of the detectors' states, s: a restart reads so much of the journal at most."""
OF_BINS = ("rtt_s", "ttl", "forward_delay_s", "reverse_delay_s")
"""Quantities whose detectors see a value of each bin."""
OF_PACKETS = ("answer", "loss")
"""Quantities whose detectors see each packet."""
OF_ONE_WAY = ("forward_delay_s", "reverse_delay_s")
"""Quantities whose changes count in parts of half of the RTT, because the clocks' offset makes them relative to
nothing."""
LEAST_REFERENCE_S = 50e-6
SILENCE_S, SILENCE_PACKETS = 3.0, 5
"""A path is silent after so long and so many packets without an answer, at least."""
HOST_IS_LATE = 0.2
"""Share of late samples from which on a host is said to be busy."""
QUIET_AFTER_TEST_S = 1.0
"""Time after a test in which a queue that it has filled runs empty, s."""

BINS_KEPT = 12
"""Bins whose samples are kept for the cause of a change: two minutes, some of them before the change."""
DELAYS_LEAST = 10
"""Samples that least, median and 95th percentile need, at least."""
SAME_RISE = 0.25
"""Part by which two rises of one size may differ; `SAME` of `crates/change-detection/src/cause.rs`."""

Found = tuple[str, dict[str, Any]]
"""A quantity, and its change as the detector tells it."""


class PathWatch:
    """A path that is watched."""

    def __init__(self, spec: PathSpec, identity: int, folder: Path) -> None:
        """Go on from what the folder holds. Raises `StoreError`."""
        self.spec = spec
        self.id = identity
        self.folder = folder
        self.journal = Journal(folder)
        self.detectors: dict[str, Any] = {}
        self._configs: dict[str, str] = {}
        self.latest: dict[str, float] = {}
        """Newest value by quantity."""
        self.minute: dict[str, dict[str, Any]] = {}
        """Summaries of the last minute, by quantity."""
        self.hours_due: list[int] = []
        """Hours that are over and not summarised."""
        self.sent = 0
        self.lost = 0
        self.last_sample_s: float | None = None
        self.loaded_until_s = 0.0
        """Unix s until which a test's own load is in the delays."""
        self._start: int | None = None
        """Start of the minute that runs."""
        self._samples: list[Sample] = []
        self._before: Sample | None = None
        self._saved_s = 0.0
        self._detected_ns = 0
        """Time of the newest sample that the detectors have had."""
        stamp = spec.stamp()
        self._bin = bins.Bin.of_period(1.0 if stamp is None else stamp.period_ns / 1e9)
        self._is_silent = False
        rtt_s = spec.benchmark.get("rtt_s")
        self._reference_s = None if rtt_s is None else rtt_s / 2
        """Scale of changes of one-way delays; None: the first bin gives it."""
        self.late = (0.0, 0.0)
        """Shares of the newest bin's samples with which this host was late, and the far one."""
        self.losses = LossRate()
        self._bins: deque[list[Sample]] = deque(maxlen=BINS_KEPT)
        """The newest bins that are over."""
        self._summarised: int | None = None
        """Start of the newest minute that is summarised."""
        self._hour: int | None = None
        """Start of the hour of the minute that was summarised last."""
        self._state_file = folder / "state.json"
        self._load()

    # State.

    def _load(self) -> None:
        state: dict[str, Any] = {}
        with suppress(OSError, ValueError):
            state = json.loads(self._state_file.read_text())
        self._detected_ns = int(state.get("detected_ns", 0))
        self._summarised = state.get("summarised")
        self._hour = None if self._summarised is None else self._summarised // 3600 * 3600
        self.latest = dict(state.get("latest", {}))
        self._is_silent = bool(state.get("silent", False))
        with suppress(TypeError):
            self._bin.samples = [Sample(*one) for one in state.get("bin", [])]
        self._reference_s = self._reference_s or state.get("reference_s")
        saved = state.get("detectors", {})
        self._wanted_detectors(saved)

    def _wanted_detectors(self, saved: dict[str, Any]) -> None:
        stamp = self.spec.stamp()
        if stamp is not None:
            for quantity in OF_PACKETS:
                self._detector(quantity, stamp.period_ns / 1e9, saved)
            for quantity in OF_BINS:
                if quantity not in OF_ONE_WAY or self._reference_s is not None:
                    self._detector(quantity, self._bin.span_s, saved)
        for test in self.spec.tests:
            for quantity in QUANTITIES_OF.get(test.test, ()):
                self._detector(quantity, test.period_ns / 1e9, saved)

    def _detector(self, quantity: str, period_s: float, saved: dict[str, Any]) -> None:
        config: dict[str, Any] = {"quantity": quantity, "period_s": period_s, "change": self.spec.change_e6 / 1e6}
        config["utc_offset_s"] = float(time.localtime().tm_gmtoff or 0)
        if quantity in OF_ONE_WAY and self._reference_s is not None:
            config["reference_s"] = max(LEAST_REFERENCE_S, self._reference_s)
        if quantity == "answer":
            config["silence_samples"] = max(SILENCE_PACKETS, math.ceil(SILENCE_S / period_s))
        agreed = self.spec.benchmark.get(quantity)
        if agreed is not None:
            config["agreed"] = agreed
        text = json.dumps(config)
        state = saved.get(quantity, {}).get("state")
        try:
            self.detectors[quantity] = native.ChangeDetector(text, state)
        except ValueError:
            # Of another version: it learns anew.
            self.detectors[quantity] = native.ChangeDetector(text, None)
        self._configs[quantity] = text

    def save(self) -> bool:
        """Write the state; return False where the disk is full."""
        self.journal.sync()
        state = {
            "detected_ns": self._detected_ns,
            "summarised": self._summarised,
            "latest": self.latest,
            "silent": self._is_silent,
            "reference_s": self._reference_s,
            "bin": [list(astuple(one)) for one in self._bin.samples],
            "detectors": {
                quantity: {"config": self._configs[quantity], "state": one.state()}
                for quantity, one in self.detectors.items()
            },
        }
        return save(self._state_file, json.dumps(state))

    def recover(self, now_s: float) -> tuple[list[dict[str, Any]], list[Found]]:
        """Return summaries and changes that a kill had cut off, made of the journal of yesterday and today."""
        rows: list[dict[str, Any]] = []
        found: list[Found] = []
        # The newest minute again, because its rows may not have been committed.
        minute = float(self._summarised or 0)
        first = min(self._detected_ns / 1e9, minute)
        for at in (now_s - journal.DAY_S, now_s):
            for one in journal.read(journal.journal_path(self.folder, journal.day_of(at)), first - 60):
                if one.sent_ns >= minute * 1e9:
                    rows += self._summarise(one)
                else:
                    # For the jitter of the next one.
                    self._before = one
                if one.sent_ns > self._detected_ns:
                    found += self._detect(one)
        return rows, found

    # Samples.

    def handle(self, samples: Sequence[Sample], loaded: bool) -> tuple[list[dict[str, Any]], list[Found]]:
        """Take new samples; return rows of `monitor_summary` that are due, and changes."""
        self.journal.append(samples)
        rows: list[dict[str, Any]] = []
        found: list[Found] = []
        for one in samples:
            self.sent += 1
            self.lost += one.is_lost
            rows += self._summarise(one)
            at_s = one.sent_ns / 1e9
            if loaded:
                self.loaded_until_s = at_s + QUIET_AFTER_TEST_S
            if at_s >= self.loaded_until_s:
                found += self._detect(one)
            else:
                # No test's load silences a path.
                found += self._detect_silence(one)
                self._detected_ns = one.sent_ns
        return rows, found

    def _summarise(self, one: Sample) -> list[dict[str, Any]]:
        """Take a sample into its minute; return the rows of the minute before when that is over."""
        at_s = one.sent_ns / 1e9
        self.last_sample_s = at_s
        start = int(at_s // 60) * 60
        rows = []
        if self._start is not None and start != self._start:
            rows = self.close_minute()
        self._start = start
        self._samples.append(one)
        if not one.is_lost:
            self.latest["rtt_s"] = one.rtt_ns / 1e9
            if one.forward_ns != UNKNOWN:
                self.latest["forward_delay_s"] = one.forward_ns / 1e9
                self.latest["reverse_delay_s"] = (one.rtt_ns - one.forward_ns) / 1e9
            if one.ttl:
                self.latest["ttl"] = float(one.ttl)
        return rows

    def close_minute(self) -> list[dict[str, Any]]:
        """Return the rows of the minute that runs, and begin another."""
        start, samples = self._start, self._samples
        self._start, self._samples = None, []
        if start is None or not samples:
            return []
        if self._summarised is not None and start <= self._summarised:
            # The clock was set back, or a restart came in mid minute: the journal has all of it.
            samples = [
                one
                for one in journal.read(journal.journal_path(self.folder, journal.day_of(start)), start)
                if one.sent_ns < (start + 60) * 10**9
            ] or samples
        rows = rows_of(self.id, 60, start, samples, self._before)
        self._before = samples[-1]
        self.minute = {str(one["quantity"]): one for one in rows}
        rtt = self.minute.get("rtt_s")
        if rtt is not None:
            self.latest["loss"] = rtt["lost"] / max(1, rtt["count"] + rtt["lost"])
        if "jitter_s" in self.minute:
            self.latest["jitter_s"] = self.minute["jitter_s"]["mean"]
        hour = start // 3600 * 3600
        if self._hour is not None and hour != self._hour:
            self.hours_due.append(self._hour)
        self._hour = hour
        if self._summarised is None or self._summarised - start > journal.DAY_S:
            # After a clock that was a day or more ahead, nothing is made again.
            self._summarised = start
        self._summarised = max(start, self._summarised)
        return rows

    def hour_rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows of hours that are over, made of the journal."""
        while self.hours_due:
            start = self.hours_due.pop()
            path = journal.journal_path(self.folder, journal.day_of(start))
            inside = [one for one in journal.read(path, start) if one.sent_ns < (start + 3600) * 10**9]
            if inside:
                yield from rows_of(self.id, 3600, start, inside, None)

    def _detect(self, one: Sample) -> list[Found]:
        """Give a sample to the detectors; return what they found."""
        at_s = one.sent_ns / 1e9
        self._detected_ns = one.sent_ns
        found: list[Found] = []
        done = self._bin.add(one)
        if done:
            self._bins.append(done)
            self.late = bins.late_shares(done)
            values = bins.values_of(done)
            if self._reference_s is None and "rtt_s" in values:
                self._reference_s = values["rtt_s"] / 2
                for quantity in OF_ONE_WAY:
                    self._detector(quantity, self._bin.span_s, {})
            for quantity, value in values.items():
                found += self._feed(quantity, done[-1].sent_ns / 1e9, value)
        found += self._detect_silence(one)
        if not self._is_silent:
            # Packets of an outage are no loss: silence says it all.
            self.losses.add(one)
            found += self._feed("loss", at_s, float(one.is_lost))
        return found

    def _detect_silence(self, one: Sample) -> list[Found]:
        found = []
        for _, change in self._feed("answer", one.sent_ns / 1e9, None if one.is_lost else 1.0):
            self._is_silent = change["kind"] == "silent"
            found.append(("silence", change))
        return found

    def _feed(self, quantity: str, at_s: float, value: float | None) -> list[Found]:
        detector = self.detectors.get(quantity)
        text = None if detector is None else detector.handle_sample(at_s, value)
        if text is None:
            return []
        change = json.loads(text)
        if quantity == "answer" and change["kind"] not in ("silent", "answered"):
            return []
        return [(quantity, change)]

    def handle_outcome(self, at_s: float, outcome: dict[str, Any]) -> list[Found]:
        """Take a path test's outcome; return changes."""
        found = []
        for one in outcome["estimates"]:
            is_of_samples = one["quantity"] in (*OF_BINS, *OF_PACKETS)
            if is_of_samples and self.spec.stamp() is not None:
                # The on-going test's are of more packets.
                continue
            self.latest[one["quantity"]] = one["value"]
            if not is_of_samples:
                found += self._feed(one["quantity"], at_s, one["value"])
        return found

    def benchmark(self, quantity: str, at_s: float) -> tuple[float, float, float] | None:
        """Return what is usual: low, middle, high."""
        detector = self.detectors.get(quantity)
        found: tuple[float, float, float] | None = None if detector is None else detector.benchmark(at_s)
        return found

    def delays(self, since_s: float) -> tuple[dict[str, float] | None, dict[str, float] | None]:
        """Return least, median and 95th percentile of the RTT before a change and since."""
        before = [one for one in self._bins if one[-1].sent_ns < since_s * 1e9]
        # The change may have begun within the last of them.
        was = bins.delays_of(_newest(before[:-1] or before))
        minute = self.minute.get("rtt_s")
        if was is None and minute is not None and minute["count"]:
            was = {"min_s": minute["min"], "median_s": minute["p50"], "p95_s": minute["p95"]}
        after = [one for one in self._bins if one[-1].sent_ns >= since_s * 1e9]
        return was, bins.delays_of(_newest(after) or self._samples[-DELAYS_LEAST:])

    def is_path_longer(self, before_s: float, after_s: float) -> bool:
        """Return True if the least RTT rose by about as much as the RTT: a busy host delays some packets, not all."""
        least_s = bins.least_s(self._bins[-1]) if self._bins else None
        return least_s is not None and 0 < (1 - SAME_RISE) * (after_s - before_s) <= least_s - before_s

    def is_save_due(self, now_s: float) -> bool:
        """Return True once in `SAVE_S` of a clock that never steps."""
        if now_s - self._saved_s < SAVE_S:
            return False
        self._saved_s = now_s
        return True

    def close(self) -> None:
        """Write all that is there."""
        self.save()
        self.journal.close()


def _newest(done: Sequence[Sequence[Sample]]) -> list[Sample]:
    """Return the samples of the newest bins: of as few as have `DELAYS_LEAST` samples together."""
    found: list[Sample] = []
    for one in reversed(done):
        found = [*one, *found]
        if len(found) >= DELAYS_LEAST:
            break
    return found


QUANTITIES_OF = {
    "capacity": ("capacity_bps",),
    "available": ("available_bps",),
    "throughput": ("throughput_bps",),
    "queue": ("queue_bytes",),
    "policer": ("policer_rate_bps",),
    "hops": ("hops",),
    "mtu": ("path_mtu_bytes",),
}
"""Quantities of path tests that have a detector."""


def rows_of(
    identity: int, seconds: int, start: int, samples: Sequence[Sample], before: Sample | None
) -> list[dict[str, Any]]:
    """Return the rows of `monitor_summary` for an interval's samples; `before` is the one before the first."""
    rtt, forward, reverse, jitter = [], [], [], []
    last = None if before is None or before.is_lost else before.rtt_ns
    for one in samples:
        if one.rtt_ns <= LOST:
            last = None
            continue
        rtt.append(one.rtt_ns / 1e9)
        if last is not None:
            # Difference of the delays of packets that follow each other (RFC 3393).
            jitter.append(abs(one.rtt_ns - last) / 1e9)
        last = one.rtt_ns
        if one.forward_ns != UNKNOWN:
            forward.append(one.forward_ns / 1e9)
            reverse.append((one.rtt_ns - one.forward_ns) / 1e9)
    lost = len(samples) - len(rtt)
    found = [row(identity, "rtt_s", seconds, start, sorted(rtt), lost)]
    for quantity, values in (("forward_delay_s", forward), ("reverse_delay_s", reverse), ("jitter_s", jitter)):
        if values:
            found.append(row(identity, quantity, seconds, start, sorted(values), lost))
    return found

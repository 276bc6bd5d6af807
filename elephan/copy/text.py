"""A copy in words: its progress in one line, its end in some."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from elephan import units
from elephan.units import pluralize

RECENT_S = 5.0
"""The rate now is that of so many seconds."""
BAND_S = 60.0
"""The band of the time left comes from so many seconds: in pieces of `RECENT_S`, the slowest and the fastest."""
FAULTS_SHOWN = 20
"""Faults that the end of a copy lists; the receipt has them all."""


class Progress:
    """The line of a copy that runs, from its events."""

    def __init__(self, line_bps: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin; `line_bps` is the path's rate where it is known."""
        self.line_bps = line_bps
        self._clock = clock
        self._began_s = clock()
        self._seen: deque[tuple[float, int]] = deque()
        """Time and bytes done."""
        self._complete = False
        self._last: dict[str, Any] = {}

    def take(self, event: Mapping[str, Any]) -> None:
        """Take an event."""
        match event["event"]:
            case "connected":
                self._began_s = self._clock()
                self._seen.clear()
            case "scanned":
                self._complete = event["complete"]
            case "advice":
                self.line_bps = event["facts"]["rate_bps"]
            case "progress":
                now_s = self._clock()
                self._last = dict(event)
                self._seen.append((now_s, event["sent_bytes"]))
                while len(self._seen) > 2 and self._seen[0][0] < now_s - BAND_S:
                    self._seen.popleft()

    def rate_bps(self) -> float | None:
        """Return the rate of data on the path now, bit/s."""
        return self._rate_since(self._seen[-1][0] - RECENT_S) if len(self._seen) > 1 else None

    def mean_bps(self) -> float | None:
        """Return the mean rate of this attempt, bit/s."""
        spent_s = self._clock() - self._began_s
        return self._last["sent_bytes"] * 8 / spent_s if self._last and spent_s > 0 else None

    def left_s(self) -> tuple[float, float, float] | None:
        """Return the time left: low, middle, high, s; None while the sources are not all seen."""
        if not self._complete or len(self._seen) < 2:
            return None
        left = (self._last["bytes_total"] - self._last["bytes_done"]) * 8
        middle = self._rate_since(self._seen[0][0])
        rates = [rate for rate in self._pieces() if rate > 0]
        if not middle or not rates:
            return None
        return left / max(*rates, middle), left / middle, left / min(*rates, middle)

    def _rate_since(self, time_s: float) -> float | None:
        first = next((one for one in reversed(self._seen) if one[0] <= time_s), self._seen[0])
        last = self._seen[-1]
        return (last[1] - first[1]) * 8 / (last[0] - first[0]) if last[0] > first[0] else None

    def _pieces(self) -> list[float]:
        rates, first = [], self._seen[0]
        for one in self._seen:
            if one[0] - first[0] >= RECENT_S:
                rates.append((one[1] - first[1]) * 8 / (one[0] - first[0]))
                first = one
        return rates

    def line(self) -> str:
        """Return the line; empty before there is progress."""
        if not self._last:
            return ""
        last = self._last
        of = units.size(last["bytes_total"]) if self._complete else f"{units.size(last['bytes_total'])} so far"
        done = last["bytes_done"] / last["bytes_total"] if self._complete and last["bytes_total"] else None
        parts = [f"{units.size(last['bytes_done'])} of {of}" + (f" ({units.share(done)})" if done is not None else "")]
        if last["files_total"] > 1:
            # The walk of the sources counts on.
            so_far = "" if self._complete else " so far"
            parts.append(f"{units.count(last['files_done'])} of {units.count(last['files_total'])} files{so_far}")
        if (rate := self.rate_bps()) is not None:
            of_line = f" ({units.share(rate / self.line_bps)} of the line)" if self.line_bps else ""
            parts.append(f"now {units.rate(rate)}{of_line}")
        if (mean := self.mean_bps()) is not None:
            parts.append(f"mean {units.rate(mean)}")
        if (left := self.left_s()) is not None:
            parts.append(f"{units.duration(round(left[1]))} left ({_spread(left[0], left[2])})")
        return ", ".join(parts)

    def detail(self) -> list[str]:
        """Return a line for each stream."""
        lines = []
        for number, stream in enumerate(self._last.get("streams", ())):
            told = [f"stream {number}", units.size(stream["sent_bytes"])]
            told += [] if stream.get("rtt_s") is None else [f"RTT {units.duration(stream['rtt_s'])}"]
            told += [] if stream.get("window_bytes") is None else [f"window {units.size(stream['window_bytes'])}"]
            if stream.get("retransmitted") is not None:
                told.append(f"{pluralize(stream['retransmitted'], 'packet')} sent again")
            told += [] if stream["active"] else ["waits"]
            lines.append(", ".join(told))
        return lines


def _spread(low_s: float, high_s: float) -> str:
    return units.duration_range(round(low_s), round(high_s))


def entries(number: int) -> str:
    """Return a number of entries in words."""
    return "1 entry" if number == 1 else f"{units.count(number)} entries"


def event_line(event: Mapping[str, Any]) -> str | None:
    """Return the line of an event that people should see at once; None for the others."""
    match event["event"]:
        case "lost":
            return f"attempt {event['attempt']}: {event['text']}; trying again in {units.duration(event['wait_s'])}"
        case "note":
            return str(event["text"])
        case "fault":
            return f"not copied: {event['path']}: {event['reason']}"
        case "connected" if event["resumed_bytes"] and not event.get("after_comparison"):
            return "resumes where it stopped"
        case "advice":
            return "\n".join(event["lines"])
        case "decision":
            return f"{units.duration(event['now_s'])}: {event['reason']}"
    return None


def done_lines(receipt: Mapping[str, Any], file: str) -> list[str]:
    """Return the lines of a copy's end."""
    faults, more = receipt["faults"], receipt["faults_more"]
    lines = [f"not copied: {fault['path']}: {fault['reason']}" for fault in faults[:FAULTS_SHOWN]]
    if (hidden := len(faults) - FAULTS_SHOWN + more) > 0:
        lines.append(f"... and {hidden} more, see the receipt")
    reused = f", {units.size(receipt['reused_bytes'])} were there" if receipt["reused_bytes"] else ""
    tries = f", {pluralize(len(receipt['attempts']), 'attempt')}" if len(receipt["attempts"]) > 1 else ""
    removed = f", {units.count(receipt['removed'])} removed at the destination" if receipt["removed"] else ""
    took = f"in {units.duration(receipt['seconds'])}"
    sent = f"{units.size(receipt['sent_bytes'])} sent"
    if receipt["sent_bytes"]:
        sent += f" in {units.duration(receipt['data_s'])} at {units.rate(receipt['goodput_bps'])}{_used(receipt)}"
    lines.append(
        f"{pluralize(receipt['files'], 'file')}, {units.size(receipt['bytes'])} {took}: {sent}{reused}{removed}{tries}"
    )
    if unread := receipt["unread_files"]:
        lines.append(f"{pluralize(unread, 'file')} unchanged by size and time, not read (--checksum reads)")
    lines.append(f"root {receipt['root']}")
    lines.append(f"receipt {file}")
    return lines


def _used(receipt: Mapping[str, Any]) -> str:
    """Return the streams and their control, where both are known."""
    used = receipt["used"]
    streams = pluralize(used["streams"], "stream")
    return f" by {streams} of {used['control']}" if used.get("control") else f" by {streams}"


def stopped_line(durable_bytes: int | None) -> str:
    """Return the line of a copy that a signal has stopped."""
    there = "nothing is" if not durable_bytes else f"{units.size(durable_bytes)} are"
    return f"stopped: {there} durable at the destination; the same command continues from there"


def verified_lines(found: Mapping[str, Any]) -> list[str]:
    """Return the lines of a side that was checked again."""
    lines = [f"{one['path']}: {one['reason']}" for one in found["differences"][:FAULTS_SHOWN]]
    if (hidden := len(found["differences"]) - FAULTS_SHOWN + found["differences_more"]) > 0:
        lines.append(f"... and {hidden} more")
    where = f"{found['side']} at {found['host'] or 'this machine'}"
    bad = len(found["differences"]) + found["differences_more"]
    checked = f"{entries(found['entries'])}, {units.size(found['bytes'])} read"
    took = f"in {units.duration(found['seconds'])}"
    differ = f"{entries(bad)} {'differs' if bad == 1 else 'differ'} from the receipt"
    said = "all match the receipt" if bad == 0 else differ
    lines.append(f"{where}: {checked} {took}: {said}")
    if found["without_hash"]:
        lines.append(
            f"{pluralize(found['without_hash'], 'file')} without a hash: of the same size and time before the copy, "
            "which did not read them (elephan copy --checksum does)"
        )
    lines.append(f"signature: {found['signature'] or 'none'}")
    return lines


def listed_lines(
    unfinished: list[dict[str, Any]], receipts: list[dict[str, Any]], limit: int | None = None
) -> list[str]:
    """Return the lines of `elephan copy list`: of the receipts, which are newest first, `limit` at most."""

    def towards(one: Mapping[str, Any]) -> str:
        return f"{' '.join(one['sources'])} -> {one['destination']}"

    lines = [f"{one['copy'][:12]}  not done, begun {one['began']}  {towards(one)}" for one in unfinished]
    for one in receipts[:limit]:
        bad = len(one["faults"]) + one["faults_more"]
        what = f"{units.size(one['bytes'])}, {pluralize(one['files'], 'file')}" + (f", {bad} not copied" if bad else "")
        lines.append(f"{one['copy'][:12]}  {one['ended']}  {towards(one)}  {what}  {one['file']}")
    if limit is not None and (older := len(receipts) - limit) > 0:
        lines.append(f"... and {pluralize(older, 'older receipt')}: --all")
    return lines or ["no copies"]


def _removal_lines(removals: Mapping[str, Any]) -> list[str]:
    count, limit = removals["count"], removals["limit"]
    lines = [f"would remove {path}" for path in removals["paths"]]
    if (hidden := count - len(removals["paths"])) > 0:
        lines.append(f"... and {hidden} more")
    if count > limit:
        lines.append(f"{entries(count)} to remove, more than {limit}: none would be; --max-removals {count} allows it")
    else:
        lines.append(f"{entries(count)} to remove at the destination")
    return [*lines, *removals["notes"]]


def dry_run_lines(found: Mapping[str, Any]) -> list[str]:
    """Return the lines of a copy that was not made."""
    lines = [
        f"{' '.join(found['sources'])} -> {found['destination']}",
        f"{pluralize(found['files'], 'file')}, {units.size(found['bytes'])} in {entries(found['entries'])}",
    ]
    lines += [f"not readable: {fault['path']}: {fault['reason']}" for fault in found["faults"][:FAULTS_SHOWN]]
    if (removals := found.get("removals")) is not None:
        lines += _removal_lines(removals)
    if found.get("forecast") is not None:
        lines.append(found["forecast"]["text"])
    return [*lines, *found["notes"]]

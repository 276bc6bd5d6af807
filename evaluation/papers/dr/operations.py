"""Section 3.1: the operations of disaster recovery, and section 1: jobs that need several attempts."""

from __future__ import annotations

import math
from collections.abc import Mapping

from elephan.papers.evaluation import Evaluation, PaperResults, Table, part
from elephan.papers.spread import Measured, Spread, shown
from elephan.record import Record
from elephan.units import duration

from .transfers import POLICED, READINGS, STATED, UNTUNED_BYTES, spreads_of

CLAIM = "dr.operations"

FIRST, INCREMENT, MIRROR, RESTORE = "first", "increment", "mirror", "restore"

NAMES = {
    FIRST: "first copy, 2 TB",
    INCREMENT: "daily increment, 300 MB",
    MIRROR: "mirroring, 100 MB of images of 20 to 40 kB",
    RESTORE: "restore, 2 TB",
}

PAPER_BYTES_PER_S = 1.3e6
"""The paper's optimum of ten streams (section 4.2)."""

ATTEMPTS = 3
"""Attempts that 94.5 % of the successful jobs needed at most, as the paper quotes (section 1)."""
PAPER_SHARE = 0.945

OUTAGES_PER_DAY = (0.1, 1.0, 10.0, 100.0, 1000.0)

_DAY_S = 86_400.0

Times = Mapping[tuple[str, str], Spread]
"""Seconds by path and operation."""


def operation(record: Record) -> str:
    """Return which of the operations a run is."""
    flow = record.spec["flows"][0]
    workload = flow["workload"]
    assert workload["kind"] == "copy", "a copy"
    if workload["jobs"] > 1:
        return MIRROR
    if workload["files"][0]["min_bytes"] < 10**8:
        return INCREMENT
    # Nodes are left and right; data is restored the other way.
    return FIRST if flow["source"] == 0 else RESTORE


def reading(record: Record) -> str:
    """Return which of the two readings of the path, whichever way the data goes."""
    return POLICED if any("policer" in link for link in record.spec["links"]) else STATED


def seconds_of(record: Record) -> float:
    """Return how long a run's copy takes, or the longest of its jobs, s. Raises KeyError: it has no such time."""
    metrics = record.metrics
    seconds = metrics["job_max_s" if operation(record) == MIRROR else "completion_s"]
    assert seconds is not None, "it ended"
    return float(seconds)


def within(attempts: int, outages: float) -> float:
    """Return the share of jobs that end within so many attempts when `outages` end one on average while it copies, and
    each attempt goes on where the last one ended: outages are Poisson's.
    """
    return sum(math.exp(-outages) * outages**number / math.factorial(number) for number in range(attempts))


def within_anew(attempts: int, outages: float) -> float:
    """Return the same where each attempt begins anew: one of them has to come through without an outage."""
    # Shares far below one keep their digits.
    through = math.exp(-outages)
    return -math.expm1(attempts * math.log1p(-through)) if through < 1 else 1.0


def outages_for(share: float, attempts: int) -> float:
    """Return the outages per job with which `share` of the jobs end within so many attempts, where they go on."""
    low, high = 0.0, 1e3
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if within(attempts, middle) > share else (low, middle)
    return low


@part("operations.toml")
def operations(results: PaperResults) -> Evaluation:
    """Times of each operation over both readings of the path, and attempts by how often the path is interrupted."""
    records = results.of("operations.toml")
    found = spreads_of((_point(record), seconds_of(record)) for record in records)
    tuned, untuned = ({key: found[key, large] for key, large in found if large is wanted} for wanted in (True, False))
    mirrors = [record for record in records if operation(record) == MIRROR]
    measured: dict[str, Measured] = {
        "first_paper_h": 2e12 / PAPER_BYTES_PER_S / 3600,
        "first_line_h": hours(tuned[STATED, FIRST]),
        "first_policer_h": hours(tuned[POLICED, FIRST]),
        "restore_line_h": hours(tuned[STATED, RESTORE]),
        "increment_h": hours(_longest(tuned, INCREMENT)),
        "mirror_h": hours(_longest(tuned, MIRROR)),
        "two_hours_h": 2.0,
        "day_h": 24.0,
        "late_jobs": float(sum(record.metrics["late_jobs"] or 0 for record in mirrors)),
        "outages_per_job": outages_for(PAPER_SHARE, ATTEMPTS),
    }
    return Evaluation({CLAIM: measured}, [], [_times(tuned, untuned), _attempts(tuned)])


def _point(record: Record) -> tuple[tuple[str, str], bool]:
    """Return path and operation, and whether the window is tuned."""
    window_bytes = record.spec["flows"][0]["transport"]["window_bytes"]
    return (reading(record), operation(record)), window_bytes > UNTUNED_BYTES


def _longest(found: Times, wanted: str) -> Spread:
    return max((times for (_, what), times in found.items() if what == wanted), key=lambda times: times.median)


def hours(seconds: Spread) -> list[float]:
    """Return times in hours."""
    return [value / 3600 for value in seconds.values]


def _times(tuned: Times, untuned: Times) -> Table:
    rows = [
        (f"{NAMES[what]}, {READINGS[path]}", _shown(untuned[path, what]), _shown(tuned[path, what]))
        for path in (STATED, POLICED)
        for what in NAMES
        if (path, what) in tuned
    ]
    return Table(
        CLAIM,
        "Time from the first connection to the end",
        ("operation, path", "window 65,535 B", "window 184,320 B"),
        tuple(rows),
        "Four streams of Reno over the line, ten behind the policer; of mirroring the longest of twelve jobs, "
        "one every two hours. 2 TB are extrapolated from 1.5 GB. Medians of five seeds, with least and largest.",
    )


def _shown(times: Spread) -> str:
    """Return the median, with the range where one shows."""
    middle, low, high = duration(times.median), duration(times.low), duration(times.high)
    return middle if low == high else f"{middle} ({low} to {high})"


def _attempts(tuned: Times) -> Table:
    rows = []
    for what in (MIRROR, INCREMENT, FIRST):
        days = tuned[STATED, what].median / _DAY_S
        shares = [(within(ATTEMPTS, days * rate), within_anew(ATTEMPTS, days * rate)) for rate in OUTAGES_PER_DAY]
        rows.append((NAMES[what], *(f"{100 * on:.1f} / {100 * anew:.1f} %" for on, anew in shares)))
    per_job = outages_for(PAPER_SHARE, ATTEMPTS)
    often = ", ".join(
        f"{shown(per_job / tuned[STATED, what].median * _DAY_S)} a day for the {NAMES[what].split(',')[0]}"
        for what in (MIRROR, INCREMENT, FIRST)
    )
    return Table(
        CLAIM,
        f"Jobs that end within {ATTEMPTS} attempts, over the line",
        ("outages a day", *(f"{rate:g}" for rate in OUTAGES_PER_DAY)),
        tuple(rows),
        f"Each attempt goes on where the last one ended / each begins anew. Outages end an attempt at random times. "
        f"The quoted 94.5 % would be {per_job:.2f} outages for each job: {often}.",
    )

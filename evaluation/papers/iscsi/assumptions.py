"""Assumptions that decide the order of the congestion controls: the session of figure 7 with one thing changed at a
time."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from elephan.papers.evaluation import Evaluation, PaperResults, Table, part
from elephan.record import Record

from .connections import CLAIM
from .session import CCS, cc_of, connections_of, drops, throughput

AS_FIGURE = "as figure 7"

CHANGES: Mapping[str, str] = {
    "flow.recovery=newreno": "no SACK",
    "flow.recovery=rack": "RACK-TLP and PRR",
    "flow.delayed_ack=true": "delayed ACKs",
    "flow.initial_ssthresh=190": "first threshold half of line and queue",
    "flow.slow_start_after_idle=false": "window kept over idle times",
    "flow.rto_min=1s": "time-out of 1 s at least",
    "path.queue=1bdp": "queue of rate x RTT",
    "flow.workload.source.reads=0": "writes alone: nothing flows back",
    "flow.workload.source.size=64KiB": "32 requests of 64 KiB",
    "flow.workload.queue_depth=32": "32 requests under way",
    "flow.workload.disk=none": "a medium that takes no time",
    'flow.workload.source="postmark"': "Postmark, 64 disks",
    'sweep.flow.congestion_control=[{ name = "bic", beta = 0.875, max_increment = 32 }]': (
        "BIC with its authors' constants"
    ),
    'sweep.flow.congestion_control=[{ name = "htcp", rtt_scaling = false }]': "H-TCP without RTT scaling",
    'sweep.flow.congestion_control=[{ name = "htcp", adaptive_backoff = false }]': "H-TCP that always halves",
}
"""First of the keys that an entry of claims.toml sets, and what it is in words."""


def change_of(record: Record) -> str:
    """Return what was changed for a record, in words."""
    given = record.scenario.overrides
    if not given:
        return AS_FIGURE
    if len(given) > 3:
        return "today: all that Linux has"
    return next((words for key, words in CHANGES.items() if key in given), ", ".join(given))


@part("assumptions.toml")
def assumptions(results: PaperResults) -> Evaluation:
    """A row per change: throughput and drops of each congestion control with one connection and with five."""
    found: dict[str, dict[tuple[str, int], Record]] = {}
    for record in results.of("assumptions.toml"):
        found.setdefault(change_of(record), {})[cc_of(record), connections_of(record)] = record
    points = [(cc, n) for n in (1, 5) for cc in CCS]
    heads = ("changed", *(f"{CCS[cc][0]}, {n}" for cc, n in points))
    forms: tuple[tuple[str, Callable[[Record], str]], ...] = (
        ("One assumption changed: throughput, MB/s", lambda record: f"{throughput(record):.2f}"),
        ("One assumption changed: packets dropped", lambda record: str(drops(record))),
    )
    tables = [
        Table(
            CLAIM,
            title,
            heads,
            tuple(
                (change, *(form(records[point]) if point in records else "" for point in points))
                for change, records in found.items()
            ),
            "The session of figure 7 for 300 s; congestion control and number of connections.",
        )
        for title, form in forms
    ]
    return Evaluation({}, [], tables)

"""Pages for layout tests: made of records by hand, the same on every machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from elephan.api import Results
from elephan.compare.page import write as write_comparison
from elephan.compare.rank import ranked
from elephan.compare.repetitions import Plan
from elephan.compare.run_metrics import Measured, Run
from elephan.compare.running import Comparison
from elephan.papers.catalogue import find
from elephan.papers.evaluation import Evaluation
from elephan.papers.page import render
from elephan.papers.verdict import judge
from elephan.record import Record
from elephan.report.html import write_report
from elephan.report.metrics import HEADLINE, metric
from elephan.store.series import Series
from elephan.sweep.executor import Outcome

Make = Callable[..., Any]

CCS = ("reno", "cubic", "storage_friendly", "storage_friendly(congestion_avoidance=off)")

MANY = (
    *("bbr", "bic", "compound", "cubic", "fast", "highspeed", "htcp", "illinois", "ledbat_plus_plus", "reno"),
    *("scalable", "storage_friendly", "vegas", "westwood"),
)

PER_MILLE = [0.0, 10.0, 100.0, 250.0, 500.0, 750.0, 900.0, 990.0, 1000.0]

VALUES = {
    "bit/s": 8.12e8,
    "B": 8_388_608.0,
    "s": 0.0123,
    "1": 0.812,
    "B/s": 9.1e7,
    "packets": 241_936,
    "segments": 7032,
}
"""Of each unit one whose text is long."""


def full(number: int) -> dict[str, float]:
    """Return every metric that a table may show; the last of them ends with 10, 17, 32, 70."""
    found = {name: VALUES.get(metric(name).unit, 123_456.0) * (1 + number / 7) for name in HEADLINE}
    return found | {"dropped_packets": (10, 17, 32, 70)[number % 4]}


def wide(make_record: Make, make_series: Make, folder: Path) -> Path:
    """Return a report with as many columns as there can be, a sentence to know, and figures of all kinds."""
    series: dict[str, Series] = {}
    records: list[Record] = []
    for number, cc in enumerate(CCS):
        record = make_record(
            cc, goodput=(number + 1) * 1e8, lag=9 / (number + 1) ** 2, notes=["3 writes never arrived"]
        )
        table = [0.03 * (1 + number) * 2**place for place in range(len(PER_MILLE))]
        changes = {"metrics": record.metrics | full(number), "quantiles": {"per_mille": PER_MILLE, "lag_s": table}}
        records.append(record.model_copy(update=changes))
        series[record.id] = make_series(scale=1 / (1 + number))
    return write_report(records, lambda record: series[record.id], folder).html


def long(make_record: Make, folder: Path) -> Path:
    """Return the report of a sweep of many points with repetitions, without series."""
    records = [
        make_record(cc, seed=seed, goodput=goodput * (1 + seed / 50 - 500 * loss), parameters={"path.loss": loss})
        for cc, goodput in zip(CCS, (1.5e8, 1.9e8, 3.6e8, 3.9e8), strict=True)
        for loss in (0.0, 1e-6, 1e-5, 3e-5, 1e-4, 1e-3)
        for seed in (1, 2, 3)
    ]
    return write_report(records, lambda _: None, folder).html


def comparison(make_record: Make, make_series: Make, folder: Path) -> Path:
    """Return the page of a comparison of all congestion controls, several of which do much the same."""
    rows = ranked([measured(number, cc) for number, cc in enumerate(MANY)], "goodput")
    outcomes = []
    for number, row in enumerate(rows):
        for seed in (1, 2, 3):
            record = described(make_record(row.cc, seed=seed))
            series = make_series(count=600, scale=1 / (1 + number))
            outcomes.append(Outcome(None, record, series, True))  # type: ignore[arg-type]
    results = Results(outcomes, None)
    plan = Plan(3, wanted=5)
    done = Comparison(tuple(rows), "goodput", results, results, "Many of them", "neighbour", plan=plan)
    return write_comparison(done, folder)[0]


def paper(folder: Path) -> Path:
    """Return the page of a paper, every value as the paper has it."""
    found = find("dsan")
    claims = [claim for claim in found.claims if claim.runs]
    values = [
        {item.name: item.paper for item in claim.value}
        | {name: float(place) for order in claim.order for place, name in enumerate(order.rising)}
        for claim in claims
    ]
    judged = [judge(claim, numbers) for claim, numbers in zip(claims, values, strict=True)]
    (folder / "paper.html").write_text(render(found, judged, Evaluation(), []))
    return folder / "paper.html"


def measured(number: int, cc: str) -> Measured:
    """Return numbers of three seeds; those of the first eight lie close together."""
    rng = np.random.default_rng(number)
    goodput = 9.4e8 - 4e6 * number if number < 8 else 8e8 - 9e7 * (number - 8)
    kept = 1.0 + 0.015 * number if number < 8 else 0.1 * number
    runs: Sequence[Run] = [
        Run(
            goodput_bps=goodput * (1 + 0.004 * float(noise)),
            line_share=goodput / 1e9,
            offered_share=None,
            load_share=None,
            caused_drops=300 + 700 * number,
            line_drops=12,
            sent_segments=2_400_000,
            retransmitted_segments=312 + 700 * number,
            timeouts=0,
            recoveries=2,
            rtt_mean_s=0.041 + 0.002 * number,
            rtt_min_s=0.04,
            lag_p99_s=None,
            latency_p99_s=None,
            completion_s=None,
            window_packets=3000,
            neighbour_bps=4e7 * kept * (1 + 0.02 * float(noise)),
            fair_bps=4e7,
        )
        for noise in rng.normal(size=3)
    ]
    if cc == "reno":
        runs = [replace(run, neighbour_bps=run.fair_bps) for run in runs]
    return Measured(cc, tuple(runs), 3333.0, False)


def described(record: Record) -> Record:
    """Return a record with the part of a specification that the page of a comparison reads."""
    loss = {"kind": "independent", "probability_e12": 10**6}
    links = [link | {"delay_ns": 20_000_000, "loss": loss} for link in record.spec["links"]]
    flows = [
        flow | {"transport": flow["transport"] | {"mtu_bytes": 1500, "window_bytes": 15_000_000}}
        for flow in record.spec["flows"]
    ]
    return record.model_copy(update={"spec": record.spec | {"links": links, "flows": flows}})

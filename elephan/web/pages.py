"""The HTML of each page: templates, and the values that they show."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elephan import units
from elephan.monitor.reading import TESTS, AlertView, MonitorReader, OutcomeView, PathState
from elephan.record import Record
from elephan.store.database import Damaged
from elephan.web import drawing
from elephan.web.asked import AskedTests
from elephan.web.guard import Visit
from elephan.web.quantities import CHARTS, QUANTITIES, quantity
from elephan.web.runs import PAGE, SHOWN, Row
from elephan.web.window import SPANS, Window, ago, around, iso, moment

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

TEMPLATES = Path(__file__).parent / "page"
STATIC = Path(__file__).parent / "static"

NAVIGATION = (
    ("/", "Paths"), ("/alerts", "Alerts"), ("/backups", "Backups"), ("/runs", "Runs"), ("/ledger", "Ledger"),
)  # fmt: skip
"""Parts of the site: a new one is one line here and its pages."""

THEMES = ("light", "dark")

SPARK_S = 7 * 86400.0
"""Span of the small curves: a week of hourly summaries, which are read in a millisecond a path."""

SPARK_POINTS = 170

SPARK_AGE_S = 300.0
"""Time for which a small curve is kept: it has a point an hour."""

TESTS_S = 30 * 86400.0
"""Age of the oldest outcome that a path's page shows as its test's newest."""

TILES = (
    "rtt_s", "loss", "jitter_s", "available_bps", "capacity_bps", "throughput_bps", "queue_delay_s", "path_mtu_bytes",
    "hops", "ttl",
)  # fmt: skip
"""Quantities whose newest value stands at the top of a path's page, where there is one."""


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.globals |= {
        "address": drawing.address,
        "around": around,
        "iso": iso,
        "moment": moment,
        "quantity": quantity,
        "sign": drawing.sign,
        "static": static,
        "units": units,
        "words": drawing.WORDS,
    }
    return environment


@cache
def static(name: str) -> str:
    """Return the URL of a file, which changes when the file does: so browsers may keep it for ever."""
    digest = hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]
    return f"/static/{name}?{digest}"


def page(template: str, visit: Visit, here: str, **values: Any) -> str:
    """Return a page; `here` is the part of the site that it belongs to."""
    theme = visit.cookies.get("theme", "")
    return _environment().get_template(template).render(
        visit=visit, here=here, theme=theme if theme in THEMES else "", navigation=NAVIGATION, now_s=time.time(),
        **values,
    )  # fmt: skip


@dataclass(frozen=True)
class PathRow:
    """A path in the table below the map."""

    path: PathState
    spark: Markup
    seen: str


ROW = ("rtt_s", "loss", "jitter_s", "available_bps", "capacity_bps")
"""Quantities in the table below the map."""


class Sparks:
    """The small curves of the last week, drawn anew every `SPARK_AGE_S`."""

    def __init__(self, reader: MonitorReader) -> None:
        self._reader = reader
        self._drawn: dict[int, tuple[float, Markup]] = {}

    def of(self, path: PathState, now_s: float) -> Markup:
        """Return a path's curve."""
        drawn_s, curve = self._drawn.get(path.id, (-math.inf, None))
        if curve is None or now_s - drawn_s > SPARK_AGE_S:
            week = self._reader.series(path.id, "rtt_s", now_s - SPARK_S, now_s, SPARK_POINTS)
            curve = drawing.spark(week.times, week.mid, now_s - SPARK_S, now_s)
            self._drawn[path.id] = (now_s, curve)
        return curve


def overview(visit: Visit, reader: MonitorReader, sparks: Sparks) -> str:
    """Return the map of paths, and their table."""
    now_s = time.time()
    paths = reader.paths()
    rows = [PathRow(path, sparks.of(path, now_s), ago(path.last_sample_s, now_s)) for path in paths]
    states = [path.state for path in paths]
    return page(
        "overview.html.j2",
        visit,
        "/",
        rows=rows,
        columns=[QUANTITIES[name] for name in ROW],
        counts=[(state, states.count(state)) for state in drawing.WORDS if state in states],
        alerts=alerts_shown(reader.alerts(open_only=True, limit=20), paths),
        wide=drawing.wide_map(paths),
        narrow=drawing.narrow_map(paths),
    )


@dataclass(frozen=True)
class AlertRow:
    """An alert for a page."""

    alert: AlertView
    url: str
    """Of its path, at its time."""
    lasted: str
    evidence: list[tuple[str, str]]


def alerts_shown(alerts: Sequence[AlertView], paths: Sequence[PathState]) -> list[AlertRow]:
    """Return alerts for a page."""
    now_s = time.time()
    by_id = {path.id: path for path in paths}
    rows = []
    for alert in alerts:
        window = around(alert.since_s, min(now_s, alert.ended_s or now_s))
        path = by_id.get(alert.path_id)
        url = f"{drawing.address(path)}?{window.query}" if path is not None else ""
        lasted = units.duration(max(0.0, (alert.ended_s or now_s) - alert.since_s))
        rows.append(AlertRow(alert, url, lasted, _evidence(alert)))
    return rows


def _evidence(alert: AlertView) -> list[tuple[str, str]]:
    """Return what an alert rests on, as words."""
    show = quantity(alert.quantity).show
    rows = []
    for name, value in alert.evidence.items():
        words = name.replace("_", " ")
        if name in ("before", "after", "benchmark", "value") and isinstance(value, int | float):
            rows.append((words, show(value)))
        elif isinstance(value, float):
            rows.append((words, units.plain(value)))
        elif isinstance(value, dict | list):
            rows.append((words, _words(value)))
        elif value is not None:
            rows.append((words, str(value)))
    return rows


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {_words(part)}" for name, part in value.items())
    if isinstance(value, list):
        return "; ".join(map(_words, value))
    return units.plain(value) if isinstance(value, float) else str(value)


def alerts_page(visit: Visit, reader: MonitorReader, open_only: bool) -> str:
    """Return the list of alerts."""
    rows = alerts_shown(reader.alerts(open_only=open_only, limit=200), reader.paths())
    return page("alerts.html.j2", visit, "/alerts", rows=rows, open_only=open_only)


@dataclass(frozen=True)
class Outcome:
    """The newest outcome of a path test."""

    test: str
    when: str
    estimates: list[tuple[str, str]]
    refused: str
    notes: list[str]
    cost: str


def path_page(visit: Visit, reader: MonitorReader, path: PathState, window: Window, asked: AskedTests) -> str:
    """Return the page of one path; its charts are drawn in the browser."""
    now_s = time.time()
    agreed = path.settings.get("benchmark") or {}
    tiles = [
        (QUANTITIES[name], path.latest[name], agreed.get(name) if isinstance(agreed, dict) else None)
        for name in TILES
        if name in path.latest
    ]
    alerts = reader.alerts(path.id, window.start_s, window.end_s, limit=50)
    outcomes = [one for test in TESTS for one in reader.outcomes(path.id, test, now_s - TESTS_S, now_s + 1, limit=1)]
    return page(
        "path.html.j2",
        visit,
        "/",
        path=path,
        facts=_facts(path, now_s),
        tiles=tiles,
        charts=CHARTS,
        window=window,
        spans=SPANS,
        alerts=alerts_shown(alerts, [path]),
        tests=_newest(outcomes, now_s),
        asked=asked.of(path),
        may_ask=TESTS if visit.is_operator and asked.is_running(path) else (),
    )


def _facts(path: PathState, now_s: float) -> list[tuple[str, str]]:
    """Return what the monitor's file says of a path."""
    settings = path.settings
    line = settings.get("line_rate_bps")
    tests = settings.get("tests") or []
    schedule = ", ".join(
        f"{test.get('test')} every {_period(test.get('period_s'))}" for test in tests if isinstance(test, dict)
    )
    rows = [
        ("monitor", path.monitor),
        ("towards", path.towards),
        ("line rate", units.rate(line) if isinstance(line, int | float) else ""),
        ("shared bottleneck", drawing.bottleneck(path)),
        ("tests", schedule),
        ("transfers", ", ".join(map(str, settings.get("transfers") or []))),
        ("last sample", ago(path.last_sample_s, now_s)),
    ]
    return [(name, value) for name, value in rows if value]


def _period(seconds: float | None) -> str:
    """Return a period as a monitor's file writes it: 1 s, 15 min."""
    for unit_s, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds and seconds % unit_s == 0:
            return f"{seconds / unit_s:.0f} {unit}"
    return units.NOTHING if seconds is None else f"{seconds:g} s"


def _newest(outcomes: Sequence[OutcomeView], now_s: float) -> list[Outcome]:
    """Return outcomes for the page."""
    rows = []
    for one in outcomes:
        content = one.outcome
        estimates = [
            (quantity(item["quantity"]).title, _interval(item))
            for item in content.get("estimates", ())
            if item.get("value") is not None
        ]
        cost = content.get("cost") or {}
        took_s = content.get("took_s", cost.get("seconds"))
        rows.append(
            Outcome(
                test=one.test,
                when=ago(one.at_s, now_s),
                estimates=estimates,
                refused=str(content.get("refused") or ""),
                notes=[str(note) for note in content.get("notes", ())],
                cost=f"{units.size(cost.get('bytes'))} in {units.duration(took_s)}" if cost else "",
            )
        )
    return rows


def _interval(estimate: dict[str, Any]) -> str:
    show = quantity(estimate["quantity"]).show
    low, high = estimate.get("low"), estimate.get("high")
    text = show(estimate["value"])
    if low is None or high is None or low == high:
        return text
    return f"{text} ({show(low)} to {show(high)})"


def runs_page(visit: Visit, rows: Sequence[Row], scenario: str, first: int, more: bool) -> str:
    """Return a page of the list of runs."""
    from elephan.report.metrics import metric, present
    from elephan.report.points import cc_of

    columns = present([row.record.metrics for row in rows if row.record is not None], SHOWN)
    shown = [
        (
            row,
            "" if row.record is None else cc_of(row.record),
            [metric(c.name).show(row.record.metrics.get(c.name)) if row.record is not None else "" for c in columns],
        )
        for row in rows
    ]
    return page(
        "runs.html.j2", visit, "/runs", rows=shown, columns=columns, scenario=scenario, first=first, more=more,
        size=PAGE,
    )  # fmt: skip


def run_page(visit: Visit, record: Record | Damaged) -> str:
    """Return the page of one run."""
    if isinstance(record, Damaged):
        return page("damaged.html.j2", visit, "/runs", damaged=record)
    from elephan.report.html import facts_of
    from elephan.report.metrics import metric
    from elephan.report.points import cc_of, shown

    return page(
        "run.html.j2",
        visit,
        "/runs",
        record=record,
        cc=cc_of(record),
        facts=facts_of([record]),
        parameters=[(name, shown(value)) for name, value in record.parameters.items()],
        metrics=[(metric(name), metric(name).show(value)) for name, value in record.metrics.items()],
    )


def ledger_page(visit: Visit, rows: Sequence[Row], first: int, more: bool) -> str:
    """Return the list of runs that had a manager."""
    return page("ledger.html.j2", visit, "/ledger", rows=rows, first=first, more=more, size=PAGE)


def managed_page(visit: Visit, record: Record, item: Any) -> str:
    """Return the ledger of one run's manager."""
    from elephan.report.html import ledger_table

    table = ledger_table(item, "moves", visit.nonce)
    return page("managed.html.j2", visit, "/ledger", record=record, item=item, table=table)

"""Reports of line tests: pages that need nothing else, with the paper's pictures."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from elephan.line import report
from elephan.line.figures import histogram, rfc2544_figures, soak_figures, y1564_figures
from elephan.line.methods import rfc2544, y1564
from elephan.line.mix import Mix
from elephan.line.notes import Notes
from elephan.line.page import Page
from elephan.line.tables import rfc2544_tables, soak_tables, y1564_tables
from elephan.line.trial import Clock, Outcome, Trial
from elephan.report.figures import HistogramFigure, SweepFigure, TimeFigure
from tests.line.model import Line
from tests.line.test_soak import measure, sender

GIGABIT = 10**9
PLAN = rfc2544.Plan(GIGABIT, duration_ns=10**9, latency_ns=10**9, latency_repetitions=1, burst_repetitions=1)


def written(page: Page, folder: Path) -> str:
    paths = report.write(page, folder / "line.html")
    assert all(path.read_bytes()[:4] == b"\x89PNG" for path in paths[1:]) and len(paths) == 1 + len(page.figures)
    text = paths[0].read_text()
    assert not re.search(r'(src|href)="(?!#)', text.replace("xlink:href", "href")), "the page needs nothing else"
    assert text.count("<figure") == len(page.figures) and text.count("<table") == len(page.tables)
    return text


def test_throughput_stands_beside_the_lines_maximum(tmp_path: Path) -> None:
    results = list(rfc2544.measure(Line(GIGABIT, 870_000_000, buffer_frames=9).run, [64, 512, 1518], PLAN))
    figures = rfc2544_figures(results, GIGABIT)
    assert [figure.key for figure in figures] == ["throughput", "latency", "loss"]
    assert isinstance(figures[0], SweepFigure)
    most, measured = ([item.mean for _, item in line] for _, _, line in figures[0].lines)
    assert most == pytest.approx([1e9 * size / (size + 20) for size in (64, 512, 1518)], rel=1e-6)
    assert measured == pytest.approx([0.87 * one for one in most], rel=1e-3)
    page = Page("Line", "It carries <all>.", rfc2544_tables(results), figures, [("sender", "eth1")], ["Mind."])
    text = written(page, tmp_path)
    assert "It carries &lt;all&gt;." in text and "Mind." in text and "the line lost frames above" in text


def test_a_limit_of_the_generator_is_told_as_one(tmp_path: Path) -> None:
    notes = Notes()
    line = Line(GIGABIT, generator_bps=500_000_000)
    results = list(rfc2544.measure(line.run, [64], PLAN, on_trial=lambda test, trial, outcome: notes.add(outcome)))
    text = written(Page("Line", "", rfc2544_tables(results), (), (), notes.lines()), tmp_path)
    assert "at least: the generator&#39;s limit" in text and "not known: generator&#39;s limit" in text
    assert "left them out: the load was lower than asked for" in text


def test_a_service_has_its_steps_and_its_seconds(tmp_path: Path) -> None:
    mix = Mix.of(512)
    service = y1564.Service(10**8, mix, 5 * 10**7, delay_ns=1_001_000, availability=0.99)
    line = Line(GIGABIT, mix.line_bps(150_000_000), outage_rows=range(20, 40))
    steps = list(y1564.measure(line.run, service, y1564.Plan(performance_ns=60 * 10**9)))
    figures = y1564_figures(steps)
    assert [figure.key for figure in figures] == ["steps", "lost", "latency"]
    text = written(Page("Line", "", y1564_tables(steps), figures), tmp_path)
    # The clocks' error of 2 us is larger than the distance to the agreed delay.
    assert "undecided" in text and "66.7 %" in text


def test_a_soak_has_its_points_and_their_histograms(tmp_path: Path) -> None:
    folder = tmp_path / "soak"
    measure(folder, sender(Line(GIGABIT, outage_rows=range(3)), stop_after=100))
    found = measure(folder, sender(Line(GIGABIT)))
    figures = soak_figures(found)
    assert [figure.key for figure in figures] == ["rate", "rate-histogram", "lost", "latency", "latency-histogram"]
    rates, shares = figures[:2]
    assert isinstance(rates, TimeFigure) and isinstance(shares, HistogramFigure)
    assert sum(shares.shares) == pytest.approx(1) and shares.shares[-1] == pytest.approx(357 / 360)
    # Real rows end some microseconds early or late: each has its rate.
    assert sum(len(curve.line.values) for curve in rates.curves) >= 360
    text = written(Page("Line", "", soak_tables(found), figures), tmp_path)
    assert "told to stop" in text and "Bit error rate" in text


def test_a_time_that_was_not_measured_breaks_the_line(tmp_path: Path) -> None:
    found = measure(tmp_path, sender(Line(GIGABIT)))
    late = replace(found.parts[0], number=2, start=found.parts[0].start.replace(year=2099))
    figure = soak_figures(replace(found, parts=(found.parts[0], late)))[0]
    assert isinstance(figure, TimeFigure) and figure.time_unit == "h"
    assert np.isnan(figure.curves[0].line.values).sum() == 1


def test_values_of_a_narrow_range_are_told_apart() -> None:
    figure = histogram("rate", "Rate", "", np.asarray([5.448e9, 5.4481e9, 5.4479e9]), "bit/s")
    assert figure.show(5.4479e9) != figure.show(5.448e9)
    # All the same: one bar.
    same = histogram("rate", "Rate", "", np.asarray([5.448e9] * 3), "bit/s")
    assert sorted(same.shares)[-1] == 1.0 and same.edges[0] < 5.448e9 < same.edges[-1]


def test_an_unknown_clock_is_told() -> None:
    trial = Trial(Mix.of(64), GIGABIT, 10**9)

    def lines(outcome: Outcome) -> list[str]:
        notes = Notes()
        notes.add(outcome)
        return notes.lines()

    assert lines(Line(GIGABIT, clock=Clock(5, 5)).run(trial)) == []
    assert lines(replace(Line(GIGABIT).run(trial), clock=None)) == [
        "The clocks of both ends were not compared: the error of one-way latencies is not known."
    ]
    dropped = lines(Line(GIGABIT, receiver_frames_per_s=1000).run(trial))
    assert len(dropped) == 1 and "the line has not lost those" in dropped[0]


def test_an_answer_after_some_that_did_not_come_has_the_rate_of_all(tmp_path: Path) -> None:
    found = measure(tmp_path, sender(Line(GIGABIT, unanswered_rows=range(100, 102))))
    rates = soak_figures(found)[0]
    assert isinstance(rates, TimeFigure) and rates.key == "rate"
    values = rates.curves[0].line.values
    assert np.isnan(values).sum() == 2
    assert np.nanmax(values) == pytest.approx(np.nanmin(values), rel=1e-3)


def test_a_short_last_interval_has_no_rate(tmp_path: Path) -> None:
    found = measure(tmp_path, sender(Line(GIGABIT)), 100 * 10**9)
    row = found.parts[0].rows[-1]
    short = replace(row, time_ns=row.time_ns + 10**9, received=3)
    longer = replace(found, parts=(replace(found.parts[0], rows=(*found.parts[0].rows, short)),))
    figure = soak_figures(longer)[0]
    assert isinstance(figure, TimeFigure) and len(figure.curves[0].line.values) == 10


def test_frames_without_a_carrier_have_a_figure(tmp_path: Path) -> None:
    found = measure(tmp_path, sender(Line(GIGABIT, no_carrier_rows=range(3))))
    assert "no-carrier" in [figure.key for figure in soak_figures(found)]
    written(Page("Line", "", soak_tables(found), soak_figures(found)), tmp_path)

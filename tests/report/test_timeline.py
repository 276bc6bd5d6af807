"""Series as lines: connections put together, spikes kept when a long line is thinned."""

from collections.abc import Callable

import numpy as np
import pytest

from elephan.record import Record
from elephan.report.figures import Colours, panels_of
from elephan.report.points import points_of
from elephan.report.timeline import Line, averaged, bottleneck, flow_line, thinned
from elephan.store.series import Series

Make = Callable[..., Record]
MakeSeries = Callable[..., Series]


def test_thinning_keeps_every_bins_extremes_in_order() -> None:
    values = np.sin(np.arange(100_000) / 50.0)
    values[54_321] = 40.0
    values[54_322] = -7.0
    line = thinned(Line(np.arange(100_000) * 0.01, values), bins=500)
    assert len(line.values) <= 1000
    assert np.all(np.diff(line.time_s) > 0)
    spike = int(line.values.argmax())
    assert (line.values[spike], line.time_s[spike]) == (40.0, pytest.approx(543.21))
    assert line.values[spike + 1] == -7.0


def test_thinning_of_gaps_keeps_gaps() -> None:
    values = np.full(10_000, np.nan)
    values[5000:] = 1.0
    line = thinned(Line(np.arange(10_000.0), values), bins=100)
    assert np.isnan(line.values[0])
    assert line.values[-1] == 1.0


def test_average_keeps_the_mean() -> None:
    values = np.random.default_rng(1).random(24_000)
    line = averaged(Line(np.arange(24_000.0), values))
    assert len(line.values) == 240
    assert line.values.mean() == pytest.approx(values.mean())


def test_connections_of_a_flow_are_put_together(make_series: MakeSeries) -> None:
    one, three = make_series(count=50), make_series(count=50, flows=3)
    for column, factor in (("goodput_bps", 3), ("srtt_s", 1), ("lag_s", 1)):
        combine = {"goodput_bps": "sum", "srtt_s": "mean", "lag_s": "max"}[column]
        single = flow_line(one, [0], column, combine)
        assert flow_line(three, [0, 1, 2], column, combine).values == pytest.approx(single.values * factor)


def test_what_means_none_yet_is_not_drawn(make_series: MakeSeries) -> None:
    line = flow_line(make_series(count=600), [0], "ssthresh_packets", "sum")
    assert np.isnan(line.values[0])
    assert line.values[-1] == 2000


def test_the_bottleneck_is_where_the_queue_is(make_record: Make, make_series: MakeSeries) -> None:
    assert bottleneck(make_record(), make_series(count=800)) == 0
    empty = make_series(count=1)
    record = make_record()
    record.spec["links"][0]["rate_bps"] = 10**10
    record.spec["flows"][0]["route"] = [0, 1]
    assert bottleneck(record, empty) == 1


def test_a_cc_has_one_colour_in_all_panels(make_record: Make, make_series: MakeSeries) -> None:
    series = make_series(count=100)
    records = [
        make_record(cc, parameters={"path.loss": loss}) for loss in (0.0, 1e-3) for cc in ("reno", "cubic", "bic")
    ]
    panels = panels_of(points_of(records), lambda _: series, Colours())
    assert [panel.title for panel in panels] == ["loss 0", "loss 0.001"]
    assert panels[0].legend == panels[1].legend
    assert len({colour for _, colour in panels[0].legend}) == 3
    assert [figure.key for figure in panels[0].figures] == ["lag", "at-risk", "goodput", "cwnd", "rtt", "queue"]


def test_runs_without_series_have_no_panel(make_record: Make) -> None:
    assert panels_of(points_of([make_record()]), lambda _: None, Colours()) == []

"""Distributions of latency and lag: stored in records, small, and drawn from there alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import elephan
from elephan.record import Record
from elephan.report.cdf import distribution_panels
from elephan.report.distributions import distribution_of
from elephan.report.figures import Colours, DistributionFigure
from elephan.report.html import write_report
from elephan.report.points import points_of

OFFERED = """
[run]
duration = "4s"
[path]
bandwidth = "20Mbit/s"
rtt = "40ms"
loss = 1e-3
[measure]
series = false
[[flow]]
name = "frames"
workload = { kind = "constant_rate", load = "60%" }
"""


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """A run of frames, stored and read again."""
    file = tmp_path_factory.mktemp("offered") / "offered.toml"
    file.write_text(OFFERED)
    store = str(file.with_suffix(".sqlite"))
    elephan.run(file, store=store)
    return elephan.open_results(store)[0]


def test_a_record_holds_the_quantiles_of_what_it_counted(record: Record) -> None:
    table = dict(zip(record.quantiles["per_mille"], record.quantiles["latency_s"], strict=True))
    assert table[500] == record.metrics["latency_p50_s"] and table[990] == record.metrics["latency_p99_s"]
    assert table[1000] == pytest.approx(record.metrics["latency_max_s"], rel=0.004)
    values = record.quantiles["latency_s"]
    assert values == sorted(values) and table[0] >= 0.02, "half a round trip at least"
    # A run of one flow is that flow.
    assert record.flows[0]["latency_quantiles_s"] == values
    assert "latency_quantiles_s" not in record.metrics
    assert len(json.dumps(values)) < 1000


def test_a_run_without_messages_has_no_table(tmp_path: Path) -> None:
    file = tmp_path / "bulk.toml"
    file.write_text(OFFERED.replace("workload", "# "))
    record = elephan.run(file, ["run.duration=1s"], store="none")[0]
    assert record.quantiles == {} and distribution_of(record, "latency_s") is None


def test_many_connections_leave_their_tables_out_of_the_record(tmp_path: Path) -> None:
    file = tmp_path / "many.toml"
    file.write_text(OFFERED.replace('"60%"', '"1%"') + "connections = 33\n")
    record = elephan.run(file, ["run.duration=1s"], store="none")[0]
    assert "latency_s" in record.quantiles
    assert not any("latency_quantiles_s" in flow for flow in record.flows)


def test_connections_of_a_flow_are_mixed_by_what_each_counted(make_record: Callable[..., Record]) -> None:
    per_mille = [0.0, 500.0, 1000.0]
    record = make_record(flows=2).model_copy(update={"quantiles": {"per_mille": per_mille, "lag_s": [1.0, 2.0, 9.0]}})
    fast, slow = record.flows
    fast |= {"messages": 300, "lag_quantiles_s": [1.0, 2.0, 3.0]}
    slow |= {"messages": 100, "lag_quantiles_s": [5.0, 6.0, 7.0]}
    mixed = distribution_of(record, "lag_s", group=0)
    assert mixed is not None
    assert list(mixed.values_s) == [1, 2, 3, 5, 6, 7]
    assert list(mixed.shares) == pytest.approx([0, 0.375, 0.75, 0.75, 0.875, 1.0])
    whole = distribution_of(record, "lag_s")
    assert whole is not None and list(whole.values_s) == [1, 2, 9] and bool(np.all(whole.shares == [0, 0.5, 1]))
    assert distribution_of(make_record(), "lag_s") is None, "records of before have none"


def test_a_report_draws_distributions_where_there_is_no_series(record: Record, tmp_path: Path) -> None:
    written = write_report([record], lambda _: None, tmp_path)
    assert [path.name for path in written.images] == ["latency-cdf.png"]
    page = written.html.read_text()
    assert "Latency of the frames" in page and "Part of the frames that were delivered within a time." in page
    assert 'id="f0-curve-0-0"' in page


def test_flows_of_a_run_and_runs_side_by_side_have_a_curve_each(make_record: Callable[..., Record]) -> None:
    def with_lag(record: Record, *tables: list[float]) -> Record:
        for flow, table in zip(record.flows, tables, strict=True):
            flow |= {"messages": 10, "lag_quantiles_s": table}
        return record.model_copy(update={"quantiles": {"per_mille": [10.0, 500.0, 990.0], "lag_s": tables[0]}})

    congestion_controls = [
        with_lag(make_record(cc), [0.1 * n, 0.2 * n, 90.0 * n]) for n, cc in enumerate(("reno", "cubic"), 1)
    ]
    (panel,) = distribution_panels(points_of(congestion_controls), Colours())
    (figure,) = panel.figures
    assert isinstance(figure, DistributionFigure) and figure.log
    assert [label for label, _, _ in figure.curves] == ["reno", "cubic"] == [label for label, _ in panel.legend]
    both = with_lag(make_record(flows=2), [1.0, 2.0, 3.0], [2.0, 3.0, 4.0])
    for number, (flow, spec) in enumerate(zip(both.flows, both.spec["flows"], strict=True)):
        flow["group"] = spec["group"] = number
    (panel,) = distribution_panels(points_of([both]), Colours())
    assert [label.partition(" ")[0] for label, _ in panel.legend] == ["mirror.0", "mirror.1"]
    assert distribution_panels(points_of([make_record()]), Colours()) == []

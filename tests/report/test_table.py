"""Points and the table: repetitions together, distinct points apart."""

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from elephan.record import Record
from elephan.report import table
from elephan.report.notebook import as_html
from elephan.report.point_table import table_of
from elephan.report.points import points_of
from elephan.report.table import print_table

Make = Callable[..., Record]


def printed(records: list[Record], width: int = 240) -> str:
    stream = io.StringIO()
    print_table(table_of(records), Console(file=stream, width=width))
    return stream.getvalue()


def test_a_table_too_wide_for_the_terminal_stands_upright_with_its_numbers_whole(make_record: Make) -> None:
    records = [make_record(cc) for cc in ("reno", "cubic", "storage_friendly", "storage_friendly_of_ones_own")]
    lines = printed(records, width=80).splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("goodput") and line.count("300 Mbit/s") == 4 for line in lines)


def test_a_table_that_fits_neither_way_is_folded_and_not_cut(make_record: Make) -> None:
    records = [make_record("reno", parameters={"path.loss": loss}) for loss in range(30)]
    lines = printed(records, width=60).splitlines()
    assert max(map(len, lines)) <= 60
    assert all(any(line.startswith(f"{loss} ") for line in lines) for loss in range(30))


def test_a_table_that_fits_looks_as_rich_draws_it(make_record: Make) -> None:
    records = [
        make_record(cc, goodput=goodput, seed=seed, parameters={"flow.name": name})
        for cc, goodput in (("reno", 1e8), ("cubic", 2e8))
        for name in ("a", "東京 to 大阪", "[red]")
        for seed in (1, 2)
    ]
    records.append(make_record("reno", notes=["alone"]))
    records[0].flows.append({**records[0].flows[0], "name": "second", "group": 1})
    found = table_of(records)
    assert any(row.of_run for row in found.rows)
    whole = printed(records)
    assert "[red]" in whole and " ± " in whole
    stream = io.StringIO()
    Console(file=stream, width=240).print(table._folded(found))
    assert whole.startswith(stream.getvalue())


def test_repetitions_become_a_mean_with_its_interval(make_record: Make) -> None:
    records = [make_record(seed=seed, goodput=goodput) for seed, goodput in ((1, 1e8), (2, 1.2e8), (3, 1.4e8))]
    table = table_of(records)
    assert len(table.rows) == 1
    column = [item.name for item in table.columns].index("goodput_bps")
    assert table.rows[0].cells[column].text == "120 Mbit/s"
    assert table.rows[0].cells[column].spread == "49.7 Mbit/s"
    assert "mean ± 95 % confidence interval over 3 repetitions" in printed(records)


def test_ccs_are_rows_and_the_best_of_a_column_is_marked(make_record: Make) -> None:
    table = table_of([make_record("reno", goodput=1e8), make_record("cubic", goodput=2e8)])
    assert table.heads == ("congestion control",)
    assert [row.heads for row in table.rows] == [("reno",), ("cubic",)]
    goodput = [item.name for item in table.columns].index("goodput_bps")
    retransmitted = [item.name for item in table.columns].index("retransmitted_segments")
    assert [row.cells[goodput].best for row in table.rows] == [False, True]
    # A run that carries little resends little.
    assert [row.cells[retransmitted].best for row in table.rows] == [False, False]
    assert table.ranks and not table_of([make_record("reno", goodput=1e8)]).ranks


def test_points_that_differ_in_one_parameter_are_apart(make_record: Make) -> None:
    records = [
        make_record(cc, parameters={"path.loss": loss}, seed=seed)
        for cc in ("reno", "cubic")
        for loss in (0, 1e-3)
        for seed in (1, 2)
    ]
    points = points_of(records)
    losses = ("loss 0", "loss 0.001")
    assert [point.label for point in points] == [f"{cc}, {loss}" for cc in ("reno", "cubic") for loss in losses]
    assert {len(point.records) for point in points} == {2}


def test_points_of_one_label_but_other_parameters_are_apart(make_record: Make) -> None:
    records = [
        make_record("reno", parameters={"flow.congestion_control": text})
        for text in ("reno", "reno(beta=1/2)", "cubic")
    ]
    records[2] = make_record("cubic")
    assert len(points_of(records)) == 3


def test_flows_that_share_a_run_have_rows_of_their_own(make_record: Make) -> None:
    record = make_record()
    flow = record.flows[0]
    record.flows = [flow, {**flow, "name": "backup.1", "group": 1}, {**flow, "name": "backup.2", "group": 1}]
    table = table_of([record])
    assert table.heads == ("flow", "congestion control")
    assert [row.heads[0] for row in table.rows] == ["all", "mirror", "backup"]
    goodput = [item.name for item in table.columns].index("goodput_bps")
    assert table.rows[2].cells[goodput].value == 2 * flow["goodput_bps"]


def test_notes_say_which_points_they_are_about(make_record: Make) -> None:
    records = [make_record("reno", notes=["not converged"]), make_record("cubic")]
    assert table_of(records).notes == ("reno: not converged",)
    assert "note: reno: not converged" in printed(records)


def test_notebook_table_is_escaped_html(make_record: Make) -> None:
    page = as_html(table_of([make_record("reno", notes=["a < b"])]))
    assert "a &lt; b" in page
    assert page.startswith("<table>")


def connections_of(make_record: Make, distribution: dict[str, str]) -> Record:
    record = make_record("reno")
    spec, flow = record.spec["flows"][0], record.flows[0]
    record.spec["flows"] = [{**spec, **distribution, "name": f"mirror.{number}"} for number in (1, 2)]
    record.flows = [{**flow, "name": f"mirror.{number}"} for number in (1, 2)]
    return record


def test_the_table_says_what_each_of_several_connections_carries(make_record: Make) -> None:
    shared = connections_of(make_record, {"distribution": "striped"})
    assert "connections share the load of mirror" in table_of([shared]).caption
    each = connections_of(make_record, {})
    assert "each connection carries the whole load of mirror" in table_of([each]).caption
    for flow in each.spec["flows"]:
        flow["workload"] = {"kind": "bulk", "bytes": None}
    assert "load" not in table_of([each]).caption, "without a bound there is nothing to share"
    assert "load" not in table_of([make_record()]).caption, "one connection"


def test_the_lag_of_a_flow_whose_connections_share_it_is_the_flows_own(make_record: Make) -> None:
    record = connections_of(make_record, {"distribution": "striped"})
    record.flow_groups = [{"name": "mirror", "group": 0, "lag_p99_s": 7.5, "lag_max_bytes": 10}]
    (point,) = points_of([record])
    lag, risk = point.flow_metric(0, "lag_p99_s"), point.flow_metric(0, "lag_max_bytes")
    assert lag is not None and lag.mean == 7.5
    assert risk is not None and risk.mean == 10
    retransmitted = point.flow_metric(0, "retransmitted_segments")
    assert retransmitted is not None and retransmitted.mean == 2 * record.flows[0]["retransmitted_segments"]


def test_numbers_of_several_connections_are_combined_as_their_kind_asks(make_record: Make) -> None:
    record = connections_of(make_record, {})
    # A thousand quick frames beside ten slow ones, in three quantiles each.
    record.quantiles = {"per_mille": [0.0, 500.0, 1000.0]}
    quick = {"messages": 1000, "latency_mean_s": 0.01, "latency_max_s": 0.02, "latency_p99_s": 0.0198}
    slow = {"messages": 10, "latency_mean_s": 1.0, "latency_max_s": 2.0, "latency_p99_s": 1.98}
    record.flows[0] |= {**quick, "latency_quantiles_s": [0.0, 0.01, 0.02], "startup_latency_p99_s": 3.0}
    record.flows[1] |= {**slow, "latency_quantiles_s": [0.0, 1.0, 2.0], "startup_latency_p99_s": 4.0}
    for flow, stall, least in zip(record.flows, (1.5, 2.5), (0.03, 0.02), strict=True):
        flow |= {"credit_stall_s": stall, "delivered_bytes": 100, "rtt_min_s": least}
    (point,) = points_of([record])

    def value(name: str) -> float:
        found = point.flow_metric(0, name)
        assert found is not None
        return found.mean

    assert value("latency_max_s") == 2.0 and value("rtt_min_s") == 0.02
    assert value("credit_stall_s") == 4.0 and value("delivered_bytes") == 200
    assert value("latency_mean_s") == pytest.approx((1000 * 0.01 + 10 * 1.0) / 1010)
    # 1 in 101 frames is of the slow connection: 99 of 100 are within the quick one's largest latency.
    assert 0.0198 <= value("latency_p99_s") <= 0.1
    assert not point.is_bound(0, "latency_p99_s")
    # Without distributions the highest is all that can be said, and the table says so.
    assert value("startup_latency_p99_s") == 4.0 and point.is_bound(0, "startup_latency_p99_s")
    record.flows.append({**record.flows[0], "name": "other", "group": 1})
    record.metrics = {"startup_latency_p99_s": 4.0}
    assert any(
        note.startswith("start-up p99 of a flow with several connections: the highest")
        for note in table_of([record]).notes
    )

"""The same scenario on two backends: one table with both and their ratio, one plot with both curves."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from elephan.record import Record
from elephan.report.figures import Colours, panels_of
from elephan.report.headline import headline_of
from elephan.report.html import write_report
from elephan.report.point_table import table_of
from elephan.report.points import points_of
from elephan.report.table import print_table
from elephan.store.series import Series

Make = Callable[..., Record]


def on(record: Record, backend: str, **more: Any) -> Record:
    return record.model_copy(update={"backend": backend, "id": f"{backend}{record.id}"[:16], **more})


def series() -> Series:
    count = 30
    flow = {
        "time_s": np.arange(count) * 0.1,
        "flow": np.zeros(count, dtype=np.uint32),
        "goodput_bps": np.linspace(1e8, 2e8, count),
        "cwnd_packets": np.linspace(10, 50, count).astype(np.uint32),
        "ssthresh_packets": np.full(count, 40, dtype=np.uint32),
        "srtt_s": np.full(count, 0.02),
    }
    return Series.from_columns(flow, {})


def both(make_record: Make, loss: float = 1e-4, factor: float = 0.9, **more: Any) -> list[Record]:
    parameters = {"path.loss": loss}
    sim = make_record("reno", goodput=2e8, parameters=parameters, **more)
    kernel = make_record("reno", goodput=2e8 * factor, parameters=parameters, **more)
    return [sim, on(kernel, "kernel")]


def printed(records: list[Record], width: int = 100) -> str:
    stream = StringIO()
    print_table(table_of(records), Console(file=stream, width=width))
    return stream.getvalue()


def test_backends_are_columns_and_not_repetitions(make_record: Make) -> None:
    table = table_of(both(make_record))
    assert [column.title for column in table.columns] == ["sim", "kernel", "kernel/sim"]
    assert table.repetitions == 1
    rows = {row.heads[-1]: row for row in table.rows}
    assert [cell.text for cell in rows["goodput"].cells] == ["200 Mbit/s", "180 Mbit/s", "0.900"]
    assert rows["goodput"].cells[2].value == 0.9
    assert "a ratio is that to sim" in table.caption
    assert max(len(line) for line in printed(both(make_record), 80).splitlines()) <= 80


def test_three_backends_stand_side_by_side_each_against_the_first(make_record: Make, tmp_path: Path) -> None:
    records = both(make_record)
    records.append(on(make_record("reno", goodput=1.6e8, parameters={"path.loss": 1e-4}), "hosts"))
    table = table_of(records)
    assert [column.title for column in table.columns] == ["sim", "kernel", "hosts", "kernel/sim", "hosts/sim"]
    row = next(row for row in table.rows if row.heads[-1] == "goodput")
    assert [cell.text for cell in row.cells] == ["200 Mbit/s", "180 Mbit/s", "160 Mbit/s", "0.900", "0.800"]
    assert max(len(line) for line in printed(records, 100).splitlines()) <= 100
    page = write_report(records, lambda _: None, tmp_path).html.read_text(encoding="utf-8")
    assert "hosts/sim" in page and "sim, kernel, hosts" in page and "between hosts" in page


def test_repetitions_of_each_backend_are_put_together(make_record: Make) -> None:
    records = []
    for seed in (1, 2, 3):
        pair = both(make_record, factor=1 + seed / 10, seed=seed)
        records += pair
    table = table_of(records)
    assert table.repetitions == 3
    row = next(row for row in table.rows if row.heads[-1] == "goodput")
    assert row.cells[0].value == 2e8 and abs((row.cells[2].value or 0) - 1.2) < 1e-9


def test_each_point_of_a_sweep_has_its_own_pair(make_record: Make) -> None:
    records = [*both(make_record, 1e-4, 0.9), *both(make_record, 1e-3, 0.5)]
    ratios = [row.cells[2].text for row in table_of(records).rows if row.heads[-1] == "goodput"]
    assert ratios == ["0.900", "0.500"]
    headline = headline_of(points_of(records), Colours())
    assert headline is not None and "lag p99 is 1.00 of that on sim (median of 2 points" in headline.sentence


def test_what_is_nothing_on_the_first_backend_has_no_ratio(make_record: Make) -> None:
    records = both(make_record)
    records[0].metrics["dropped_packets"] = 0
    records[1].metrics["dropped_packets"] = 7
    row = next(row for row in table_of(records).rows if row.heads[-1] == "dropped")
    assert [cell.text for cell in row.cells] == ["0", "7", "–"]


def test_both_curves_are_in_one_plot_in_two_colours(make_record: Make, tmp_path: Path) -> None:
    records = [record.model_copy(update={"series": None}) for record in both(make_record)]
    (panel,) = panels_of(points_of(records), lambda _: series(), Colours())
    names = [label for label, _ in panel.legend]
    assert len(names) == 2 and names[0].endswith(", sim") and names[1].endswith(", kernel")
    assert len({colour for _, colour in panel.legend}) == 2
    window = next(figure for figure in panel.figures if figure.key == "cwnd")
    assert {curve.label for curve in window.curves} == set(names)
    written = write_report(records, lambda _: series(), tmp_path)
    page = written.html.read_text(encoding="utf-8")
    assert "kernel/sim" in page and "sim, kernel" in page


def test_flows_that_share_a_queue_show_that_of_each_backend(
    make_record: Make, make_series: Callable[..., Series]
) -> None:
    records = both(make_record)
    for record in records:
        record.flows = [record.flows[0] | {"name": name, "group": group} for group, name in enumerate("ab")]
        record.spec["flows"] = [record.spec["flows"][0] | {"name": name, "group": n} for n, name in enumerate("ab")]
    taken = {record.backend: make_series(count=100, flows=2) for record in records}
    (panel,) = panels_of(points_of(records), lambda record: taken[record.backend], Colours())
    assert len(panel.legend) == 4
    queue = next(figure for figure in panel.figures if figure.key == "queue")
    assert [curve.label.rpartition(", ")[2] for curve in queue.curves] == ["sim", "kernel"]
    assert "first flow" in queue.caption and len({curve.colour for curve in queue.curves}) == 2


def test_a_note_of_the_emulator_is_told_of_the_backend_that_it_is_about(make_record: Make) -> None:
    records = both(make_record)
    records[1].notes.append("EMULATOR: 3 packets were dropped in the emulator's own buffers")
    assert table_of(records).notes == ("reno, kernel: " + records[1].notes[0],)

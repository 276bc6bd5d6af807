"""Load curves of sessions in the simulator: where their knee is, and that table and page mark the same."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

import elephan
from elephan.api import Results
from elephan.report.figures import Colours
from elephan.report.headline import headline_of
from elephan.report.html import write_report
from elephan.report.knee import METHOD
from elephan.report.load_curve import load_curves
from elephan.report.load_figure import load_figures
from elephan.report.point_table import table_of
from elephan.report.points import points_of
from elephan.report.table import print_table

# 20 Mbit/s x 20 ms are six requests of 8 KiB: at eight a queue begins to stand.
SCENARIO = """
name = "depths"
[run]
duration = "4s"
[path]
bandwidth = "20Mbit/s"
rtt = "20ms"
[[flow]]
name = "volume"
[flow.workload]
kind = "iscsi"
source = { kind = "mix", size = "8KiB" }
[measure]
warmup = "1s"
series = false
"""
DEPTHS = {"sweep.flow.workload.queue_depth": [1, 2, 4, 8, 16, 32, 64]}


@pytest.fixture(scope="module")
def by_depth(tmp_path_factory: pytest.TempPathFactory) -> Results:
    file = tmp_path_factory.mktemp("load") / "depths.toml"
    file.write_text(SCENARIO)
    return elephan.run(str(file), DEPTHS, store="none")


def printed(results: Results) -> str:
    stream = io.StringIO()
    print_table(table_of(list(results)), Console(file=stream, width=240))
    return stream.getvalue()


def test_the_knee_of_a_session_is_at_the_depth_that_fills_its_path(by_depth: Results) -> None:
    (curve,) = load_curves(points_of(list(by_depth)))
    assert curve.load == "queue depth 8"
    assert curve.knee.edges == ()


def test_table_and_page_mark_the_same_knee_and_no_highest_number(by_depth: Results, tmp_path: Path) -> None:
    lines = printed(by_depth).splitlines()
    (marked,) = [line for line in lines if " knee " in line and not line.startswith("one run")]
    assert marked.split()[:2] == ["8", "knee"]
    table = table_of(list(by_depth))
    assert [row.is_knee for row in table.rows] == [head == "8" for head, *_ in (row.heads for row in table.rows)]
    assert not any(cell.best for row in table.rows for cell in row.cells)
    assert METHOD in table.caption
    page = write_report(list(by_depth), lambda _: None, tmp_path).html.read_text()
    assert "The knee is at queue depth 8: requests move" in page
    (row,) = re.findall(r'<tr class="knee">.*?</tr>', page)
    assert re.findall(r"<th[^>]*>([^<]*)", row) == ["8", "knee"]
    assert "knee: queue depth 8" in page and METHOD in page
    assert "of a column is bold" not in page
    assert (tmp_path / "load.png").stat().st_size > 1000


def test_each_setting_of_what_else_is_varied_has_a_knee_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "depths.toml"
    file.write_text(SCENARIO)
    results = elephan.run(
        str(file),
        {
            "sweep.path.rtt": ["20ms", "80ms"],
            "sweep.flow.workload.queue_depth": [4, 8, 16, 32],
            "sweep.flow.connections": [1, 2],
        },
        store="none",
    )
    points = points_of(list(results))
    near, far = load_curves(points)
    assert (near.name, far.name) == ("rtt 20ms", "rtt 80ms")
    assert near.loads[near.knee.index].depth == 8
    assert far.loads[far.knee.index].depth == 32
    assert far.knee.edges[:1] == ("queue depth",)
    notes = [note for note in table_of(list(results)).notes if note.startswith("rtt 80ms: the knee is at the greatest")]
    assert len(notes) == 1
    headline = headline_of(points, Colours())
    assert headline is not None
    assert headline.sentence == f"The knee is at {near.load} with rtt 20ms, and at {far.load} with rtt 80ms."
    (figure,) = load_figures(points, Colours())
    assert [label for label, *_ in figure.lines] == [
        f"rtt {rtt}, connections {n}" for rtt in ("20ms", "80ms") for n in (1, 2)
    ]
    assert len(figure.knees) == 2


def test_a_sweep_over_anything_else_has_no_knee(tmp_path: Path) -> None:
    file = tmp_path / "depths.toml"
    file.write_text(SCENARIO)
    results = elephan.run(str(file), {"sweep.path.rtt": ["20ms", "40ms"]}, store="none")
    assert load_curves(points_of(list(results))) == []
    table = table_of(list(results))
    assert "" not in table.heads
    assert any(cell.best for row in table.rows for cell in row.cells)
    assert "knee" not in printed(results)

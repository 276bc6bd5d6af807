"""The report as a file: whole, self-contained, with all its statements."""

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from elephan.record import Record
from elephan.report import draw
from elephan.report.figures import Curve, TimeFigure
from elephan.report.html import Written, write_report
from elephan.report.timeline import Line
from elephan.store.series import Series
from elephan.units import rate

Make = Callable[..., Record]

CCS = (("reno", 1.5e8, 9.0), ("cubic", 1.9e8, 6.0), ("storage_friendly", 3.6e8, 0.2))


@pytest.fixture(scope="module")
def report(make_record: Make, make_series: Callable[..., Series], tmp_path_factory: pytest.TempPathFactory) -> Written:
    """A report of three congestion controls, made once: drawing is what takes time."""
    series = {}
    records = []
    for cc, goodput, lag in CCS:
        record = make_record(cc, goodput=goodput, lag=lag, notes=["3 writes never arrived"] if lag > 8 else [])
        series[record.id] = make_series(scale=lag / 9)
        records.append(record)
    return write_report(records, lambda record: series[record.id], tmp_path_factory.mktemp("report"))


def test_report_is_one_file_without_external_resources(report: Written) -> None:
    page = report.html.read_text()
    assert not re.findall(r'(?:src|href)="(?!#|f\d)[^"]*"', page)
    assert "url(http" not in page
    assert "@import" not in page


def test_report_shows_ccs_notes_scenario_and_headline(report: Written) -> None:
    page = report.html.read_text()
    for text in ("storage_friendly", "3 writes never arrived", "name = &#34;replicate-oltp&#34;", "data at risk"):
        assert text in page
    assert "With storage_friendly 99 of 100 writes reach the far site within 200 ms" in page
    assert "Worst is reno" in page


def test_svg_takes_its_colours_from_the_page_and_ids_are_unique(report: Written) -> None:
    page = report.html.read_text()
    drawings = re.findall(r"<svg .*?</svg>", page, re.DOTALL)
    assert len(drawings) == 6
    ids = [found for drawing in drawings for found in re.findall(r'\bid="([^"]+)"', drawing)]
    assert len(ids) == len(set(ids))
    for drawing in drawings:
        ElementTree.fromstring(drawing)
        assert "var(--c0)" in drawing
        for used in re.findall(r"url\(#([^)]+)\)", drawing):
            assert f'id="{used}"' in drawing


def test_images_are_pngs(report: Written) -> None:
    assert {path.name for path in report.images} == {
        f"{key}.png" for key in ("lag", "at-risk", "goodput", "cwnd", "rtt", "queue")
    }
    for path in report.images:
        assert path.read_bytes().startswith(b"\x89PNG")


def test_same_records_give_the_same_page(make_record: Make, make_series: Callable[..., Series], tmp_path: Path) -> None:
    record = make_record()
    series = make_series(count=200)
    pages = [write_report([record], lambda _: series, tmp_path / name).html.read_bytes() for name in "ab"]
    assert pages[0] == pages[1]


def test_sweep_is_drawn_against_the_parameter(make_record: Make, tmp_path: Path) -> None:
    records = [
        make_record(cc, seed=seed, goodput=goodput * (1 + seed / 50 - 500 * loss), parameters={"path.loss": loss})
        for cc, goodput, _ in CCS
        for loss in (0.0, 1e-5, 1e-4, 1e-3)
        for seed in (1, 2, 3)
    ]
    written = write_report(records, lambda _: None, tmp_path)
    assert "goodput-bps-by-path-loss.png" in {path.name for path in written.images}
    assert "Bars: 95 % confidence" in written.html.read_text()


def test_a_headline_is_about_what_all_runs_have(make_record: Make, tmp_path: Path) -> None:
    """One protocol's frames say nothing of a run that has none; a missing value is no bar."""
    records = []
    for workload, speed, write_s, latency in (("fcp", 6e6, 0.1, 0.0384), ("iscsi", 8e6, 0.0758, None)):
        record = make_record("cubic", parameters={"flow.workload": f'{{ kind = "{workload}", depth = 32 }}'})
        own = {"io_bytes_per_s": speed, "iops": 900, "read_latency_p99_s": 0.0731, "write_latency_p99_s": write_s}
        metrics = {name: value for name, value in record.metrics.items() if not name.startswith("lag")} | own
        if latency is not None:
            metrics |= {"latency_p99_s": latency, "latency_p50_s": 0.0127}
        records.append(record.model_copy(update={"metrics": metrics}))
    page = write_report(records, lambda _: None, tmp_path / "all").html.read_text()
    (lead,) = re.findall(r'<p class="lead">(.*?)</p>', page)
    assert lead.startswith("With workload iscsi requests move 8.00 MB/s; of 100 requests 99 take at most:"), lead
    assert "reads 73.1 ms, writes 75.8 ms" in lead and "frames" not in lead and "kind" not in lead
    bars = re.findall(r'<div class="bar(?: best)?">(.*?)</div>', page, re.DOTALL)
    assert bars and all(("class=\"rail\"" in bar) != (">–<" in bar) for bar in bars)


def test_a_value_that_is_missing_or_zero_has_no_bar(make_record: Make, tmp_path: Path) -> None:
    records = [make_record("reno", goodput=1e8), make_record("cubic", goodput=2e8)]
    changed = []
    for record, (again, timeouts) in zip(records, ((None, 0), (7, 0)), strict=True):
        metrics = {name: value for name, value in record.metrics.items() if not name.startswith("lag")}
        metrics |= {"retransmitted_segments": again, "timeouts": timeouts}
        changed.append(record.model_copy(update={"metrics": metrics}))
    page = write_report(changed, lambda _: None, tmp_path / "zero").html.read_text()
    tiles = re.split(r'<div class="tile">', page)[1:]
    found = {re.search(r"<h2>(.*?)</h2>", tile)[1]: tile for tile in tiles}  # type: ignore[index]
    assert found["retransmitted"].count('class="rail"') == 1
    assert found["time-outs"].count('class="rail"') == 2 and 'class="fill' not in found["time-outs"]


def test_a_curve_that_ends_early_has_its_name_without_a_line_through_the_others() -> None:
    ends = [10.0, 4.0, 10.0, 10.0, 7.5, 10.0, 10.0, 10.0]
    curves = []
    for number, end in enumerate(ends):
        times = np.linspace(0.0, end, 50)
        curves.append(Curve(f"curve {number}", number, Line(times, 1.0 + number + 0 * times)))
    figure = TimeFigure("k", "Title", "", rate, tuple(curves), False, 10.0)
    drawing = ElementTree.fromstring(draw.svg(figure, "f"))
    ids = [element.get("id", "") for element in drawing.iter()]
    for number, end in enumerate(ends):
        assert f"f-curve-{number}-{number}-name" in ids
        assert (f"f-curve-{number}-{number}-line" in ids) == (end == 10.0)

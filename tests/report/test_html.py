"""The report as a file: whole, self-contained, with all its statements."""

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from elephan.record import Record
from elephan.report.html import Written, write_report
from elephan.store.series import Series

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

"""A quick part of `make detection`: every cell of the page on short trials, its bound, the page that comes of it."""

from __future__ import annotations

import csv
from collections import Counter

import pytest

from evaluation.detection import cells, page
from evaluation.detection.cells import Cell
from evaluation.runner import Runner

REFERENCE = cells.load() | {"seeds": [1], "duration_s": 10}


@pytest.fixture(scope="module")
def found() -> dict[str, list[Cell]]:
    """All cells, on short trials."""
    return cells.table(Runner(None), REFERENCE)


def test_nothing_is_missed_and_nobody_mistaken_where_every_packet_is_counted(found: dict[str, list[Cell]]) -> None:
    exact = [cell for cell in found["sampling"] if cell.sampling_rate == 1]
    assert len(exact) == len(REFERENCE["mix"])
    for cell in exact:
        assert cell.found["elephants"] > 0
        assert {name: cell.found[name] for name in REFERENCE["exact"]} == REFERENCE["exact"]
    coarse = [cell for cell in found["sampling"] if cell.sampling_rate == max(REFERENCE["sampling_rate"])]
    assert all(cell.found["misses"] > 0 for cell in coarse)


def test_a_small_table_forgets(found: dict[str, list[Cell]]) -> None:
    evictions = {cell.flow_table_size: cell.found["evictions"] for cell in found["flow_table_size"]}
    assert evictions[min(evictions)] > evictions[max(evictions)]


def test_the_page_has_every_cell_and_its_picture_is_drawn(
    found: dict[str, list[Cell]], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("page")
    monkeypatch.setattr(page, "PAGE", folder / "detection.md")
    monkeypatch.setattr(page, "IMAGE", folder / "detection.png")
    page.write(REFERENCE, found, "1.2.3", "2026-11-23")
    text = (folder / "detection.md").read_text()
    looks = sum(len(REFERENCE[name]) for name in ("sampling_rate", "flow_table_size", "confidence_sigmas"))
    rows = [line for line in text.splitlines() if line.startswith("| ") and line.count(", ") == len(REFERENCE["mix"])]
    assert len(rows) == looks
    with (folder / "detection.csv").open(encoding="utf-8", newline="") as file:
        cells_written = Counter(row["sizes"] for row in csv.DictReader(file))
    assert cells_written == {mix["name"]: looks for mix in REFERENCE["mix"]}
    assert "elephan 1.2.3, 2026-11-23" in " ".join(text.split())
    assert (folder / "detection.png").read_bytes().startswith(b"\x89PNG")

"""Path tests in the simulator, where the truth is known; the page in docs/results has many more cells."""

from __future__ import annotations

import csv
import json

import pytest

from elephan.core import native
from evaluation.parts import RESULTS
from evaluation.path_tests import cells, page
from evaluation.path_tests.cells import Cell, Test


def judged(test: Test, load: float, path: cells.Path, rate: float = 93e6) -> cells.Judged:
    traffic: cells.Traffic = "random" if load else "constant"
    return cells.simulated(Cell(test, rate, load, traffic, path, 0.02, 1.0, 5, None))


@pytest.mark.parametrize("test", ["capacity", "available", "queue"])
@pytest.mark.parametrize("load", [0.0, 0.6])
def test_a_test_is_right_within_one_percent_of_the_line(test: Test, load: float) -> None:
    found = judged(test, load, "one hop")
    assert found.right, page.line(found)
    assert found.share <= 0.0101, f"{found.share} of the line"
    assert found.truth["links"][0]["cross_bps"] == pytest.approx(load * 93e6, rel=0.1, abs=1)


def test_a_tight_link_that_is_not_the_narrow_one_is_found() -> None:
    found = judged("available", 0.0, "narrow not tight")
    assert found.right, page.line(found)
    assert "more than the narrow link is loaded: the streams count" in found.outcome["notes"]
    narrow, tight = found.truth["links"]
    assert narrow["capacity_bps"] == found.truth["capacity_bps"] < tight["capacity_bps"]
    assert found.truth["available_bps"] == pytest.approx(tight["capacity_bps"] - tight["cross_bps"])


def test_the_same_seed_gives_the_same_outcome() -> None:
    one, other = (judged("capacity", 0.6, "three hops") for _ in range(2))
    assert one == other


def test_a_policer_is_found() -> None:
    cell = Cell("policer", 93e6, 0.0, "constant", "one hop", 0.02, 1.0, 5, (30e6, 200_000.0))
    found = cells.simulated(cell)
    assert found.right, page.line(found)
    assert found.outcome["estimates"][1]["value"] == pytest.approx(200_000, rel=0.1)


@pytest.mark.parametrize(
    ("test", "at", "words"),
    [
        ('{"test": "speed"}', "{}", 'test = "speed": must be one of'),
        ('{"test": "capacity"}', "{}", "route and return_route are needed"),
        ('{"test": "capacity"}', '{"route": [7], "return_route": [1]}', "has to name links of the run"),
        ('{"test": "capacity"}', '{"route": [0], "return_route": [1], "start_ns": 10000000000}', "takes longer"),
        ('{"test": "capacity"}', '{"rout": [0]}', "rout"),
    ],
)
def test_a_wrong_test_is_refused_in_words(test: str, at: str, words: str) -> None:
    spec = cells.spec_of(Cell("capacity", 93e6, 0.3, "random", "one hop", 0.02, 1.0, 5, None), 1.0)
    with pytest.raises(ValueError, match=".*".join(words.split())):
        native.simulate_path_test(json.dumps(spec), test, at)


def test_the_page_has_the_counts_of_its_table() -> None:
    rows = list(csv.DictReader((RESULTS / page.PAGE).with_suffix(".csv").open(encoding="utf-8")))
    text = (RESULTS / page.PAGE).read_text(encoding="utf-8")
    for test in ("capacity", "available", "queue"):
        errors = [float(row["error"]) if row["error"] else 1.0 for row in rows if row["test"] == test]
        right = sum(abs(error) <= cells.TARGETS[test] for error in errors)
        assert f"| {test} | {100 * cells.TARGETS[test]:g} % | {right}/{len(errors)} " in text

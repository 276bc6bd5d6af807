"""The paper iscsi: figure 6, by the kernel's numbers and in the simulator."""

from __future__ import annotations

import csv

import pytest

import elephan
from elephan.papers.catalogue import find, folder
from elephan.papers.claims import Runs
from elephan.papers.evaluation import PaperResults, names_of
from elephan.papers.spread import Spread
from elephan.papers.verdict import Verdict, judge
from evaluation.papers.iscsi.testbed import CCS, CLAIM, CONNECTIONS, REFERENCE, figure6, measured_of, spreads_of


def test_the_reference_has_every_point_that_the_scenario_has() -> None:
    reference = find("iscsi").reference(REFERENCE)
    assert set(reference.value) == {f"{cc}_{n}" for cc in CCS for n in CONNECTIONS}
    assert all(len(Spread.of(value).values) >= 3 for value in reference.value.values())


def test_figure_6_is_measured_by_the_kernels_numbers_and_drawn_beside_the_simulators() -> None:
    paper = find("iscsi")
    changes: dict[str, object] = {"run.duration": "3s", "run.repetitions": 2}
    results = elephan.run(folder() / "iscsi" / "fig6.toml", changes, store="none")
    found = figure6.evaluate(PaperResults(paper, [(Runs(file="fig6.toml"), results)]))
    measured = found.measured[CLAIM]
    assert not names_of(paper.claim(CLAIM), measured)
    reference = paper.reference(REFERENCE)
    assert measured["fast_1"] == Spread.of(reference.value["fast_1"]).values
    kernel, simulator = found.tables
    assert [len(row) for row in (*kernel.rows, *simulator.rows)] == [1 + len(CONNECTIONS)] * 8
    assert str(Spread.of(reference.value["htcp_5"])) in kernel.rows[3]
    assert found.figures[0].claim == CLAIM


def _as_the_paper(fast: tuple[float, ...] = (8, 8.6, 9.2, 9.4, 9.5, 9.6)) -> dict[str, tuple[float, ...]]:
    """Return MB/s by connections as the paper's text has them."""
    return {
        "reno": (6, 6, 6.5, 7, 7.5, 8),
        "fast": fast,
        "bic": (4, 5, 6.6, 7.5, 8.5, 9),
        "htcp": (4, 5, 6.6, 7.5, 8.5, 9),
    }


def _verdict(rates: dict[str, tuple[float, ...]], width: float = 0.01) -> Verdict:
    """Judge rates that two repetitions measured, `width` apart."""
    curves = {cc: {n: (at, at + width) for n, at in zip(CONNECTIONS, of, strict=True)} for cc, of in rates.items()}
    return judge(find("iscsi").claim(CLAIM), measured_of(spreads_of(curves))).verdict


def test_the_verdict_on_figure_6_follows_the_papers_words() -> None:
    assert _verdict(_as_the_paper()) is Verdict.REPRODUCED
    assert _verdict(_as_the_paper(), width=0.7) is Verdict.NOT_DECIDED, "ranges overlap"
    poor = _as_the_paper() | {"bic": (6.2, 6.3, 6.6, 7.5, 8.5, 9)}
    assert _verdict(poor) is Verdict.DIFFERS, "BIC is not below Reno"
    dip = _as_the_paper() | {"htcp": (4, 5, 6.6, 6.5, 8.5, 9)}
    assert _verdict(dip) is Verdict.DIFFERS, "H-TCP does not rise at every step"
    assert _verdict(_as_the_paper((8, 8.2, 8.4, 9.0, 10.0, 11.0))) is Verdict.DIFFERS, "FAST's gain does not flatten"
    assert _verdict(_as_the_paper((10, 9.9, 9.8, 9.0, 8.0, 7.0))) is Verdict.DIFFERS, "FAST does not gain"


def test_gain_and_slope_take_every_repetition_with_every_other() -> None:
    curves = {cc: {n: [4.0, 5.0] for n in CONNECTIONS} for cc in CCS}
    curves["fast"] |= {1: [2.0, 4.0], 3: [6.0, 8.0, 9.0], 10: [8.0]}
    found = measured_of(spreads_of(curves))
    assert sorted(Spread.of(found["fast_gain"]).values) == [2.0, 4.0]
    slopes = Spread.of(found["fast_slope_early"])
    assert (len(slopes.values), slopes.low, slopes.high) == (6, 1.0, 3.5)
    turned = {cc: {n: list(reversed(values)) for n, values in of.items()} for cc, of in curves.items()}
    again = measured_of(spreads_of(turned))
    assert Spread.of(again["fast_slope_late"]).median == Spread.of(found["fast_slope_late"]).median


def test_the_reference_is_what_the_whole_repetitions_of_the_table_of_runs_say() -> None:
    runs = list(csv.DictReader((folder() / "iscsi" / "testbed.csv").open()))
    base = {"queue": "50", "window_kib": "0", "reads": "50", "request_kib": "64", "depth": "32", "burst_kib": "0"}
    found: dict[str, dict[str, float]] = {}
    for run in runs:
        alpha = "20" if run["control"] == "fast" else "0"
        if all(run[key] == value for key, value in base.items()) and run["alpha"] == alpha and run["honoured"] == "yes":
            name = f"{run['control']}_{run['connections']}"
            found.setdefault(run["repetition"], {})[name] = float(run["MBps"])
    reference = find("iscsi").reference(REFERENCE)
    whole = [found[number] for number in sorted(found) if len(found[number]) == len(reference.value)]
    for name, values in reference.value.items():
        # Both are rounded, to 2 and to 3 digits.
        assert values == pytest.approx([one[name] for one in whole], abs=0.0056), name

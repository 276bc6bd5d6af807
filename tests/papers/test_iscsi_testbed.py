"""The paper iscsi: figure 6, by the kernel's numbers and in the simulator."""

from __future__ import annotations

import pytest

import elephan
from elephan.papers.catalogue import find, folder
from elephan.papers.claims import Runs
from elephan.papers.evaluation import PaperResults, names_of
from elephan.papers.verdict import Verdict, judge
from evaluation.papers.iscsi.testbed import CCS, CLAIM, FEW, MANY, REFERENCE, figure6


def test_the_reference_has_every_point_that_the_scenario_has() -> None:
    wanted = {(cc, n) for cc in CCS for n in (1, 2, 3, 4, 5, 6, 8, 10)}
    reference = find("iscsi").reference(REFERENCE)
    assert {(name.rsplit("_", 1)[0], int(name.rsplit("_", 1)[1])) for name in reference.value} == wanted
    assert {*FEW, *MANY} < {n for _, n in wanted}


def test_figure_6_is_measured_by_the_kernels_numbers_and_drawn_beside_the_simulators() -> None:
    paper = find("iscsi")
    results = elephan.run(folder() / "iscsi" / "fig6.toml", {"run.duration": "3s"}, store="none")
    found = figure6.evaluate(PaperResults(paper, [(Runs(file="fig6.toml"), results)]))
    measured = found.measured[CLAIM]
    assert not names_of(paper.claim(CLAIM), measured)
    value = paper.reference(REFERENCE).value
    assert measured["fast_few"] == pytest.approx((value["fast_1"] + value["fast_2"]) / 2)
    kernel, simulator = found.tables
    assert [len(row) for row in (*kernel.rows, *simulator.rows)] == [9] * 8
    assert f"{value['htcp_5']:.2f}" in kernel.rows[3]


def test_the_verdict_on_figure_6_wants_fast_to_gain_least() -> None:
    claim = find("iscsi").claim(CLAIM)
    # (few, many): as the paper's text has it.
    paper = {"reno": (5, 6), "fast": (9, 10), "bic": (4, 9), "htcp": (4, 9)}
    measured = {f"{s}_few": few for s, (few, _) in paper.items()} | {
        f"{s}_many": many for s, (_, many) in paper.items()
    }
    measured |= {f"{cc}_gain": many / few for cc, (few, many) in paper.items()}
    assert judge(claim, measured).verdict in (Verdict.REPRODUCED, Verdict.ORDERING_HOLDS)
    assert judge(claim, {**measured, "fast_gain": 3.0}).verdict is Verdict.DIFFERS

"""The paper iscsi: figure 6, by the kernel's numbers and in the simulator."""

from __future__ import annotations

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

"""The paper dsan, run truly where that takes seconds: Table 1 and figure 3; and what holds the rest together."""

from __future__ import annotations

import io
import os
import re
import signal
from pathlib import Path

import pytest

from elephan import papers
from elephan.errors import InputError
from elephan.papers.paper_run import PaperRun
from elephan.papers.verdict import Verdict
from elephan.sweep.executor import Interrupted
from elephan.sweep.progress import NoProgress

QUICK = ("dsan.table1", "dsan.fig3", "dsan.ifcp")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dsan")


@pytest.fixture(scope="module")
def done(place: Path) -> PaperRun:
    return papers.run("dsan", place / "out", str(place / "store.sqlite"), claims=QUICK)


def test_table1_and_fig3_are_reproduced(done: PaperRun) -> None:
    verdicts = {item.claim.id: item.verdict for item in done.judgements}
    assert verdicts == {
        "dsan.table1": Verdict.REPRODUCED,
        "dsan.fig3": Verdict.REPRODUCED,
        "dsan.ifcp": Verdict.HELD,
    }


def test_fig3_has_every_instant_of_the_paper(done: PaperRun) -> None:
    """The paper's text, step by step: D2 at 8, D3 at 9, ACKs at 23 to 26, D11 at 27, D15 at 31."""
    measured = done.evaluation.measured["dsan.fig3"]
    assert measured["step_d2"] == 8
    assert measured["step_d3"] == 9
    assert [measured["step_a4"], measured["step_a7"], measured["step_a8"]] == [23, 26, 31]
    assert [measured["cwnd_step_7"], measured["cwnd_step_16"], measured["cwnd_step_27"]] == [2, 4, 8]


def test_page_is_one_file_with_figures_and_verdicts(done: PaperRun) -> None:
    assert done.page is not None
    text = done.page.read_text()
    assert text.count("<svg") == 2
    assert 'class="verdict good"' in text and "crates/storage/tests/ifcp/three_sites.rs" in text
    assert not re.findall(r'src="http|url\(http|@import', text)
    assert [image.name for image in done.images] == ["table1.png", "fig3.png"]
    assert all(image.read_bytes().startswith(b"\x89PNG") for image in done.images)


def test_a_second_run_takes_everything_from_the_store(done: PaperRun, place: Path) -> None:
    again = papers.run("dsan", None, str(place / "store.sqlite"), claims=QUICK)
    assert all(outcome.reused for _, results in again.results for outcome in results.outcomes)
    assert again.evaluation.measured == done.evaluation.measured


def test_a_paper_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    """Ctrl-C after the second run of Table 1: both are stored, the next call does the other five."""

    class Impatient(NoProgress):
        ended_runs = 0

        def ended(self, number: int) -> None:
            self.ended_runs += 1
            if self.ended_runs == 2:
                os.kill(os.getpid(), signal.SIGINT)

    store = str(tmp_path / "store.sqlite")
    with pytest.raises(Interrupted, match="of 7 runs had ended and are stored"):
        papers.run("dsan", None, store, workers=1, claims=["dsan.table1"], watcher=Impatient())
    went_on = papers.run("dsan", None, store, claims=["dsan.table1"])
    reused = [outcome.reused for _, results in went_on.results for outcome in results.outcomes]
    assert 2 <= sum(reused) < len(reused) == 7
    assert went_on.judgements[0].verdict is Verdict.REPRODUCED


def test_console_shows_claim_paper_measured_and_verdict(done: PaperRun) -> None:
    from rich.console import Console

    from elephan.papers.console import show

    stream = io.StringIO()
    show(done, Console(file=stream, width=160))
    text = stream.getvalue()
    assert re.search(r"dsan\.table1\s+RTT 80 ms\s+100\.00 MB/s\s+(99\.9\d?|100) MB/s\s+reproduced", text)
    assert "3 claims: 2 reproduced, 1 held by tests." in text


def test_unknown_paper_and_claim_are_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match="no paper 'acid'; there are .*dsan"):
        papers.run("acid")
    with pytest.raises(InputError, match=r"no claim 'dsan\.fig8' of dsan; there are dsan\.table1, "):
        papers.run("dsan", claims=["dsan.fig8"])

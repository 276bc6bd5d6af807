"""A comparison's repetitions: their number, and results that do not depend on one seed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import elephan
from elephan.compare import Comparison, compare
from elephan.compare.repetitions import LEAST, MOST, budget_of, chance_in, plan_of
from elephan.compare.table import caption, notes
from elephan.errors import InputError
from elephan.record import Record
from elephan.report.chance import expected_losses

SCENARIO = """
[run]
duration = "10s"
[path]
bandwidth = "50Mbit/s"
rtt = "40ms"
loss = 3e-5
[measure]
series = false
[[flow]]
name = "copy"
"""

CCS = "reno,cubic,vegas"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A scenario that loses about one packet per run."""
    path = tmp_path / "few.toml"
    path.write_text(SCENARIO)
    return path


def compared(
    file: Path, *, congestion_controls: str = CCS, said: list[str] | None = None, **options: Any
) -> Comparison:
    say = None if said is None else said.append
    return compare(file, congestion_controls, store="none", say=say, **options)


def reasons(done: Comparison) -> dict[str, list[str]]:
    """The words of each row without their numbers."""
    return {row.cc: [re.sub(r"[\d.,]+", "N", text) for text in row.why] for row in done.rows}


def test_ranks_and_reasons_do_not_hang_on_the_first_seed(file: Path) -> None:
    """One run with seed 3 loses nothing and all are equal; with seed 8 cubic gets 47 Mbit/s, and reno 40."""
    said: list[str] = []
    first, second = compared(file, seed=3, said=said), compared(file, seed=108)
    ranks = [{row.cc: row.rank for row in done.rows} for done in (first, second)]
    assert ranks[0] == ranks[1] and ranks[0]["cubic"] == 1 < ranks[0]["reno"]
    assert reasons(first) == reasons(second)
    assert said[0].startswith("3 congestion controls, each alone and beside reno: 6 runs per repetition")
    assert "budget 10 min" in said[0] and "--budget" in said[0]
    repetitions = first.plan.repetitions
    assert re.search(rf"with [\d.]+ losses by chance per run: {repetitions} repetitions, [\d.]+ m?s in all", said[1])
    assert 30 / 1.4 < repetitions < 30 / 1.0, "30 losses at 3e-5 of 40,000 packets"
    assert f"95 % confidence intervals (Student's t) over {repetitions} repetitions" in caption(first)


def test_one_run_of_a_lossy_path_ranks_nobody(file: Path) -> None:
    done = compared(file, set=["run.repetitions=1", "run.seed=8"])
    assert [row.rank for row in done.rows] == [1, 1, 1]
    assert all(row.why == ("one repetition: no phrase is significant",) for row in done.rows)
    assert "no difference is significant" in notes(done)[0]
    # 300 packets that the queue dropped at once are no 300 throws.
    assert any("only 2 losses by chance: too few to be significant" in note for note in notes(done))


def test_the_budget_bounds_the_repetitions(file: Path) -> None:
    said: list[str] = []
    done = compared(file, said=said, budget="1us")
    assert done.plan.repetitions == 1 < done.plan.wanted
    assert said[1].endswith(f"1 repetition of {done.plan.wanted}, as the budget allows")
    assert any("as the budget allows: --budget" in note for note in notes(done))
    assert (budget_of("90s", "sim"), budget_of(None, "kernel")) == (90.0, 3600.0)
    with pytest.raises(InputError, match='--budget 90: .*such as "25ms"'):
        budget_of("90", "sim")


def test_the_scenario_s_own_repetitions_count(file: Path) -> None:
    said: list[str] = []
    done = compared(file, set=["run.repetitions=3"], said=said, budget="1us")
    assert (done.plan.repetitions, len(done.alone), said) == (3, 9, [])
    assert [record.seed for record in done.alone.records[:3]] == [1, 2, 3]


def test_what_no_chance_enters_is_run_once(file: Path) -> None:
    said: list[str] = []
    done = compared(file, set=["path.loss=0"], said=said)
    assert done.plan.exact and len(done.alone) == len(done.rows) and not said
    assert "every seed gives these numbers" in caption(done)
    assert all(row.why for row in done.rows) and not any("repetition" in note for note in notes(done))


CONSTANT, ON_OFF = ("rate = '10Mbit/s'", "rate = '30Mbit/s'\non = '50ms'\noff = '50ms'")

CHANGES: dict[str, tuple[list[str], bool]] = {
    "a loss": (["path.loss=1e-3"], True),
    "bit errors": (["path.loss={ bit_error_rate = 1e-7 }"], True),
    "bursts": (["path.loss={ good_to_bad = 1e-3, bad_to_good = 0.3 }"], True),
    "no loss": (["path.loss=0"], False),
    "every 500th": (["path.loss={ every = 500 }"], False),
    "some by number": (["path.loss={ packets = [100, 700] }"], False),
    "jitter": (["path.loss=0", "path.jitter=2ms"], True),
    "RED": (["path.loss=0", "path.queue={ discipline = 'red' }"], True),
    "CoDel": (["path.loss=0", "path.queue={ discipline = 'codel' }"], False),
    "background": (["path.loss=0", f"+[[background]]\n{CONSTANT}"], False),
    "bursts of background": (["path.loss=0", f"+[[background]]\n{ON_OFF}"], True),
    "frames": (["path.loss=0", "flow.workload={ kind = 'constant_rate', load = '60%' }"], False),
    "a loss by an event": (["path.loss=0", "+[[event]]\nat = '1s'\nloss = 1e-3"], True),
}


@pytest.mark.parametrize("name", CHANGES)
def test_chance_is_seen_where_the_seed_changes_a_run(file: Path, name: str) -> None:
    given, random = CHANGES[name]
    changes = [change for change in given if not change.startswith("+")]
    file.write_text(SCENARIO + "\n".join(change[1:] for change in given if change.startswith("+")))
    records = [elephan.run(file, ["run.duration=3s", *changes], seed=seed, store="none")[0] for seed in (1, 2)]
    assert chance_in(records[0].spec) == random
    first, second = ({key: value for key, value in record.metrics.items() if key != "cpu_s"} for record in records)
    assert (first != second) == random


@pytest.mark.parametrize("loss", ["1e-3", "{ bit_error_rate = 8.4e-8 }"])
def test_losses_are_foreseen_from_the_packets(file: Path, loss: str) -> None:
    results = elephan.run(file, [f"path.loss={loss}", "run.repetitions=4"], store="none")
    foreseen = sum(expected_losses(record) for record in results)
    counted = sum(link["dropped_by_loss"] for record in results for link in record.links)
    assert foreseen == pytest.approx(counted, rel=0.25)


def test_bursts_count_once(file: Path) -> None:
    changes = ["path.loss={ good_to_bad = 1e-3, bad_to_good = 0.2 }"]
    record = elephan.run(file, changes, store="none")[0]
    bursts = expected_losses(record)
    packets = sum(link["dropped_by_loss"] for link in record.links)
    assert bursts == pytest.approx(packets / 5, rel=0.5)


def test_a_plan_follows_from_losses_and_cost(make_record: Callable[..., Record]) -> None:
    def plan(losses: float, cpu_s: float, budget_s: float = 600.0) -> tuple[int, int]:
        record = make_record()
        for link in record.spec["links"]:
            link["loss"] = {"kind": "independent", "probability_e12": int(losses * 1e6)}
        record.links = [{"name": "local->far", "delivered_packets": 1_000_000}, {"name": "far->local"}]
        record.metrics["cpu_s"] = cpu_s
        found = plan_of([record], [record, record], budget_s)
        return found.repetitions, found.wanted

    assert plan(1000, 1.0) == (LEAST, LEAST)
    assert plan(3, 1.0) == (10, 10)
    assert plan(0.001, 1.0) == (MOST, MOST)
    assert plan(0, 1.0) == (LEAST, LEAST)
    assert plan(3, 50.0) == (6, 10)
    assert plan(3, 700.0) == (1, 10)

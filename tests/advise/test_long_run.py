"""Long copies: what the advice, the forecast and `elephan run` say of one, against the line and response functions."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from elephan.advise.candidate import OPEN_WINDOW_BYTES, Candidate
from elephan.advise.facts import PathFacts
from elephan.advise.forecast import FileSet, forecast
from elephan.scenario.spec import extrapolate
from tests.hosts.conftest import Elephan

PAYLOAD = 1448 / 1500
HOUR_S = 3600.0


def cubic_bps(loss: float, rtt_s: float) -> float:
    """Return the goodput of a CUBIC flow (RFC 9438, 5.2; Reno's where that is larger)."""
    window = max(math.sqrt(1.5 / loss), 1.054 * (rtt_s / loss) ** 0.75)
    return window * 1448 * 8 / rtt_s


def test_a_long_copy_with_a_loss_now_and_then_takes_as_long_as_cubics_formula_says() -> None:
    facts = PathFacts(rate_bps=1e9, rtt_s=0.1, loss=1e-5, queue_bytes=12_500_000)
    found = forecast(facts, Candidate("cubic", 1, OPEN_WINDOW_BYTES), FileSet.of_text("4TB"), budget_s=1.5)
    by_formula_s = 4e12 * 8 / cubic_bps(1e-5, 0.1)
    # The formula is of evenly spaced losses: independent ones leave 10 to 20 % more, and 40 of them are known to 16 %.
    assert 0.65 * by_formula_s < found.seconds < 1.15 * by_formula_s, found.text()
    assert found.seconds_low < by_formula_s < 1.15 * found.seconds_high, found.text()


def test_a_copy_that_does_not_become_steady_has_bounds_in_its_run(
    elephan: Elephan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One CUBIC flow over a long path loses once in some 20 s: a run sees too few losses, and gives bounds."""
    monkeypatch.setattr(extrapolate, "MOST_PACKETS", 2**22)
    file = tmp_path / "long.toml"
    file.write_text(
        '[run]\nduration = "1000h"\n[path]\nbandwidth = "1Gbit/s"\nrtt = "100ms"\nqueue = "0.05bdp"\n'
        '[[flow]]\nworkload = { kind = "bulk", bytes = "4TB" }\n'
    )
    done = elephan("run", file, "--store", "none", "--json")
    (record,) = json.loads(done.stdout)
    metrics = record["metrics"]
    assert "completion_s" not in metrics
    low, high = metrics["completion_low_s"], metrics["completion_high_s"]
    line_s = 4e12 * 8 / (1e9 * PAYLOAD)
    assert line_s <= low < 1.02 * line_s
    # A CUBIC flow has 0.925 of its largest window on average (RFC 9438, 5.1), here that of path and queue.
    assert low < line_s / 0.925 < high < 5 * line_s
    (note,) = [note for note in record["notes"] if "cannot be extrapolated" in note]
    assert "completion is between 9 h 12 min and " in note


@pytest.mark.parametrize("others", [0, 1])
def test_a_copy_of_days_over_a_fast_long_path_is_not_its_slow_start(
    elephan: Elephan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: int
) -> None:
    from elephan.advise import advice
    from elephan.advise.plan import Plan
    from elephan.advise.simulation import Horizon

    # As the command plans it for 10 Gbit/s, on a tenth of that.
    quick = Plan(Horizon(1.0, 4.0, 2.0), candidates=4, first_draws=1, harm_draws=1, batch=4, finalists=1, draws=2)
    monkeypatch.setattr(advice, "plan_of", lambda *arguments: quick)
    file = tmp_path / "fast.toml"
    other = 'bytes = "1kB"' if others == 0 else 'bytes = "100TB"'
    file.write_text(
        '[run]\nduration = "60s"\n[path]\nbandwidth = "1Gbit/s"\nrtt = "85ms"\nqueue = "0.5bdp"\n'
        f'[[flow]]\nworkload = {{ kind = "bulk", {other} }}\n'
    )
    done = elephan("advise", file, "--for", "4TB", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    low, expected, high = told["seconds"]
    line_s = 4e12 * 8 / (1e9 * PAYLOAD)
    # Alone it has the line but for the cycles of CUBIC; beside others some share of it, and never days of slow start.
    # The line's rate is measured, beside others to some per cent.
    assert line_s <= 1.02 * low and expected < (1.1 if others == 0 else 12) * line_s
    assert low <= expected <= high < (4 if others == 0 else 60) * line_s
    assert told["goodput_bps"][1] == pytest.approx(4e12 * 8 / expected)

"""`elephan advise`: a scenario's path, a reflector on this machine, wrong input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hosts.conftest import Elephan


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--harm", "lots"], "--harm lots: a share from 0% to 100%"),
        (["--harm", "150%"], "--harm 150%"),
        (["--for", "ten"], "--for ten"),
        (["--for", "0B"], "1 B or more"),
        (["--controls", "cubic,nothing"], "--controls nothing: must be of"),
        (["--from", "vienna"], "--from vienna"),
    ],
)
def test_wrong_input_is_one_line(elephan: Elephan, lossy: Path, arguments: list[str], words: str) -> None:
    done = elephan("advise", lossy, *arguments)
    assert done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1


def test_a_scenario_that_is_none(elephan: Elephan, tmp_path: Path) -> None:
    assert elephan("advise", tmp_path / "none.toml").returncode == 2


def test_a_scenario_gets_a_proposal(
    elephan: Elephan, lossy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from elephan.advise import advice
    from elephan.advise.plan import Plan
    from elephan.advise.simulation import Horizon

    quick = Plan(Horizon(0.6, 2.0), candidates=5, first_draws=1, harm_draws=1, batch=5, finalists=1, draws=2)
    monkeypatch.setattr(advice, "plan_of", lambda *arguments: quick)
    fitted = tmp_path / "fitted.toml"
    done = elephan("advise", lossy, "--save", fitted, "--table")
    assert done.returncode == 0, done.stderr
    for words in ("proposed: ", "goodput: ", "harm: a reno flow loses ", "limit: ", "- The path carries "):
        assert words in done.stdout
    assert elephan("check", fitted).returncode == 0
    told = json.loads(elephan("advise", lossy, "--json", "--harm", "5%").stdout)
    assert told["facts"]["rate_bps"] > 3e7 and told["candidate"]["streams"] >= 1 and told["limit"] == 0.05


def test_help_loads_no_core() -> None:
    code = "import sys\nfrom elephan.cli.main import call\ncall(['advise', '--help'])\n"
    code += "assert 'elephan._native' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0

"""`elephan advise`: a scenario's path, a reflector on this machine, wrong input."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from elephan.advise import advice
from elephan.advise.facts import PathFacts
from elephan.advise.plan import Plan
from elephan.advise.simulation import Horizon
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


QUICK = Plan(Horizon(0.6, 2.0), candidates=4, first_draws=1, harm_draws=1, batch=4, finalists=1, draws=2)

PATH = """\
[path]
bandwidth = "{bandwidth}"
rtt = "{rtt}"
queue = "1bdp"
"""


def test_a_path_alone_is_idle(elephan: Elephan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advice, "plan_of", lambda *arguments: QUICK)
    file = tmp_path / "idle.toml"
    file.write_text(PATH.format(bandwidth="40Mbit/s", rtt="20ms"))
    done = elephan("advise", file, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["others"] == {"flows": [], "background": []}
    assert told["facts"]["competing_bps"] == 0 and told["facts"]["competing_flows"] == 0
    assert told["facts"]["rate_bps"] == pytest.approx(40e6, rel=0.02)
    assert told["facts"]["rtt_s"] == pytest.approx(0.02, rel=0.02)


def test_a_scenario_s_own_flows_are_named_as_others(
    elephan: Elephan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advice, "plan_of", lambda *arguments: QUICK)
    file = tmp_path / "busy.toml"
    traffic = '[run]\nduration = "9s"\n[[flow]]\nname = "copy"\n[[background]]\nname = "voice"\nrate = "1Mbit/s"\n'
    file.write_text(PATH.format(bandwidth="40Mbit/s", rtt="20ms") + traffic)
    first = elephan("advise", file).stdout.splitlines()[0]
    assert first.startswith(f"others: flow copy and background voice of {file};") and "[path] alone" in first


def test_a_sample_of_the_start_is_marked_and_so_is_its_harm(
    elephan: Elephan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1 Gbit/s and 100 ms hold 8,333 packets: eight CUBIC flows of 1,042 each need 9.2 s from one loss to the next."""
    monkeypatch.setattr(advice, "plan_of", lambda *arguments: QUICK)
    file = tmp_path / "long.toml"
    file.write_text(PATH.format(bandwidth="1Gbit/s", rtt="100ms"))
    done = elephan("advise", file, "--for", "4TB", "--table")
    lines = done.stdout.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("candidate"))
    assert "sample" in lines[at]
    marked = ["start only, 2.00 s" in line for line in lines[at + 1 :] if "together" not in line]
    assert any(marked) and not all(marked)
    (proposed,) = [line.removeprefix("proposed: ") for line in lines if line.startswith("proposed: ")]
    (row,) = [line for line in lines[at + 1 :] if line.startswith(f"{proposed}  ")]
    assert "start only" not in row
    assert any(line.startswith("note: harm is that of the first 2.00 s") for line in lines)


def test_no_goodput_exceeds_what_the_line_carries(
    elephan: Elephan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data that waited for a retransmission when the measured half began counted in it: 9.74 of 9.65 Gbit/s."""
    plan = Plan(Horizon(1.06, 4.25, 2.125), candidates=6, first_draws=1, harm_draws=1, batch=3, finalists=1, draws=1)
    monkeypatch.setattr(advice, "plan_of", lambda *arguments: plan)
    # No time is left for whole copies.
    monkeypatch.setattr(advice, "ROUNDS", (0.9, 0.9, 0.9, 0.0))
    file = tmp_path / "fast.toml"
    file.write_text(PATH.format(bandwidth="10Gbit/s", rtt="85ms"))
    told = json.loads(elephan("advise", file, "--for", "40TB", "--controls", "cubic", "--json").stdout)
    goodputs = {row["candidate"]: row["goodput_bps"] for row in told["table"]}
    # 1448 of 1500 bytes are payload: IPv4, TCP and its time stamps take 52.
    line_bps = 10e9 * 1448 / 1500
    assert goodputs["16 streams of cubic"] > 0.98 * line_bps
    assert max(goodputs.values()) <= 1.0001 * line_bps


def test_a_path_and_its_background_need_no_run(
    elephan: Elephan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It failed with "run: missing; this key is required"."""
    monkeypatch.setattr(advice, "plan_of", lambda *arguments: QUICK)
    file = tmp_path / "calls.toml"
    calls = '[[background]]\nname = "calls"\nrate = "8Mbit/s"\npacket = "200B"\n'
    file.write_text(PATH.format(bandwidth="40Mbit/s", rtt="20ms") + calls)
    done = elephan("advise", file)
    assert done.returncode == 0 and f"others: background calls of {file};" in done.stdout, done.stderr
    measured = elephan("measure", "capacity", file, "--json")
    # 17.0 Mbit/s were measured on a path of 10 Gbit/s.
    assert " Others take 8.00 Mbit/s by the scenario and do not reduce their rate." in done.stdout
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("calls: ")]
    beside, without = (float(rating) for rating in re.findall(r"R (\d+\.\d)", line))
    # G.107 takes 0.024 for each ms from mouth to ear: 20 ms of speech in 160 B, 10 ms of path.
    assert without == pytest.approx(93.2 - 0.024 * 30, abs=0.3) and beside < without
    assert measured.returncode == 0 and json.loads(measured.stdout)["truth"]["capacity_bps"] == 40e6


FULL_RTT_S = 0.17
"""Round trip of 85 ms through a full queue of one bandwidth-delay product."""


def reno_bps(loss: float, rtt_s: float) -> float:
    """Return the goodput of a Reno flow (Mathis et al. 1997)."""
    return float((1.5 / loss) ** 0.5 * 1448 * 8 / rtt_s)


def test_the_file_s_own_loss_bounds_a_copy(
    elephan: Elephan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound was that of a test that loses nothing: 273 kbit/s to 9.66 Gbit/s, 13,588 days for 40 TB."""
    monkeypatch.setattr(advice, "plan_of", lambda *arguments: QUICK)
    file = tmp_path / "known.toml"
    file.write_text(PATH.format(bandwidth="10Gbit/s", rtt="85ms") + "loss = 1e-7\n")
    told = json.loads(elephan("advise", file, "--for", "40TB", "--json").stdout)
    assert told["facts"]["loss"] == 1e-7
    assert any("loses 1.0e-7 of packets by the scenario" in reason for reason in told["reasons"])
    low, middle, high = told["goodput_bps"]
    assert told["candidate"]["streams"] * reno_bps(1e-7, FULL_RTT_S) <= 1.01 * low
    assert low <= middle <= high <= 1.0001 * 10e9 * 1448 / 1500


def test_a_loss_that_the_test_would_not_see_bounds_a_copy(
    elephan: Elephan, monkeypatch: pytest.MonkeyPatch
) -> None:
    unseen = 1.5e-5
    facts = PathFacts(10e9, 0.085, queue_bytes=106e6, ranges={"loss": (0.0, unseen), "queue_bytes": (100e6, 112e6)})
    monkeypatch.setattr(advice, "plan_of", lambda *arguments: QUICK)
    monkeypatch.setattr("elephan.cli.advise._facts", lambda *_: facts)
    told = json.loads(elephan("advise", "192.0.2.7", "--for", "40TB", "--json").stdout)
    assert any("a loss below 1.5e-5 may not be seen" in reason for reason in told["reasons"])
    assert told["goodput_bps"][0] >= told["candidate"]["streams"] * reno_bps(unseen, FULL_RTT_S)


def test_help_loads_no_core() -> None:
    code = "import sys\nfrom elephan.cli.main import call\ncall(['advise', '--help'])\n"
    code += "assert 'elephan._native' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0

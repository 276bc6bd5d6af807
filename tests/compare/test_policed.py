"""Behind a policer: pacing below it is compared too, and the sysctls are those of what passes."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from elephan.cli.main import call
from elephan.compare import compare
from elephan.compare.table import in_use

CONTRACT_BPS = 50e6
POLICED = """\
[run]
duration = "6s"
[path]
bandwidth = "1Gbit/s"
rtt = "40ms"
policer = { rate = "50Mbit/s", burst = "64KiB" }
[[flow]]
connections = 2
"""


def test_a_pace_below_the_policer_wins_without_a_drop(tmp_path: Path) -> None:
    file = tmp_path / "policed.toml"
    file.write_text(POLICED)
    done = compare(file, "cubic,reno", store="none")
    by_name = {row.cc: row for row in done.rows}
    (paced,) = [row for name, row in by_name.items() if "paced at" in name]
    goodput = {name: row.numbers.mean(lambda run: run.goodput_bps) or 0.0 for name, row in by_name.items()}
    assert paced.rank == 1 and goodput[paced.cc] > 1.2 * goodput["cubic"]
    assert goodput[paced.cc] == pytest.approx(0.97 * CONTRACT_BPS * 1448 / 1500, rel=0.1)
    assert all(link.get("dropped_by_policer", 0) == 0 for record in done.records_of(paced) for link in record.links)
    text = "\n".join(in_use(done, paced))
    # 97 % of the contract for two connections, with headers.
    assert "tc qdisc replace dev DEVICE root fq maxrate 24.25mbit" in text
    # 50 Mbit/s times 40 ms is 250 kB; the port's gigabit would hold 5 MB.
    assert "the path holds 250 kB" in text
    assert paced.numbers.path_packets == pytest.approx(250_000 / 1500)


def test_without_a_policer_nothing_is_added(tmp_path: Path) -> None:
    file = tmp_path / "plain.toml"
    plain = "\n".join(line for line in POLICED.splitlines() if "policer" not in line)
    file.write_text(plain.replace("1Gbit/s", "20Mbit/s").replace("6s", "2s"))
    assert [row.cc for row in compare(file, "cubic", store="none").rows] == ["cubic"]


def rows_of(capsys: pytest.CaptureFixture[str], file: Path, *words: str) -> dict[str, dict[str, Any]]:
    """Rows of the command by congestion control."""
    assert call(["compare", str(file), "--no-report", "--store", "none", "--json", *words]) == 0
    return {row["congestion_control"]: row for row in json.loads(capsys.readouterr().out)}


LOADED = """\
[run]
duration = "6s"
[path]
bandwidth = "1Gbit/s"
rtt = "14ms"
policer = {{ rate = "800Mbit/s", burst = "256KiB" }}
{flows}
"""


def test_mirrored_writes_are_paced_too_and_no_reason_is_false(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Writes of 760 Mbit/s behind 800 Mbit/s: only those that are paced lose nothing."""
    file = tmp_path / "mirror.toml"
    file.write_text(LOADED.format(flows='[[flow]]\nworkload = { kind = "replicate", rate = "95MB/s" }'))
    rows = rows_of(capsys, file, "--cc", "cubic,bbr")
    (paced,) = [row for name, row in rows.items() if "paced at" in name]
    assert paced["caused_drops"] == 0 < rows["cubic"]["caused_drops"]
    (bound,) = [line for line in paced["in_use"] if "fq maxrate" in line]
    assert bound.split()[-1] == "792mbit"
    # 97 % of 800 Mbit/s, headers included, is below the load, 99 % is above it.
    assert 0.97 * 800e6 * 1448 / 1500 < 760e6 < 0.99 * 800e6 * 1448 / 1500
    assert paced["goodput_bps"] == pytest.approx(760e6, rel=0.02)
    assert not any("backlog grows" in text for text in paced["why"])
    # 754 of the 772 Mbit/s of payload that pass: no drop holds it down.
    assert rows["bbr"]["goodput_bps"] > 740e6
    assert not any("recovers slowly" in text or "queues" in text for text in rows["bbr"]["why"])
    assert any(text.startswith("exceeds the policer") for text in rows["bbr"]["why"])


def test_a_flow_that_offers_little_leaves_its_rest_to_those_that_want_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = random.Random(2)
    small = [draw.randrange(5, 200) for _ in range(2)]
    loads = "\n".join(f'[[flow]]\nworkload = {{ kind = "constant_rate", load = "{load}Mbit/s" }}' for load in small)
    file = tmp_path / "shared.toml"
    file.write_text(LOADED.format(flows=f"[[flow]]\n{loads}").replace('"6s"', '"2s"'))
    rows = rows_of(capsys, file, "--cc", "cubic")
    (paced,) = [name for name in rows if "paced at" in name]
    bound = float(paced.split()[-2]) * 1e6
    assert bound == pytest.approx(0.97 * 800e6 * 1448 / 1500 - 1e6 * sum(small), rel=0.01)


def test_writes_that_arrive_after_the_end_are_not_called_lost_load(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A burst of 960 Mbit/s in the last seconds passes 772: the rest of it needs a quarter of its time more."""
    file = tmp_path / "burst.toml"
    workload = '{ kind = "replicate", rate = "120MB/s", active = { on = "2s", off = "4s" } }'
    file.write_text(LOADED.format(flows=f"[[flow]]\nworkload = {workload}").replace('"6s"', '"8s"'))
    rows = rows_of(capsys, file, "--cc", "bbr")
    (text,) = [text for text in rows["bbr"]["why"] if "of what is offered" in text]
    assert "the rest within" in text and rows["bbr"]["drain_s"] == pytest.approx(2 * 960 / 772 - 2, rel=0.3)


def test_the_probe_of_the_round_trip_is_not_laid_to_losses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """BBR without a loss has 5 % more over 600 ms, reno several times as much: losses are only reno's limit."""
    file = tmp_path / "satellite.toml"
    path = 'bandwidth = "50Mbit/s"\nrtt = "600ms"\nloss = {loss}'
    text = f'[run]\nduration = "120s"\n[measure]\nwarmup = "30s"\n[path]\n{path}\n[[flow]]\n'
    found = {}
    for loss in ("1e-4", "0"):
        file.write_text(text.replace("{loss}", loss))
        found[loss] = rows_of(capsys, file, "--cc", "reno,bbr", "--set", "run.repetitions=8")
    goodput = {(cc, loss): found[loss][cc]["goodput_bps"] for cc in ("reno", "bbr") for loss in found}
    assert goodput["bbr", "1e-4"] == pytest.approx(goodput["bbr", "0"], rel=0.1)
    assert goodput["reno", "0"] > 2 * goodput["reno", "1e-4"]
    words = {key: " ".join(found[key[1]][key[0]]["why"]) for key in goodput}
    assert "the line's losses" in words["reno", "1e-4"]
    for loss in found:
        assert not any(
            text in words["bbr", loss] for text in ("the line's losses", "opens its window", "recovers slowly")
        )


MIRROR = """\
[run]
duration = "{duration}"
[path]
bandwidth = "1Gbit/s"
rtt = "14.5ms"
policer = {{ rate = "100Mbit/s", burst = "64KiB" }}
[[flow]]
name = "mirror"
workload = {{ kind = "replicate", rate = "{rate}", arrivals = "constant" }}
[[flow]]
name = "bursts"
workload = {{ kind = "replicate", rate = "34MB/s", arrivals = "constant", active = {{ on = "5s", off = "55s" }} }}
"""
PASSES_BPS = 100e6 * 1448 / 1500


def lag_of_mirror(file: Path, capsys: pytest.CaptureFixture[str], *words: str) -> float:
    """Largest lag of the flow mirror in a run of the command, s."""
    assert call(["run", str(file), "--no-report", "--store", "none", "--json", *words]) == 0
    (run,) = json.loads(capsys.readouterr().out)
    return float(next(flow["lag_max_s"] for flow in run["flows"] if flow["name"] == "mirror"))


def test_a_steady_mirror_beside_bursts_is_paced_above_its_load(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """48 Mbit/s all the time, 272 for 5 s of each minute, 96.5 pass: equal shares of 46.8 would never carry the 48."""
    file = tmp_path / "mirror.toml"
    file.write_text(MIRROR.format(duration="1min", rate="6MB/s"))
    rows = rows_of(capsys, file, "--cc", "cubic")
    (paced,) = [row for name, row in rows.items() if "paced at" in name]
    assert paced["caused_drops"] == 0 and paced["why"][0] == "carries all that is offered"
    (line,) = [line for line in paced["in_use"] if "--set flow." in line]
    changes = [word for word in line.split() if word.startswith("flow.")]
    bounds = {word.split(".")[1]: float(word.split("=")[1].removesuffix("bit/s")) for word in changes}
    assert 48e6 < bounds["mirror"] < 1.1 * 48e6
    # 272 for 5 s of 60 s are 22.7 Mbit/s.
    assert bounds["bursts"] > 272e6 * 5 / 60 and sum(bounds.values()) == pytest.approx(0.97 * PASSES_BPS, rel=1e-3)
    # The commands' own changes: the backlog of slow start shrinks, and a longer run has no longer lag.
    words = [word for change in changes for word in ("--set", change)]
    lags = [lag_of_mirror(file, capsys, *words, "--set", f"run.duration={length}") for length in ("1min", "4min")]
    assert lags[1] == pytest.approx(lags[0], rel=0.1) and lags[1] < 1
    # Equal shares fall behind by 1.2 Mbit/s.
    equal = [
        lag_of_mirror(file, capsys, "--set", "flow.max_pacing_rate=46.8Mbit/s", "--set", f"run.duration={length}")
        for length in ("1min", "4min")
    ]
    assert equal[1] - equal[0] == pytest.approx(180 * 1.2 / 46.8, rel=0.1)


def test_a_setting_under_which_a_backlog_grows_is_not_proposed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "slow.toml"
    file.write_text(MIRROR.format(duration="1min", rate="6MB/s"))
    equal = ["--set", "flow.max_pacing_rate=46.8Mbit/s"]
    words = ["--cc", "cubic,reno", "--no-report", "--store", "none", *equal]
    assert call(["compare", str(file), *words]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert text.count("backlog grows: flow mirror") == 2
    assert "None is proposed" in text and "sysctl -w" not in text


def test_a_backlog_that_drains_below_the_load_grows_and_one_of_a_burst_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """104 Mbit/s never pass 96.5. Bursts of 5 s, which begin 5 s before the end, are late and are carried."""
    file = tmp_path / "load.toml"
    file.write_text(MIRROR.format(duration="20s", rate="13MB/s").replace('name = "bursts"', 'start = "19s"'))
    rows = rows_of(capsys, file, "--cc", "cubic,bbr")
    assert rows and all(row["why"][0].startswith("backlog grows: flow mirror") for row in rows.values())
    text = MIRROR.format(duration="65s", rate="1MB/s")
    file.write_text(text)
    for row in rows_of(capsys, file, "--cc", "cubic,bbr").values():
        assert not any("backlog grows" in phrase for phrase in row["why"])
        assert any("the rest within" in phrase for phrase in row["why"])


def test_no_chance_is_mentioned_where_nothing_is_random(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All fill the line: equal, and by no test of significance."""
    file = tmp_path / "plain.toml"
    path = 'bandwidth = "20Mbit/s"\nrtt = "20ms"\nqueue = "1bdp"'
    file.write_text(f'[run]\nduration = "20s"\n[path]\n{path}\n[[flow]]\n')
    for names, heading in (
        ("reno,cubic", "None is proposed: no congestion control is better than the others by more than 1 %."),
        ("reno,cubic,vegas,westwood", " in use, one of 3 within 1 %, as root"),
    ):
        assert call(["compare", str(file), "--no-report", "--store", "none", "--cc", names]) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert "Nothing is random here" in text and heading in text
        assert "significan" not in text and "certain" not in text


def test_a_fifth_less_lag_does_not_outweigh_half_of_a_neighbour(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mirror.toml"
    file.write_text(MIRROR.format(duration="60s", rate="6MB/s"))
    rows = rows_of(capsys, file, "--cc", "cubic,bbr")
    first = next(iter(rows.values()))
    bbr = rows["bbr"]
    assert "paced at" in first["congestion_control"] and first["caused_drops"] == 0
    # The policer drops the excess of BBR's probes: some per cent of 360,000 packets.
    assert bbr["caused_drops"] > 5000 and 0.8 < bbr["lag_p99_s"] / first["lag_p99_s"] < 1
    assert (first["rank"], bbr["rank"]) == (1, 1)


def test_a_few_per_cent_do_not_outweigh_drops(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """BBR fills all of a contract, of which pacing leaves 3 %, by dropping a part of its packets there."""
    file = tmp_path / "policed.toml"
    file.write_text(POLICED.replace("6s", "20s").replace("connections = 2", ""))
    rows = rows_of(capsys, file, "--cc", "cubic,bbr")
    (paced,) = [row for name, row in rows.items() if "paced at" in name]
    bbr = rows["bbr"]
    gain = bbr["goodput_bps"] / paced["goodput_bps"] - 1
    assert 0.01 < gain < 0.05 and bbr["caused_drops"] > 1000 and paced["caused_drops"] == 0
    assert (paced["rank"], bbr["rank"]) == (1, 1) and next(iter(rows)) == paced["congestion_control"]
    assert call(["compare", str(file), "--no-report", "--store", "none", "--cc", "cubic,bbr"]) == 0
    assert f"{paced['congestion_control']} in use, as root" in " ".join(capsys.readouterr().out.split())

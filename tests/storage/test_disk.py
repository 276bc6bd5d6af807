"""`elephan disk`: the named disks, traces played to them, drives held against measurements."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from pathlib import Path

import pytest

from elephan.cli.main import call
from elephan.disks import describe, names, replay, schedulers, validate
from elephan.errors import InputError
from elephan.scenario import load

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A request every 20 ms, two of three reads, over the whole Cheetah."""
    path = tmp_path / "t.trace"
    rows = (f"{i * 20_000_000} 0 {i * 7_654_321 % 17_000_000} 8 {1 if i % 3 else 0}\n" for i in range(300))
    path.write_text("".join(rows))
    return path


def test_the_named_disks() -> None:
    assert names() == ["cheetah-9lp", "nvme"]
    cheetah = describe("cheetah-9lp")
    assert (cheetah["rpm"], cheetah["surfaces"], len(cheetah["zones"])) == (10_045, 12, 11)
    assert cheetah["seek_full_ns"] > cheetah["seek_third_ns"] > cheetah["seek_one_ns"] == 831_000
    assert describe("nvme")["kind"] == "flash"
    with pytest.raises(InputError, match=r'disk "floppy": expected one of cheetah-9lp, nvme, or a \.parv'):
        describe("floppy")


def test_a_replay_counts_every_request_once(trace: Path) -> None:
    found = replay(trace, "cheetah-9lp")
    assert (found["reads"]["requests"], found["writes"]["requests"], found["all"]["requests"]) == (200, 100, 300)
    assert found["scheduler"] == "fcfs"
    # A random read takes command, a seek of some 5 ms, half a turn of 6 ms; a write is acknowledged from the buffer.
    assert 6e6 < found["reads"]["service_mean_ns"] < 14e6
    assert found["writes"]["service_p50_ns"] < 2e6
    flash = replay(trace, "nvme")
    assert flash["reads"]["response_mean_ns"] < 100_000 < flash["writes"]["response_mean_ns"]
    assert flash["busy"] is None


@pytest.mark.parametrize("scheduler", ["fcfs", "sstf", "look", "c-look", "sptf"])
def test_every_order_serves_all(trace: Path, scheduler: str) -> None:
    assert scheduler in schedulers()
    found = replay(trace, "cheetah-9lp", scheduler=scheduler, closed=16)
    assert found["all"]["requests"] == 300
    assert 15 < found["mean_outstanding"] <= 16
    if scheduler != "fcfs":
        assert found["span_ns"] < replay(trace, "cheetah-9lp", scheduler="fcfs", closed=16)["span_ns"]


def test_times_scale_and_devices_can_be_chosen(trace: Path) -> None:
    fast, slow = replay(trace, "cheetah-9lp"), replay(trace, "cheetah-9lp", time_scale=Fraction(5, 2))
    assert slow["span_ns"] / fast["span_ns"] == pytest.approx(2.5, rel=0.01)
    with pytest.raises(InputError, match="no request to device 3; there are 300 to others"):
        replay(trace, "cheetah-9lp", device=3)


def test_devices_of_blkparse_are_named_as_it_names_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = random.Random(16)
    counts = {(draw.randrange(4096), draw.randrange(1 << 20)): draw.randrange(1, 9) for _ in range(5)}
    queued = [device for device, count in counts.items() for _ in range(count)]
    lines = [
        f"{major},{minor} 1 {number} {number}.5 9 Q R {8 * number} + 8 [a]\n"
        for number, (major, minor) in enumerate(queued)
    ]
    path = tmp_path / "b.trace"
    path.write_text("".join(lines))
    assert call(["trace", str(path)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert call(["trace", str(path), "--json"]) == 0
    devices = json.loads(capsys.readouterr().out)["devices"]
    for (major, minor), count in counts.items():
        assert f"{major},{minor}: {count}" in shown and devices[f"{major},{minor}"] == count
        for form in (f"{major},{minor}", str(major * 2**20 + minor)):
            assert call(["disk", "replay", str(path), "--device", form, "--json"]) == 0
            assert json.loads(capsys.readouterr().out)["all"]["requests"] == count
            scenario = tmp_path / "s.toml"
            scenario.write_text(
                '[run]\nduration = "1s"\n[path]\nbandwidth = "1Gbit/s"\nrtt = "10ms"\n[[flow]]\nworkload = { kind = '
                f'"iscsi", source = {{ kind = "trace", trace = "b.trace", device = "{form}" }} }}\n'
            )
            (point,) = load(scenario).points()
            assert f'"device": {major * 2**20 + minor}' in json.dumps(point.to_spec()["flows"][0]["workload"])
    assert call(["disk", "replay", str(path), "--device", "8,99999999"]) == 2
    assert "--device 8,99999999: expected a device's number from 0, or major,minor" in capsys.readouterr().err
    assert call(["disk", "replay", str(path), "--device", "4095,1048575"]) == 2
    assert "no request to device 4095,1048575; there are" in capsys.readouterr().err


def test_the_command_says_what_a_user_needs(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["disk", "replay", str(trace), "--scheduler", "sptf"]) == 0
    text = capsys.readouterr().out
    for part in ("response mean", "reads", "writes", "1 disk cheetah-9lp, order of requests sptf", "under way", "busy"):
        assert part in text
    assert call(["disk", "replay", str(trace), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["all"]["requests"] == 300
    assert call(["disk", "list"]) == 0
    assert "10,045 rpm" in capsys.readouterr().out
    assert call(["disk", "show", "cheetah-9lp"]) == 0
    assert "sectors per track" in capsys.readouterr().out


def test_what_is_wrong_is_one_line_and_exit_code_2(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.parv").write_text("disksim_disk D {\n Model = source none.model\n}\n")
    (tmp_path / "far.trace").write_text("0 0 99999999999 8 1\n")
    far = str(tmp_path / "far.trace")
    for arguments, part in (
        (["replay", str(trace), "--scheduler", "lift"], 'scheduler "lift" is unknown: use one of fcfs, sstf'),
        (["replay", str(trace), "--time-scale", "0"], "--time-scale 0: expected a number above 0"),
        (["replay", far], "request 1: sectors 99999999999 to before 100000000007 of device 0"),
        (["replay", far], "--out-of-range skip leaves such requests out, wrap takes"),
        (["replay", far, "--out-of-range", "skip"], "all 1 requests go beyond the disk"),
        (["replay", str(trace), "--disk", str(tmp_path / "bad.parv")], "bad.parv, line 2: source none.model: "),
        (["validate", str(trace)], "t.trace, line 1: "),
        (["validate", str(trace), "--disk", "nvme"], "expected a drive"),
    ):
        assert call(["disk", *arguments]) == 2, arguments
        error = capsys.readouterr().err
        assert part in error
        assert error.count("\n") == 1
    assert call(["disk", "replay", far, "--out-of-range", "wrap"]) == 0
    assert "1 request beyond the disk, taken modulo its size" in capsys.readouterr().out


def test_the_drive_is_what_was_measured_where_the_measurements_are_to_be_had(
    capsys: pytest.CaptureFixture[str],
) -> None:
    measurements = SHARED / "disk" / "cheetah9LP.trace"
    if not measurements.exists():
        pytest.skip(f"{measurements} is not there: 10,000 measured requests to a Cheetah 9LP")
    found = validate(measurements, "cheetah-9lp")
    assert found["requests"] == 10_000
    assert found["disksim_rms_ns"] <= 107_000
    assert found["demerit_ns"] <= 107_500
    assert found == {**validate(measurements, str(SHARED / "disk" / "cheetah9LP.parv")), "disk": "cheetah-9lp"}
    assert call(["disk", "validate", str(measurements)]) == 0
    assert "demerit figure: 0.107" in capsys.readouterr().out


def test_the_week_of_a_workstation_where_it_is_to_be_had() -> None:
    week = SHARED / "traces" / "hp-ajw-1week.srt"
    if not week.exists():
        pytest.skip(f"{week} is not there: HP SRT trace, a week from 1992-05-30")
    found = replay(week, "cheetah-9lp")
    assert (found["all"]["requests"], found["disks"], found["out_of_range"]) == (44_519, 2, 0)
    # docs/results/disk.md has this number beside DiskSim's 48.8 ms for other drives.
    assert found["all"]["response_mean_ns"] == pytest.approx(18.2e6, rel=0.01)

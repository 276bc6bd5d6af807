"""Exact periods of traffic, judged by arithmetic: rate times time on is what each period carries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run

MIRROR = """
[run]
duration = "119s"
[path]
bandwidth = "1Gbit/s"
rtt = "14ms"
[[flow]]
name = "mirror"
workload = { kind = "replicate", rate = "4MB/s", size = "40kB", header = "0B", arrivals = "constant", active = ACTIVE }
[measure]
series = false
windows = [WINDOWS]
"""
SHORT = """
[run]
duration = "5900ms"
[path]
bandwidth = "50Mbit/s"
rtt = "20ms"
[[flow]]
name = "frames"
workload = { kind = "constant_rate", load = "8Mbit/s", frame = "1000B", active = { on = "500ms", off = "1500ms" } }
[[background]]
name = "calls"
rate = "1.6Mbit/s"
packet = "200B"
active = { on = "500ms", off = "1500ms" }
[measure]
series = false
windows = [WINDOWS]
"""


def windows(*ends: tuple[str, str]) -> str:
    return ", ".join(f'{{ name = "w{n}", from = "{start}", to = "{end}" }}' for n, (start, end) in enumerate(ends))


def run(elephan: Run, folder: Path, text: str, *arguments: str) -> dict[str, Any]:
    (folder / "periods.toml").write_text(text)
    code, out, error = elephan("run", "periods.toml", "--store", "none", "--json", *arguments)
    assert (code, error) == (0, ""), error
    (record,) = json.loads(out)
    assert isinstance(record, dict)
    return record


def delivered(record: dict[str, Any]) -> list[int]:
    return [window["metrics"]["delivered_bytes"] for window in record["windows"]]


def test_five_seconds_of_each_minute_carry_five_seconds_of_the_rate(folder: Path, elephan: Run) -> None:
    ends = windows(("0s", "5100ms"), ("5100ms", "60s"), ("60s", "65100ms"), ("65100ms", "119s"))
    text = MIRROR.replace("ACTIVE", '{ on = "5s", off = "55s" }').replace("WINDOWS", ends)
    record = run(elephan, folder, text)
    assert delivered(record) == [20_000_000, 0, 20_000_000, 0], "4 MB/s for 5 s of each minute, exactly"
    assert record["metrics"]["messages"] == 2 * 20_000_000 // 40_000


def test_hours_of_the_day_count_from_the_time_at_which_the_run_begins(folder: Path, elephan: Run) -> None:
    """From 21:59:50 on: 10 s until ten, and the rest of the run within the hours; from 05:59:40 on 20 s of them."""
    ends = windows(("0s", "10s"), ("10s", "20100ms"), ("20100ms", "119s"))
    text = MIRROR.replace("ACTIVE", '"22:00-06:00"').replace("WINDOWS", ends)
    evening = run(elephan, folder, text, "--set", "run.time_of_day=21:59:50", "--set", "run.duration=119s")
    first, second, third = delivered(evening)
    assert first == 0
    assert second == pytest.approx(40_000_000, abs=400_000) and third == pytest.approx(98.9 * 4e6, abs=400_000)
    morning = run(elephan, folder, text, "--set", "run.time_of_day=05:59:40")
    assert sum(delivered(morning)) == 80_000_000 and delivered(morning)[2] == 0


def test_frames_and_other_traffic_keep_their_periods_too(folder: Path, elephan: Run) -> None:
    ends = windows(("0s", "2s"), ("2s", "4s"), ("4s", "5900ms"))
    record = run(elephan, folder, SHORT.replace("WINDOWS", ends))
    assert delivered(record) == [500_000] * 3, "8 Mbit/s for 500 ms"
    (calls,) = record["background"]
    # 1000 packets of 200 B a second.
    assert calls["sent_packets"] == calls["received_packets"] == 3 * 500


def test_short_flows_begin_while_active(folder: Path, elephan: Run) -> None:
    text = """
[run]
duration = "99s"
[path]
bandwidth = "1Gbit/s"
rtt = "2ms"
[[flow]]
workload = { kind = "constant_rate", load = "1Mbit/s" }
[[flow]]
workload = { kind = "short_flows", arrivals = 100, active = { on = "1s", off = "9s" } }
[measure]
series = false
"""
    count = run(elephan, folder, text)["short_flows"][0]["flows"]
    # 10 periods of a second; 4 standard deviations of a Poisson number.
    assert abs(count - 1000) < 4 * 1000**0.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('flow.workload.active={ on = "5s" }', "workload.active.off: missing"),
        ("flow.workload.active=22-6", 'hours of the day, such as "22:00-06:00"'),
        ("flow.workload.active=22:00-22:00", "without active it is active all day"),
        ("run.time_of_day=24:00", 'a time of day, such as "21:30"'),
        ("flow.workload={ kind = 'bulk', active = '22:00-06:00' }", "active"),
    ],
)
def test_wrong_periods_are_refused_in_one_line(folder: Path, elephan: Run, change: str, message: str) -> None:
    text = MIRROR.replace("ACTIVE", '{ on = "5s", off = "55s" }').replace("WINDOWS", windows(("0s", "9s")))
    (folder / "periods.toml").write_text(text)
    code, _, error = elephan("run", "periods.toml", "--store", "none", "--set", change)
    assert code == 2 and message in error and len(error.splitlines()) == 1, error

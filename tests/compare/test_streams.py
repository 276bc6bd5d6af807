"""Several streams are compared where one is limited by its window or by the line's losses, and nowhere else."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from elephan.cli.main import call
from elephan.compare import Comparison, compare
from elephan.compare.table import in_use

PAYLOAD = 1448 / 1500
SCENARIO = """\
[run]
duration = "{duration}"
repetitions = {repetitions}
[path]
bandwidth = "{rate_bps}bit/s"
rtt = "{rtt}"
{path}
[[flow]]
{flow}
"""


def compared(
    folder: Path,
    controls: str = "cubic",
    *,
    rate_bps: int = 100_000_000,
    rtt: str = "40ms",
    path: str = "",
    flow: str = "",
    duration: str = "8s",
    repetitions: int = 1,
) -> Comparison:
    file = folder / "streams.toml"
    file.write_text(
        SCENARIO.format(
            rate_bps=rate_bps, rtt=rtt, path=path, flow=flow, duration=duration, repetitions=repetitions
        )
    )
    return compare(file, controls, store="none")


def goodputs(done: Comparison) -> dict[str, float]:
    return {row.cc: row.numbers.mean(lambda run: run.goodput_bps) or 0.0 for row in done.rows}


def test_streams_behind_a_window_have_that_many_windows(tmp_path: Path) -> None:
    draw = random.Random(39)
    for _ in range(3):
        rate_bps, rtt_ms = draw.randrange(60, 400) * 10**6, draw.randrange(20, 80)
        # Below a quarter of what one round trip holds: two streams do not fill the line.
        window = int(draw.uniform(0.05, 0.24) * rate_bps * rtt_ms / 8000) // 1448 * 1448
        done = compared(tmp_path, rate_bps=rate_bps, rtt=f"{rtt_ms}ms", flow=f'window = "{window}B"', duration="6s")
        found = goodputs(done)
        assert set(found) == {"cubic", "cubic, 2 streams", "cubic, 4 streams", "cubic, 8 streams"}
        one_bps = window * 8000 / rtt_ms
        assert found["cubic"] == pytest.approx(one_bps, rel=0.05)
        for count in (2, 4, 8):
            expected = min(count * one_bps, rate_bps * PAYLOAD)
            assert found[f"cubic, {count} streams"] == pytest.approx(expected, rel=0.1)
        (two,) = [row for row in done.rows if row.cc == "cubic, 2 streams"]
        assert two.why[0].endswith("times the goodput of one stream") and two.why[0][:2] in ("2.", "1.")


def test_streams_over_losses_gain_and_cost_a_neighbour(tmp_path: Path) -> None:
    done = compared(tmp_path, "reno,cubic", path="loss = 1e-3", repetitions=5)
    found = goodputs(done)
    # RFC 9438, 5.1: at 40 ms and 1e-3 CUBIC is Reno: 38.7 packets a round trip, after slow start.
    assert 38.7 * 1448 * 8 / 0.04 < found["cubic"] < 35e6
    assert found["cubic, 4 streams"] > 2 * found["cubic"]
    rows = {row.cc: row for row in done.rows}
    kept = [rows[name].numbers.neighbour_kept for name in ("cubic", "cubic, 8 streams")]
    assert kept[0] is not None and kept[1] is not None and kept[1].mean < kept[0].mean
    first = done.rows[0]
    assert first.cc == "cubic, 8 streams" and "times the goodput of one stream" in first.why[0]
    assert "# 8 connections share the data: elephan copy --streams 8, iperf3 -P 8." in in_use(done, first)
    assert not any("reno," in name for name in found)


@pytest.mark.parametrize(
    ("path", "flow"),
    [
        ("", ""),
        # A loss that one stream bears: 1e-7.
        ("loss = 1e-7", ""),
        # The scenario's own count.
        ("loss = 1e-3", "connections = 1"),
        # The count is not free where another flow shares the path, or where the application writes at its own rate.
        ("loss = 1e-3", "[[flow]]"),
        ("loss = 1e-3", 'workload = { kind = "constant_rate", load = "20%" }'),
    ],
)
def test_streams_are_not_tried_elsewhere(tmp_path: Path, path: str, flow: str) -> None:
    done = compared(tmp_path, path=path, flow=flow, duration="1s", rate_bps=20_000_000)
    assert [row.cc for row in done.rows] == ["cubic"]


def test_the_command_shows_streams_with_what_they_gain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "streams.toml"
    flow = 'window = "64KiB"'
    file.write_text(SCENARIO.format(rate_bps=10**8, rtt="40ms", path="", flow=flow, duration="5s", repetitions=1))
    assert call(["compare", str(file), "--cc", "cubic", "--no-report", "--store", "none"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    # 64 KiB in 40 ms are 13.1 Mbit/s at most.
    (one,) = re.findall(r" cubic ([\d.]+) Mbit/s ", text)[:1]
    assert 12 < float(one) < 13.1
    gains = [float(gain) for gain in re.findall(r"([\d.]+) times the goodput of one stream", text)]
    assert gains == pytest.approx([100 * PAYLOAD / float(one), 4, 2], rel=0.06)

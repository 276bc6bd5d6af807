"""RFC 6349's test of TCP over simulated paths, of which the right answers are known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import elephan
from elephan.cli.main import call
from elephan.errors import InputError
from elephan.line.methods import rfc6349
from elephan.record import Record

RATE_BPS, RTT_S = 100_000_000, 0.02
SCENARIO = """
[run]
duration = "5s"
[path]
{line}
rtt = "20ms"
queue = "{queue}"
[[flow]]
congestion_control = "cubic"
{more}
[measure]
warmup = "1s"
"""


def scenario(folder: Path, line: str = 'bandwidth = "100Mbit/s"', queue: str = "1bdp", more: str = "") -> Path:
    file = folder / "path.toml"
    file.write_text(SCENARIO.format(line=line, queue=queue, more=more))
    return file


def runner(file: Path) -> rfc6349.Run:
    def run(changes: Mapping[str, Any]) -> Record:
        found: Record = elephan.run(file, changes, store="none")[0]
        return found

    return run


def test_the_path_is_measured_by_a_light_flow(tmp_path: Path) -> None:
    path = rfc6349.baseline(runner(scenario(tmp_path)))
    # A frame of 1000 B adds 0.1 ms.
    assert path.rtt_s == pytest.approx(RTT_S, rel=0.01) and path.bottleneck_bps == RATE_BPS
    assert path.bdp_bytes == pytest.approx(RATE_BPS * RTT_S / 8, rel=0.01)
    assert path.ideal_bps == pytest.approx(RATE_BPS * 1448 / 1500)
    # On Ethernet a packet of 1500 B takes 1538 B of the line (RFC 6349, 4.1 counts them too).
    path = rfc6349.baseline(runner(scenario(tmp_path, 'line = "1gbe"')))
    assert path.ideal_bps == pytest.approx(1e9 * 1448 / 1538)
    assert rfc6349.baseline(runner(scenario(tmp_path)), 50_000_000).ideal_bps == pytest.approx(5e7 * 1448 / 1500)


def test_a_window_below_the_product_limits_as_expected(tmp_path: Path) -> None:
    run = runner(scenario(tmp_path))
    path = rfc6349.baseline(run)
    quarter, half, whole, shared = rfc6349.measure(run, path, (25, 50, 100), (1, 4))
    for one, part in ((quarter, 0.25), (half, 0.5)):
        # Whole segments fit the window, and the last bit of one takes its time on the line.
        assert one.goodput_bps == pytest.approx(part * RATE_BPS, rel=0.05) == one.expected_bps
        assert one.transfer_time_ratio == pytest.approx(path.ideal_bps / one.goodput_bps)
        # No queue: what is above the baseline is the wait of delayed ACKs.
        assert one.efficiency == 1.0 and one.buffer_delay == pytest.approx(0, abs=0.1)
    # Bursts leave a little of a window empty that is just the product.
    assert whole.transfer_time_ratio == pytest.approx(1, abs=0.04)
    assert (shared.connections, shared.window_bytes) == (4, whole.window_bytes // 4)
    assert shared.transfer_time_ratio == pytest.approx(1, abs=0.04)
    assert whole.transfer_s == pytest.approx(8e8 / whole.goodput_bps)


def test_a_window_of_twice_the_product_fills_the_buffer(tmp_path: Path) -> None:
    run = runner(scenario(tmp_path, queue="2bdp"))
    (twice,) = rfc6349.measure(run, rfc6349.baseline(run), (200,))
    # A standing queue of one bandwidth-delay product doubles the round-trip time.
    assert twice.buffer_delay == pytest.approx(1, abs=0.1) and twice.retransmitted_bytes == 0


def test_loss_costs_efficiency(tmp_path: Path) -> None:
    run = runner(scenario(tmp_path, 'bandwidth = "100Mbit/s"\nloss = 0.001'))
    (one,) = rfc6349.measure(run, rfc6349.baseline(run), (100,))
    assert one.efficiency == pytest.approx(0.999, abs=0.0007) and one.transfer_time_ratio > 1.2


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ('transport = "udt4"', "flow.transport: a test of TCP needs a flow of TCP"),
        ('[[flow]]\nname = "second"\ncongestion_control = "reno"', "needs one flow, and no background traffic"),
    ],
)
def test_a_scenario_that_is_no_flow_of_tcp_is_refused(more: str, expected: str, tmp_path: Path) -> None:
    text = scenario(tmp_path, more=more).read_text()
    if "udt" in more:
        text = text.replace('congestion_control = "cubic"\n', "")
    (tmp_path / "path.toml").write_text(text)
    with pytest.raises(InputError, match=expected):
        rfc6349.baseline(runner(tmp_path / "path.toml"))


def test_the_command_prints_and_judges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["line", "test", "tcp", str(scenario(tmp_path)), "--store", "none", "--windows", "50%,100%"]
    assert call([*command, "--connections", "1", "--json", "--least", "90%"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["window_per_cent"] for one in found["results"]] == [50, 100] and found["passed"] is True
    page = tmp_path / "tcp.html"
    assert call([*command, "--set", "path.loss=0.01", "--least", "90%", "--report", str(page)]) == 1
    out, err = capsys.readouterr()
    assert "transfer time ratio" in out and "TCP stays below 90% of what the path could carry" in err
    assert page.exists() and (tmp_path / "tcp-tcp.png").exists()
    for words, expected in (
        (["--windows", "25"], "--windows 25: whole numbers of 1 to 10000 are needed, such as 25%,50%,100%,200%"),
        (["--connections", "0"], "--connections 0: whole numbers of 1 to 1000 are needed"),
        (["--on", "sim,kernel"], "--on sim,kernel: one of sim, kernel, hosts is needed"),
        (["--yes"], "--yes: is for --on hosts"),
    ):
        assert call([*command, *words]) == 2
        assert expected in capsys.readouterr().err

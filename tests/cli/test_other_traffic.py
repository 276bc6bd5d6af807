"""Background traffic beside a flow, by the printed result: loss, delays and the score of a call."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run

SHARED = """
[run]
duration = "20s"
[path]
bandwidth = "50Mbit/s"
rtt = "80ms"
queue = "60 packets"
[[flow]]
name = "copy"
congestion_control = "bbr"
[[background]]
name = "calls"
rate = "1.6Mbit/s"
packet = "200B"
[[background]]
name = "video"
rate = "4Mbit/s"
packet = "1200B"
"""
ALONE = """
[run]
duration = "10s"
[path]
bandwidth = "1Mbit/s"
rtt = "80ms"
loss = { every = 50 }
[[flow]]
name = "idle"
start = "9s"
workload = { kind = "constant_rate", load = "8kbit/s", frame = "100B" }
[[background]]
name = "call"
rate = "80kbit/s"
packet = "200B"
"""


@pytest.fixture
def run(elephan: Run, folder: Path) -> Any:
    def call(text: str, *arguments: str) -> str:
        (folder / "shared.toml").write_text(text)
        code, out, error = elephan("run", "shared.toml", "--store", "none", *arguments)
        assert code == 0, error
        return out

    return call


def test_loss_and_delay_of_a_call_are_those_of_its_packets(run: Any) -> None:
    """200 B take 1.6 ms at 1 Mbit/s, and 40 ms to the other side; of 500 packets every 50th is lost."""
    (record,) = json.loads(run(ALONE, "--json"))
    (call,) = record["background"]
    assert call["loss_share"] == pytest.approx(0.02, abs=0.001)
    assert call["delay_p50_s"] == pytest.approx(0.0416, rel=0.005)
    assert call["delay_max_s"] < 0.046 and call["jitter_s"] < 0.001
    # 20 ms of speech in a packet, and no more than the way.
    assert call["voice_delay_s"] == pytest.approx(0.0616, abs=0.004)
    # Ie-eff = 95 x 2 / (2 + 25.1) = 7.0, and about 1.8 for 62 ms of echo and delay (G.107, 7.4 and 7.5).
    assert call["voice_r"] == pytest.approx(93.2 - 7.0 - 1.8, abs=0.5)
    assert call["voice_mos"] == pytest.approx(4.18, abs=0.05)


def test_the_result_has_a_row_for_each_source(run: Any) -> None:
    lines = run(SHARED, "--no-report").splitlines()
    head = next(line for line in lines if line.startswith("other traffic"))
    assert re.split(r"\s\s+", head) == ["other traffic", "loss", "delay p50", "delay p99", "jitter", "R", "MOS"]
    calls, video = (next(line for line in lines if line.startswith(name)) for name in ("calls ", "video "))
    loss, p50, p99, _, rating, mos = re.split(r"\s\s+", calls)[1:]
    assert 0.1 < float(loss.removesuffix(" %")) < 5
    assert 40 < float(p50.removesuffix(" ms")) <= float(p99.removesuffix(" ms")) < 56
    assert 60 < float(rating) < 92 and 3 < float(mos) < 4.4
    assert re.split(r"\s\s+", video)[-2:] == ["–", "–"], "the model judges no video"
    assert any("ITU-T G.107" in line and "G.711 with loss concealment" in line for line in lines)


def test_the_report_has_the_same_rows(run: Any, folder: Path) -> None:
    run(SHARED, "--out", "out")
    page = (folder / "out" / "report.html").read_text()
    assert "<h2>Other traffic</h2>" in page
    rows = page[page.index('id="other-traffic"') :]
    assert ">calls</th>" in rows and ">MOS</th>" in rows


def test_another_codec_is_judged_otherwise(run: Any) -> None:
    ratings = {}
    for codec in ("g711", "g711_without_plc", "g729a"):
        (record,) = json.loads(run(ALONE, "--json", "--set", f"background.codec={codec}"))
        ratings[codec] = record["background"][0]["voice_r"]
    # 95 x 2 / (2 + 4.3) = 30.2 in place of 7.0.
    assert ratings["g711"] - ratings["g711_without_plc"] == pytest.approx(30.2 - 7.0, abs=0.3)
    # Ie = 11 for G.729A, and 160 ms of speech in a packet of 200 B.
    assert ratings["g711"] - ratings["g729a"] > 11
    (record,) = json.loads(run(ALONE, "--json", "--set", "background.codec=none"))
    assert "voice_r" not in record["background"][0]


def test_compare_ranks_those_that_hurt_calls_behind_the_others(elephan: Run, folder: Path) -> None:
    (folder / "shared.toml").write_text(SHARED)

    def compared(*arguments: str) -> list[dict[str, Any]]:
        words = ("compare", "shared.toml", "--cc", "bbr,cubic", "--no-report", "--json", "--store", "none")
        code, out, error = elephan(*words, *arguments)
        assert code == 0, error
        rows: list[dict[str, Any]] = json.loads(out)
        return rows

    first, second = compared()
    assert (first["congestion_control"], second["congestion_control"]) == ("bbr", "cubic"), "by goodput"
    lost = {row["congestion_control"]: row["other_traffic"]["calls"]["loss_share"] for row in (first, second)}
    assert lost["bbr"] > 0.001 > lost["cubic"]
    first, second = compared("--harm", "calls=0.1%")
    assert [(row["rank"], row["congestion_control"]) for row in (first, second)] == [(1, "cubic"), (2, "bbr")]
    assert re.match(r"calls: 0\.\d+ % lost, above 0\.100 %", second["why"][0])


@pytest.mark.parametrize(("harm", "message"), [("calls", "NAME=SHARE"), ("cals=1%", "one of calls, video")])
def test_a_wrong_limit_of_harm_is_refused(elephan: Run, folder: Path, harm: str, message: str) -> None:
    (folder / "shared.toml").write_text(SHARED)
    code, _, error = elephan("compare", "shared.toml", "--cc", "reno", "--harm", harm, "--store", "none")
    assert code == 2 and message in error and len(error.splitlines()) == 1, error

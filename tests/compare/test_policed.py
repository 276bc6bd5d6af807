"""Behind a policer: pacing below it is compared too, and the sysctls are those of what passes."""

from __future__ import annotations

from pathlib import Path

import pytest

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
    assert "tc qdisc replace dev DEVICE root fq maxrate 2424" in text
    # 50 Mbit/s times 40 ms is 250 kB; the port's gigabit would hold 5 MB.
    assert "the path holds 250 kB" in text
    assert paced.numbers.path_packets == pytest.approx(250_000 / 1500)


def test_without_a_policer_nothing_is_added(tmp_path: Path) -> None:
    file = tmp_path / "plain.toml"
    plain = "\n".join(line for line in POLICED.splitlines() if "policer" not in line)
    file.write_text(plain.replace("1Gbit/s", "20Mbit/s").replace("6s", "2s"))
    assert [row.cc for row in compare(file, "cubic", store="none").rows] == ["cubic"]

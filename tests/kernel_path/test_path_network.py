"""Packets on a path meet the conditions of the scenario: real packets, measured at both ends. Needs root.

Bounds are those of statistics and of the emulator's own claims. No packet may be early; being late is judged by the
middle of many, since a machine that does other things delays single ones.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from elephan.path import testbed

PROBLEM = testbed.missing()
pytestmark = [
    pytest.mark.skipif(PROBLEM is not None, reason=f"the path {PROBLEM}"),
    pytest.mark.measures_time,
]

HERE = Path(__file__).parent
MS = 1_000_000
LATE_NS = MS // 2
"""Time that the middle packet may take beyond the model: to be read, to wake up, to be handed over."""


class Seen:
    """Output of a program within a path, and the path's report at the end."""

    def __init__(self, out: dict[str, Any], report: str) -> None:
        self.out = out
        self.report = report

    @property
    def delays(self) -> dict[int, int]:
        """One-way delay of each packet that came, ns."""
        return {number: delay for number, delay, _ in self.out["got"]}

    def link(self, name: str, what: str) -> int:
        """A count of a link's line in the report."""
        line = next(line for line in self.report.splitlines() if line.startswith(f"{name}: "))
        found = re.search(what, line)
        return int(found[1]) if found else 0


def measure(tmp_path: Path, scenario: str, tool: str, *options: str) -> Seen:
    """Run a tool over a scenario's path."""
    file = tmp_path / "path.toml"
    flow = '\n[[flow]]\ncongestion_control = "reno"\n' if "[[flow]]" not in scenario else ""
    file.write_text(f'[run]\nduration = "60s"\n\n{scenario}\n{flow}', encoding="utf-8")
    elephan = [sys.executable, "-c", "from elephan.cli import main; main()"]
    command = [*elephan, "path", "shell", str(file), "--", sys.executable, str(HERE / tool), "both", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return Seen(json.loads(done.stdout), done.stderr)


def near(delays: dict[int, int], wanted_ns: int) -> None:
    """Check that no packet was early and that the middle one was in time."""
    assert min(delays.values()) >= wanted_ns
    assert statistics.median(delays.values()) <= wanted_ns + LATE_NS, sorted(delays.values())


LOPSIDED = '[path]\nbandwidth = "80Mbit/s"\nrtt = "20ms"\nreverse = { bandwidth = "2Mbit/s" }'


@pytest.mark.parametrize(("back", "serialisation_ns"), [(False, MS // 10), (True, 4 * MS)])
def test_each_direction_has_its_own_rate(tmp_path: Path, back: bool, serialisation_ns: int) -> None:
    # 1000 bytes take 0.1 ms at 80 Mbit/s and 4 ms at 2 Mbit/s, before 10 ms of propagation.
    seen = measure(tmp_path, LOPSIDED, "probe.py", "--gap-us=6000", *(["--back"] if back else []))
    assert len(seen.delays) == 100
    near(seen.delays, 10 * MS + serialisation_ns)


def test_long_form_with_routers_and_background_traffic(tmp_path: Path) -> None:
    nodes = "".join(f'[[node]]\nname = "{name}"\n' for name in ("a", "r1", "r2", "b"))
    link = '[[link]]\nfrom = "{}"\nto = "{}"\nbandwidth = "{}"\ndelay = "{}"\nqueue = "1MB"\n'
    links = "".join(
        link.format(*each)
        for each in (
            ("a", "r1", "1Gbit/s", "2ms"),
            ("r1", "r2", "8Mbit/s", "5ms"),
            ("r2", "b", "1Gbit/s", "3ms"),
        )
    )
    # Every 2 ms a packet of 1000 bytes keeps the middle line busy for 1 ms: ours wait for 0 to 1 ms, evenly.
    cross = '[[background]]\nfrom = "r1"\nto = "r2"\nrate = "4Mbit/s"\npacket = "1000B"\n'
    flow = '[[flow]]\nfrom = "a"\nto = "b"\ncongestion_control = "reno"\n'
    seen = measure(tmp_path, nodes + links + cross + flow, "probe.py", "--count=300", "--gap-us=3337")
    delays = sorted(seen.delays.values())
    assert len(delays) == 300
    alone_ns = 10 * MS + MS + 2 * 8000
    assert delays[0] >= alone_ns
    waited_ns = statistics.mean(delay - alone_ns for delay in delays[:280])
    # Half of the packets meet one in transmission and wait for half of it: 0.25 ms, and the emulator's own time.
    assert 0.1 * MS <= waited_ns <= 0.25 * MS + LATE_NS, waited_ns
    background = re.search(r"background: (\d+) packets sent, (\d+) arrived", seen.report)
    assert background is not None and int(background[1]) > 300
    # Those of the last 5 ms are in flight.
    assert int(background[1]) - 5 <= int(background[2]) <= int(background[1])


def test_losses_are_as_frequent_as_the_scenario_says(tmp_path: Path) -> None:
    count, probability = 4000, 0.05
    path = f'[path]\nbandwidth = "1Gbit/s"\nrtt = "2ms"\nloss = {probability}'
    seen = measure(tmp_path, path, "probe.py", f"--count={count}", "--gap-us=100", "--size=100")
    lost = count - len(seen.delays)
    # Four standard deviations of a binomial distribution: once in 16,000 scenarios, and this one has one seed.
    deviation = (count * probability * (1 - probability)) ** 0.5
    assert abs(lost - count * probability) <= 4 * deviation, lost
    assert lost == seen.link("path.forward", r"lost (\d+)")


def test_a_queue_holds_what_it_is_given_and_drops_the_rest(tmp_path: Path) -> None:
    # 1000 bytes take 4 ms: one is being sent, ten wait.
    path = '[path]\nbandwidth = "2Mbit/s"\nrtt = "2ms"\nqueue = "10 packets"'
    seen = measure(tmp_path, path, "probe.py", "--count=60", "--gap-us=0")
    sent = seen.out["sent"]
    left_meanwhile = (sent[-1] - sent[0]) // (4 * MS) + 1
    assert 11 <= len(seen.delays) <= 11 + left_meanwhile
    assert seen.link("path.forward", r"dropped (\d+)") == 60 - len(seen.delays)
    # The first eleven leave one after the other.
    for number in range(11):
        assert seen.delays[number] + sent[number] - sent[0] >= MS + 4 * MS * (number + 1)


@pytest.mark.parametrize("reordering", [False, True])
def test_jitter_spreads_delays_and_reorders_only_where_asked(tmp_path: Path, reordering: bool) -> None:
    jitter = f'{{ scale = "8ms", reordering = {str(reordering).lower()} }}'
    path = f'[path]\nbandwidth = "1Gbit/s"\nrtt = "10ms"\njitter = {jitter}'
    seen = measure(tmp_path, path, "probe.py", "--count=400", "--gap-us=2000")
    delays = list(seen.delays.values())
    assert len(delays) == 400
    order = list(seen.delays)
    assert (order == sorted(order)) is not reordering
    assert min(delays) >= 5 * MS
    if reordering:
        # Even between 0 and 8 ms: the median within four of its standard deviations, and the emulator's own time.
        deviation_ns = 8 * MS / 2 / 400**0.5
        extra_ns = statistics.median(delays) - 5 * MS
        assert 4 * MS - 4 * deviation_ns <= extra_ns <= 4 * MS + 4 * deviation_ns + LATE_NS


def test_events_change_the_path_at_their_time(tmp_path: Path) -> None:
    path = """
[path]
bandwidth = "100Mbit/s"
rtt = "10ms"
queue = "1000 packets"

[[event]]
at = "2500ms"
rtt = "30ms"
bandwidth = "4Mbit/s"

[[event]]
at = "3500ms"
link_down = "path"

[[event]]
at = "4s"
link_up = "path"
"""
    # 1000 bytes take 0.08 ms, then 2 ms. The program starts a little after the path.
    seen = measure(tmp_path, path, "probe.py", "--count=1200", "--gap-us=4000")
    delays = seen.delays
    near({number: delays[number] for number in range(100)}, 5 * MS + 80_000)
    changed = 1 + max(number for number in delays if delays[number] < 17 * MS)
    near({number: delays[number] for number in range(changed, changed + 150)}, 17 * MS)
    # An outage of half a second, a second after that: packets on the line are lost, later ones wait.
    lost = set(range(1200)) - set(delays)
    assert 1 <= len(lost) <= 8 and changed + 200 <= min(lost) <= changed + 260, lost
    assert len(lost) == seen.link("path.forward", r"(\d+) in outages")
    assert 450 * MS <= max(delays.values()) <= 600 * MS
    near({number: delays[number] for number in range(1150, 1200)}, 17 * MS)


def test_bytes_arrive_as_they_were_sent_through_loss(tmp_path: Path) -> None:
    path = '[path]\nbandwidth = "1Gbit/s"\nrtt = "4ms"\nloss = 0.003'
    seen = measure(tmp_path, path, "transfer.py")
    assert seen.out["got"] == seen.out["sent"]
    lost = seen.link("path.forward", r"lost (\d+)")
    # Two of the packets that go there carry nothing that is sent again: the ACKs of the far end's SYN and of its FIN.
    assert lost > 2 and seen.out["retransmitted"] >= lost - 2
    # The TCP stack handed segments over in pieces of several: the emulator cut them, and lost single ones.
    crossed = seen.link("path.forward", r": (\d+) packets")
    assert 4_000_000 / 1448 <= crossed and seen.out["device_packets"] < crossed
    assert seen.out["ce_packets"] == 0


def test_marks_reach_the_receiver_of_segments(tmp_path: Path) -> None:
    queue = 'queue = { discipline = "codel", ecn = true, interval = "20ms", target = "2ms" }'
    seen = measure(tmp_path, f'[path]\nbandwidth = "20Mbit/s"\nrtt = "10ms"\n{queue}', "transfer.py", "--ecn")
    assert seen.out["got"] == seen.out["sent"]
    marked = seen.link("path.forward", r"marked (\d+)")
    # Packets that were late and handed over joined count as one at the receiver.
    joined = re.search(r"(\d+) packets, late already", seen.report)
    fewer = int(joined[1]) if joined else 0
    assert marked > 0 and marked - fewer <= seen.out["ce_packets"] <= marked, "CE on the marked and on no other"
    assert seen.out["ecn_delivered"] > 0, "and the receiver has told the sender"
    assert seen.link("path.forward", r"dropped (\d+)") == 0


def test_a_datagram_is_marked_when_it_may_be(tmp_path: Path) -> None:
    queue = 'queue = { discipline = "codel", ecn = true, interval = "20ms", target = "2ms" }'
    path = f'[path]\nbandwidth = "4Mbit/s"\nrtt = "2ms"\n{queue}'
    # 1000 bytes take 2 ms and one comes every ms.
    seen = measure(tmp_path, path, "probe.py", "--count=300", "--gap-us=1000", "--tos=2")
    tos = [tos for _, _, tos in seen.out["got"]]
    assert tos.count(3) == seen.link("path.forward", r"marked (\d+)") > 0
    assert tos.count(2) == len(tos) - tos.count(3)

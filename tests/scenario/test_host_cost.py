"""Hosts that take time for packets: their links, and the rates that follow."""

from __future__ import annotations

import json
from typing import Any

import pytest

from elephan.core import native
from elephan.scenario import ScenarioError
from tests.scenario.conftest import Load

HOSTS = """\
[run]
duration = "1s"
[[node]]
name = "sender"
send = { packet = "4us", rate = "8Gbit/s" }
[[node]]
name = "router"
[[node]]
name = "receiver"
receive = { packet = "2us", rate = "8Gbit/s", ring = "100 packets" }
[[link]]
from = "sender"
to = "router"
line = "10gbe-lan-phy"
delay = "1ms"
mtu = "9000B"
[[link]]
from = "router"
to = "receiver"
line = "10gbe-lan-phy"
mtu = "9000B"
queue = "1MB"
"""
FLOW = """\
[[flow]]
from = "sender"
to = "receiver"
route = ["sender", "router", "receiver"]
mtu = "1500B"
window = "4MB"
[measure]
warmup = "500ms"
"""
RAW = """\
[[background]]
from = "sender"
to = "receiver"
rate = "100%"
packet = "1500B"
"""


def spec(scenario: Load, text: str, *changes: str) -> dict[str, Any]:
    (point,) = scenario(text, *changes).points()
    found: dict[str, Any] = point.to_spec()
    return found


def test_a_host_is_two_links_of_its_own_at_the_ends_of_routes(scenario: Load) -> None:
    found = spec(scenario, HOSTS + FLOW)
    names = [link["name"] for link in found["links"]]
    (flow,) = found["flows"]
    route = ["sender.send", "sender-router.forward", "router-receiver.forward", "receiver.receive"]
    back = ["receiver.send", "router-receiver.reverse", "sender-router.reverse", "sender.receive"]
    assert [names[link] for link in flow["route"]] == route
    assert [names[link] for link in flow["return_route"]] == back
    assert found["nodes"][flow["source"]] == "sender.host"
    send, receive = (found["links"][names.index(name)] for name in ("sender.send", "receiver.receive"))
    # 4 us at 8 Gbit/s are 4000 B.
    assert (send["rate_bps"], send["framing"]) == (
        8 * 10**9,
        {"header_bytes": 4000, "min_frame_bytes": 0, "gap_bytes": 0},
    )
    assert receive["queue"] == {"kind": "drop_tail", "limit_bytes": None, "limit_packets": 100}
    assert flow["transport"]["mtu_bytes"] == 1500


def test_a_sender_that_takes_time_sends_a_packet_per_time(scenario: Load) -> None:
    found = native.simulate(json.dumps(spec(scenario, HOSTS + FLOW)))
    # A packet of 1500 B, 1448 of them payload, takes 4 + 1.5 us.
    assert found.metrics["goodput_bps"] == pytest.approx(1448 * 8 / 5.5e-6, rel=1e-3)
    assert found.metrics["dropped_packets"] == 0


def test_a_batch_shares_the_time_per_packet(scenario: Load) -> None:
    links = spec(scenario, HOSTS + FLOW, "node.sender.send.batch=8")["links"]
    send = next(link for link in links if link["name"] == "sender.send")
    assert send["framing"]["header_bytes"] == 500


def test_raw_frames_at_100_percent_are_as_fast_as_the_host_and_need_no_packets(scenario: Load) -> None:
    found = native.simulate(json.dumps(spec(scenario, HOSTS + RAW, "measure.series=false")))
    assert found.metrics["events"] == 0, found.notes
    assert found.background[0]["sent_packets"] == pytest.approx(1 / 5.5e-6, abs=2)
    assert found.metrics["dropped_packets"] == 0


def test_a_receiver_that_is_slower_drops_when_its_ring_is_full(scenario: Load) -> None:
    changes = ["node.receiver.receive.packet=9us", "background.rate=90%"]
    found = native.simulate(json.dumps(spec(scenario, HOSTS + RAW, *changes)))
    names = [link["name"] for link in found.links]
    ring = found.links[names.index("receiver.receive")]
    # One packet comes every 6.1 us, one goes every 10.5 us.
    assert ring["queue_max_packets"] == 100
    assert ring["dropped_by_queue"] == found.metrics["dropped_packets"] > 10_000
    assert ring["carried_bps"] == pytest.approx(1500 * 8 / 10.5e-6, rel=0.01)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("node.sender.send.packet=4", "node.sender.send.packet = 4: "),
        ("node.sender.send={ packet = '4us' }", "node.sender.send.rate: missing; this key is required"),
        ("node.sender.sent.rate=1Gbit/s", 'node.sender.sent = .*unknown key; did you mean "send"?'),
        ("node.sender.send={ rate = '8Gbit/s', ring = '1 packets' }", "node.sender.send.ring = .*unknown key"),
        ("node.sender.send.batch=0", "node.sender.send.batch = 0: a whole number from 1"),
        ("node.sender.send={ packet = '10s', rate = '8Gbit/s' }", "node.sender.send.packet = .*less: "),
    ],
)
def test_a_wrong_cost_is_refused_in_one_line(scenario: Load, change: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message) as caught:
        list(scenario(HOSTS + FLOW, change).points())
    assert len(str(caught.value).splitlines()) == 1

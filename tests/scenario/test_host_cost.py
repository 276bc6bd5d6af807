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


def test_offloads_and_coalescing_are_batches_of_the_hosts_links(scenario: Load) -> None:
    tso, gro = "node.sender.send.tso=64KiB", "node.receiver.receive.gro=32KiB"
    wait = ["node.receiver.receive.coalesce=50us", "node.receiver.receive.coalesce_packets=32"]
    found = spec(scenario, HOSTS + FLOW, tso, gro, *wait)
    batching = {link["name"]: link["batching"] for link in found["links"] if "batching" in link}
    assert batching == {
        "sender.send": {"max_bytes": 65536, "wait_ns": 0, "wait_packets": None},
        "receiver.receive": {"max_bytes": 32768, "wait_ns": 50_000, "wait_packets": 32},
    }
    (alone,) = (link["batching"] for link in spec(scenario, HOSTS + FLOW, wait[0])["links"] if "batching" in link)
    assert alone == {"max_bytes": 0, "wait_ns": 50_000, "wait_packets": None}


def simulated(scenario: Load, *changes: str) -> tuple[Any, dict[str, Any]]:
    """Simulate a flow with rings that drop nothing; return its result and its links by name."""
    changed = ("node.receiver.receive.ring=100000 packets", *changes)
    found = native.simulate(json.dumps(spec(scenario, HOSTS + FLOW, *changed)))
    assert found.metrics["dropped_packets"] == 0
    return found, {link["name"]: link for link in found.links}


def test_a_large_segment_costs_one_packet_and_its_packets_come_to_the_line_at_once(scenario: Load) -> None:
    found, links = simulated(scenario, "node.sender.send.tso=64KiB", "node.receiver.receive.packet=0us")
    # 45 of 1448 B in 4 us and 45 times 1.5 us, at 1.23 us each on the line: all but the first wait for it.
    assert found.metrics["goodput_bps"] == pytest.approx(45 * 1448 * 8 / 71.5e-6, rel=1e-3)
    assert links["sender-router.forward"]["queue_max_packets"] == 44


def test_segments_that_are_joined_cost_one_packet_and_have_one_acknowledgement(scenario: Load) -> None:
    fast, slow = "node.sender.send.packet=0us", "node.receiver.receive.packet=9us"
    found, links = simulated(scenario, fast, slow, "node.receiver.receive.gro=64KiB")
    assert found.metrics["goodput_bps"] == pytest.approx(45 * 1448 * 8 / 76.5e-6, rel=1e-3)
    # But for the first packets, which find an idle host.
    data, acks = links["receiver.receive"]["delivered_packets"], links["receiver.send"]["delivered_packets"]
    assert data / acks == pytest.approx(45, rel=0.01)
    # Without it each takes the time, and every other one has an ACK.
    found, links = simulated(scenario, fast, slow)
    assert found.metrics["goodput_bps"] == pytest.approx(1448 * 8 / 10.5e-6, rel=1e-2)
    data, acks = links["receiver.receive"]["delivered_packets"], links["receiver.send"]["delivered_packets"]
    assert data / acks == pytest.approx(2, rel=0.01)


def test_a_gap_is_reported_packet_by_packet_though_offloads_join(scenario: Load) -> None:
    changes = ["link.router-receiver.loss={ packets = [20000] }", "node.receiver.receive.ring=100000 packets"]
    changes += ["node.receiver.receive.packet=9us", "node.sender.send.packet=0us"]
    flow = FLOW.replace('window = "4MB"', 'window = "4MB"\nsack_compression = false')
    with_gro = native.simulate(json.dumps(spec(scenario, HOSTS + flow, *changes, "node.receiver.receive.gro=64KiB")))
    assert with_gro.metrics["fast_retransmits"] == 1 and with_gro.metrics["timeouts"] == 0
    # Segments behind the gap are not joined: one duplicate ACK each.
    assert with_gro.metrics["duplicate_acks"] > 500


def test_an_interrupt_that_waits_delays_by_no_more_than_its_time(scenario: Load) -> None:
    # One packet at a time: every one of 100 a second finds an idle host.
    slow = HOSTS + FLOW + '[flow.workload]\nkind = "constant_rate"\nload = "1Mbit/s"\nframe = "1250B"\n'

    def rtt_s(*changes: str) -> float:
        return float(native.simulate(json.dumps(spec(scenario, slow, *changes))).metrics["rtt_min_s"])

    at_once, waiting = rtt_s(), rtt_s("node.receiver.receive.coalesce=50us")
    assert waiting - at_once == pytest.approx(50e-6, abs=1e-9)
    # The first packet of an interrupt is enough.
    assert rtt_s("node.receiver.receive.coalesce=50us", "node.receiver.receive.coalesce_packets=1") == at_once


def test_an_offload_of_packets_that_do_not_join_changes_nothing(scenario: Load) -> None:
    plain, joined = (
        native.simulate(json.dumps(spec(scenario, HOSTS + RAW, "background.rate=20%", *changes)))
        for changes in ([], ["node.sender.send.tso=64KiB", "node.receiver.receive.gro=64KiB"])
    )
    assert joined.background[0]["received_packets"] == plain.background[0]["received_packets"]
    assert joined.metrics["events"] > 0, "batches are simulated, not counted"


def test_a_link_with_batches_does_not_change(scenario: Load) -> None:
    event = '[[event]]\nat = "100ms"\nlink = "sender.send"\nbandwidth = "1Gbit/s"\n'
    with pytest.raises(ScenarioError, match=r'another link: "sender.send" is of a host with tso, gro or coalesce'):
        spec(scenario, HOSTS + FLOW + event, "node.sender.send.tso=64KiB")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("node.sender.send={ rate = '8Gbit/s', batch = 7, tso = '64KiB' }", "send.batch = 7: absent: tso tells"),
        (
            "node.receiver.receive={ rate = '8Gbit/s', batch = 7, gro = '64KiB' }",
            "receive.batch = 7: absent: gro tells",
        ),
        ("node.sender.send.tso=2MiB", 'send.tso = "2MiB": at most 1MiB'),
        ("node.sender.send.gro=64KiB", "node.sender.send.gro = .*unknown key"),
        ("node.receiver.receive.coalesce=50", "node.receiver.receive.coalesce = 50: "),
        ("node.receiver.receive.coalesce=2s", 'receive.coalesce = "2s": at most 1s'),
        ("node.receiver.receive.coalesce_packets=9", "coalesce_packets = 9: absent, or with coalesce"),
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

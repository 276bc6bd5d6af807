"""Lines by their type: rates, what a frame takes, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from elephan.core import native
from elephan.scenario import ScenarioError
from elephan.scenario.line_type import LINE_TYPES, Line
from tests.scenario.conftest import BASE, NETWORK, Load

ON_LINE = BASE.replace('bandwidth = "1Gbit/s"', "line = LINE")


def links(scenario: Load, line: str, *changes: str) -> list[dict[str, Any]]:
    (point,) = scenario(ON_LINE.replace("LINE", line), *changes).points()
    found: list[dict[str, Any]] = point.to_spec()["links"]
    return found


def test_published_rates_of_lines() -> None:
    """The paper's 9.58464 and 9.294 Gbit/s, and the payload rates of ITU-T G.707, table 7-1, and G.709, table 7-3."""
    rates = {name: line.rate_bps for name, line in LINE_TYPES.items()}
    assert [rates[f"oc-{n}"] for n in (3, 12, 48, 192)] == [149_760_000, 599_040_000, 2_396_160_000, 9_584_640_000]
    assert rates["10gbe-wan-phy"] == 9_294_196_364
    assert rates["odu2"] == 9_995_276_962
    assert rates["10gbe-lan-phy"] == rates["odu2e"] == 10**10


def test_a_line_gives_rate_and_frames_of_both_directions(scenario: Load) -> None:
    for link in links(scenario, '"10gbe-wan-phy"'):
        assert link["rate_bps"] == 9_294_196_364
        assert link["framing"] == {"header_bytes": 18, "min_frame_bytes": 64, "gap_bytes": 20}
    (forward, _) = links(scenario, '{ type = "1gbe", vlan_tags = 2 }')
    assert forward["framing"]["header_bytes"] == 26
    (forward, _) = links(scenario, '"oc-48"')
    assert forward["framing"] == {"header_bytes": 8, "min_frame_bytes": 0, "gap_bytes": 1}
    assert "framing" not in scenario(BASE).points()[0].to_spec()["links"][0]
    of_network = NETWORK.replace('bandwidth = "1Gbit/s"', 'line = "oc-12"', 1)
    found = scenario(of_network).points()[0].to_spec()["links"]
    assert [link["rate_bps"] for link in found[:3]] == [599_040_000, 599_040_000, 200_000_000]


def test_a_queue_in_bdp_and_a_multiple_for_access_are_of_the_line(scenario: Load) -> None:
    found = links(scenario, '"1gbe"', "path.queue=0.5bdp", "path.access=4x")
    assert found[0]["queue"]["limit_bytes"] == 10**9 // 8 * 67 // 1000 // 2
    assert (found[2]["rate_bps"], "framing" in found[2]) == (4 * 10**9, False)


def test_lines_are_a_key_to_sweep(scenario: Load) -> None:
    text = ON_LINE.replace("LINE", '"1gbe"') + '[sweep]\n"path.line" = ["1gbe", "oc-12"]\n"path.line.vlan_tags" = [0]\n'
    with pytest.raises(ScenarioError, match='path.line.vlan_tags = 0: absent: "oc-12" carries PPP, not Ethernet'):
        scenario(text).points()
    text = text.replace('"path.line.vlan_tags" = [0]\n', "")
    assert [point.to_spec()["links"][0]["rate_bps"] for point in scenario(text).points()] == [10**9, 599_040_000]


@pytest.mark.parametrize(
    ("line", "changes", "message"),
    [
        ('"10gbe-wan"', [], 'path.line = "10gbe-wan": unknown line; did you mean "10gbe-wan-phy"'),
        ("10", [], "path.line = 10: "),
        ('"1gbe"', ["path.bandwidth=1Gbit/s"], 'path.bandwidth = "1Gbit/s": absent: line says the rate'),
        ('"1gbe"', ["path.reverse.bandwidth=1Mbit/s"], "path.reverse.bandwidth = .*absent: line is of both directions"),
        ('"1gbe"', ["path.mtu=9236B"], "path.mtu = .*at most 9234B, for a frame of 9252B"),
        ('{ type = "1gbe", max_frame = "1518B" }', ["path.mtu=1501B"], "path.mtu = .*at most 1500B"),
        ('{ type = "oc-3", max_frame = "1518B" }', [], 'path.line.max_frame = "1518B": absent: "oc-3" carries PPP'),
        ('{ type = "1gbe", vlan_tags = 3 }', [], "path.line.vlan_tags = 3: a whole number from 0 to 2"),
        ('"1gbe"', ["path.loss={ bit_error_rate = 1e-9, burst = 0 }"], "path.loss.burst = 0: a whole number from 1"),
        (
            '"1gbe"',
            ["path.loss={ bit_error_rate = 0.5, burst = 9 }"],
            "path.loss.burst_error_rate.*: above bit_error_rate: errors are in bursts alone",
        ),
        (
            '"1gbe"',
            ["path.loss={ bit_error_rate = 1e-9, burst_error_rate = 0.1 }"],
            "path.loss.burst_error_rate = 0.1: beside it burst",
        ),
        (
            '"1gbe"',
            ["path.loss={ bit_error_rate = 1e-17, burst = 1000000000 }"],
            "path.loss.burst = 1000000000: shorter: ",
        ),
    ],
)
def test_wrong_lines_are_refused_in_one_line(scenario: Load, line: str, changes: list[str], message: str) -> None:
    with pytest.raises(ScenarioError, match=message) as caught:
        links(scenario, line, *changes)
    assert len(str(caught.value).splitlines()) == 1


def test_a_path_without_any_rate_is_refused(scenario: Load) -> None:
    with pytest.raises(ScenarioError, match='path.bandwidth: .*line = "10gbe-wan-phy" in place of it'):
        scenario(BASE.replace('bandwidth = "1Gbit/s"\n', ""))


def test_bursts_have_the_mean_error_rate_that_was_asked_for(scenario: Load) -> None:
    (forward, _) = links(scenario, '"1gbe"', "path.loss={ bit_error_rate = 1e-9, burst = 100 }")
    loss = forward["loss"]
    assert (loss["kind"], loss["bad_to_good_e18"], loss["error_bad_e18"]) == ("bit_error_bursts", 10**16, 5 * 10**17)
    inside = loss["good_to_bad_e18"] / (loss["good_to_bad_e18"] + loss["bad_to_good_e18"])
    assert inside * 0.5 == pytest.approx(1e-9, rel=1e-6)


def test_every_line_has_room_for_an_ethernet_packet() -> None:
    for name in LINE_TYPES:
        assert Line(type=name).problem(1500) is None


FRAMES = """\
[run]
duration = "327602.47s"
[path]
line = "10gbe-wan-phy"
rtt = "17ms"
[[background]]
name = "frames"
rate = "100%"
mix = { "1500B" = 9, "46B" = 1 }
[measure]
series = false
"""


def test_a_share_of_a_line_counts_frames_and_a_mix_is_spread(scenario: Load) -> None:
    (point,) = scenario(FRAMES).points()
    spec = point.to_spec()
    (source,) = spec["background"]
    assert (spec["closed_form"], spec["flows"], source["rate_bps"]) == (True, [], 9_294_196_364)
    assert source["frames"]["framing"] == spec["links"][0]["framing"]
    assert sorted(source["frames"]["packets_bytes"]) == [46] + [1500] * 9
    (point,) = scenario(FRAMES, 'background.mix={ "1500B" = 4, "576B" = 4, "46B" = 2 }').points()
    sizes = point.to_spec()["background"][0]["frames"]["packets_bytes"]
    assert sizes == [1500, 576, 46, 1500, 576], "divided by what the numbers have in common, none twice in turn"
    (point,) = scenario(FRAMES, "background.rate=4Gbit/s").points()
    assert point.to_spec()["background"][0]["frames"]["framing"]["gap_bytes"] == 0, "a rate is one of IP packets"
    (point,) = scenario(FRAMES, "run.exact=true").points()
    assert "closed_form" not in point.to_spec()


def test_ninety_one_hours_of_a_full_line_take_no_time_and_lose_what_bit_errors_take(scenario: Load) -> None:
    (point,) = scenario(FRAMES, "path.loss={ bit_error_rate = 1e-12 }").points()
    found = native.simulate(json.dumps(point.to_spec()))
    link, source = found.links[0], found.background[0]
    # 327602.47 s of 9.294 Gbit/s in rounds of 9 x 1538 + 84 B; the last 8.5 ms are still under way.
    assert source["sent_packets"] == pytest.approx(327602.47 * 9_294_196_364 / 8 / 1392.6, rel=1e-9)
    under_way = source["sent_packets"] - source["received_packets"] - source["dropped_packets"]
    assert under_way == pytest.approx(8.5e-3 * 9_294_196_364 / 8 / 1392.6, abs=2)
    assert link["fcs_errors"] == link["dropped_by_loss"] == source["dropped_packets"] > 0
    assert link["undetected_errors_expected"] == pytest.approx(link["fcs_errors"] / 2**32)
    assert found.metrics["events"] == 0 and "goodput_bps" not in found.metrics
    assert any("counted in closed form" in note for note in found.notes)


def is_delay(name: str) -> bool:
    """Return True for a metric of the delays of other traffic."""
    return name.startswith(("delay_", "jitter_"))


def test_a_closed_form_has_the_counters_of_its_packets(scenario: Load) -> None:
    changes = ["run.duration=50ms", "path.loss={ bit_error_rate = 1e-7, burst = 100 }", "run.seed=3"]
    counters = []
    for exact in ("false", "true"):
        (point,) = scenario(FRAMES, *changes, f"run.exact={exact}").points()
        found = native.simulate(json.dumps(point.to_spec()))
        assert ("counted in closed form" in " ".join(found.notes)) == (exact == "false")
        # Delays are looked at packet by packet alone.
        counted = [{key: item for key, item in of.items() if not is_delay(key)} for of in found.background]
        counters.append((found.links, counted))
    assert counters[0] == counters[1]
    assert counters[0][0][0]["fcs_errors"] > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('background.mix={ "9B" = 1 }', "background.frames.mix.*such as"),
        ('background.mix={ "46B" = 0 }', "a whole number from 1 to 1000"),
        ('background.mix={ "46B" = 600, "64B" = 600 }', "at most 1000 packets in a round"),
        ("background.packet=64B", "absent: mix has the sizes"),
        ('background.mix={ "9000B" = 1 }', "at most 1500B, the smallest MTU on the route"),
    ],
)
def test_a_wrong_mix_is_refused(scenario: Load, change: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message) as caught:
        list(scenario(FRAMES, change).points())
    assert len(str(caught.value).splitlines()) == 1

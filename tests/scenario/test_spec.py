"""A scenario in integers: the specification that the core gets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from elephan.scenario import receive_buffers
from tests.scenario.conftest import BASE, NETWORK, Load

ROOT = Path(__file__).resolve().parents[2]
OLD = "flow.receive_buffers=linux-6.15"


def spec(scenario: Load, *overrides: str, text: str = BASE) -> dict[str, Any]:
    (point,) = scenario(text, *overrides).points()
    return point.to_spec()


def test_the_short_form_is_two_nodes_and_two_lines(scenario: Load) -> None:
    result = spec(scenario, "path.loss=1e-4", "path.rtt=67.000001ms")
    assert result["nodes"] == ["left", "right"]
    forward, reverse = result["links"]
    assert (forward["name"], forward["from"], forward["to"]) == ("path.forward", 0, 1)
    assert (reverse["name"], reverse["from"], reverse["to"]) == ("path.reverse", 1, 0)
    assert forward["delay_ns"] + reverse["delay_ns"] == 67_000_001
    assert forward["rate_bps"] == reverse["rate_bps"] == 10**9
    assert forward["loss"] == {"kind": "independent", "probability_e12": 10**8}
    assert reverse["loss"] == {"kind": "none"}, "a loss is of the data's direction only"
    (flow,) = result["flows"]
    assert (flow["source"], flow["destination"], flow["route"], flow["return_route"]) == (0, 1, [0], [1])


def test_the_way_back_can_differ(scenario: Load) -> None:
    changes = ["path.reverse.bandwidth=10Mbit/s", "path.reverse.loss=0.5", "path.reverse.queue=7 packets"]
    forward, reverse = spec(scenario, *changes, "path.jitter=1ms")["links"]
    assert forward["rate_bps"] == 10**9
    assert reverse["rate_bps"] == 10**7
    assert reverse["loss"] == {"kind": "independent", "probability_e12": 5 * 10**11}
    assert reverse["queue"] == {"kind": "drop_tail", "limit_bytes": None, "limit_packets": 7}
    jitter = {"distribution": "uniform", "scale_ns": 10**6, "reordering": False}
    assert forward["jitter"] == reverse["jitter"] == jitter


def test_a_policer_is_of_the_direction_that_names_it_and_absent_elsewhere(scenario: Load) -> None:
    forward, reverse = spec(scenario, "path.policer={ rate = '10Mbit/s', burst = '32KiB' }")["links"]
    assert forward["policer"] == {"rate_bps": 10**7, "burst_bytes": 32_768}
    assert "policer" not in reverse
    absent = spec(scenario, "path.policer={ rate = '10Mbit/s', burst = '32KiB' }", "path.policer=none")["links"]
    assert not any("policer" in link for link in absent), "taken away again"
    forward, reverse = spec(scenario, "path.reverse.policer={ rate = '1Mbit/s', burst = '1500B' }")["links"]
    assert reverse["policer"] == {"rate_bps": 10**6, "burst_bytes": 1500}
    assert "policer" not in forward
    links = spec(scenario, "link.0.policer={ rate = '1Mbit/s', burst = '9kB' }", text=NETWORK)["links"]
    assert [link.get("policer") for link in links[:3]] == [{"rate_bps": 10**6, "burst_bytes": 9000}, None, None]


def test_the_application_buffer_is_left_out_where_none_is_given(scenario: Load) -> None:
    def workload(text: str) -> dict[str, Any]:
        result: dict[str, Any] = spec(scenario, f"flow.0.workload={text}")["flows"][0]["workload"]
        return result

    assert workload("{ kind = 'bulk', bytes = '1MB' }") == {"kind": "bulk", "bytes": 10**6}
    made = {"kind": "bulk", "bytes": None, "buffer_bytes": 2048}
    assert workload("{ kind = 'bulk', buffer = '2048B' }") == made


@pytest.mark.parametrize(
    ("queue", "limit_bytes", "limit_packets"),
    [
        ("1bdp", 8_375_000, None),
        ("0.5bdp", 4_187_500, None),
        ("0.0001bdp", 1500, None),
        ("100 packets", None, 100),
        ("1 packet", None, 1),
        ("64kB", 64_000, None),
        ("64KiB", 65_536, None),
    ],
)
def test_queue_limits(scenario: Load, queue: str, limit_bytes: int | None, limit_packets: int | None) -> None:
    expected = {"kind": "drop_tail", "limit_bytes": limit_bytes, "limit_packets": limit_packets}
    assert spec(scenario, f"path.queue={queue}")["links"][0]["queue"] == expected


def test_queue_disciplines_have_the_defaults_of_tc(scenario: Load) -> None:
    def queue(table: str) -> dict[str, Any]:
        result: dict[str, Any] = spec(scenario, f"path.queue={table}")["links"][0]["queue"]
        return result

    assert queue("{ discipline = 'red', limit = '1200kB' }") == {
        "kind": "red",
        "limit_bytes": 1_200_000,
        "max_bytes": 300_000,
        "min_bytes": 100_000,
        "max_probability_ppm": 20_000,
        "weight_shift": 9,
        "ecn": False,
    }
    assert queue("{ discipline = 'codel' }") == {
        "kind": "codel",
        "limit_packets": 1000,
        "target_ns": 5_000_000,
        "interval_ns": 100_000_000,
        "ecn": False,
    }
    assert queue("{ discipline = 'fq_codel', limit = '15000B' }") == {
        "kind": "fq_codel",
        "limit_packets": 10,
        "flows": 1024,
        "quantum_bytes": 1514,
        "target_ns": 5_000_000,
        "interval_ns": 100_000_000,
        "ecn": True,
    }


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ("0", {"kind": "none"}),
        ("0.1%", {"kind": "independent", "probability_e12": 10**9}),
        ("1/1000", {"kind": "independent", "probability_e12": 10**9}),
        ("1", {"kind": "independent", "probability_e12": 10**12}),
        ("{ run = 17, begins = 1e-3 }", {"kind": "runs", "begins_e12": 10**9, "length": 17}),
        ("{ every = 1000 }", {"kind": "every_nth", "n": 1000}),
        ("{ packets = [1, 5] }", {"kind": "list", "packets": [1, 5]}),
        ("{ bit_error_rate = 1e-15 }", {"kind": "bit_error_rate", "probability_e18": 1000}),
        (
            "{ good_to_bad = 1e-5, bad_to_good = 0.1 }",
            {
                "kind": "gilbert_elliott",
                "good_to_bad_e12": 10**7,
                "bad_to_good_e12": 10**11,
                "loss_good_e12": 0,
                "loss_bad_e12": 10**12,
            },
        ),
    ],
)
def test_loss_models(scenario: Load, loss: str, expected: dict[str, Any]) -> None:
    assert spec(scenario, f"path.loss={loss}")["links"][0]["loss"] == expected


def test_access_links_never_drop_and_add_no_delay(scenario: Load) -> None:
    result = spec(scenario, "path.access=4x", "flow.connections=2")
    assert result["nodes"] == ["left", "right", "backup.left", "backup.right"]
    lines = result["links"]
    first, second = result["flows"]
    assert first["route"] == second["route"], "connections of one entry share their hosts"
    assert [(lines[i]["from"], lines[i]["to"]) for i in first["route"]] == [(2, 0), (0, 1), (1, 3)]
    assert [(lines[i]["from"], lines[i]["to"]) for i in first["return_route"]] == [(3, 1), (1, 0), (0, 2)]
    assert {lines[i]["rate_bps"] for i in (first["route"][0], first["route"][2])} == {4 * 10**9}
    assert sum(lines[i]["delay_ns"] for i in (*first["route"], *first["return_route"])) == 67_000_000


def test_reverse_flows_go_the_other_way(scenario: Load) -> None:
    (flow,) = spec(scenario, "flow.direction=reverse", "path.access=10Gbit/s")["flows"]
    assert (flow["source"], flow["destination"]) == (3, 2)


@pytest.mark.parametrize(
    ("overrides", "window"),
    [
        # 2 x 8,375,000 B in flight and a queue as long.
        ([], 3 * 8_375_000),
        (["flow.window=8MB"], 8_000_000),
        (["flow.window_scaling=false"], 65_535),
        (["flow.window_scaling=false", "flow.window=64KiB"], 65_535),
        (["flow.window_scaling=false", "flow.window=32KiB"], 32_768),
        (["flow.window_scale=5"], 65_535 << 5),
        (["path.bandwidth=400Gbit/s", "path.rtt=1s"], 65_535 << 14),
        (["path.rtt=0s", "path.queue=10 packets"], 65_535),
        # Linux's own tcp_rmem, of which 160 / 256 are window: 32 MiB since 6.16, 6 MiB before.
        (["path.bandwidth=400Gbit/s", "path.rtt=1s", "flow.receive_autotuning=true"], 20_971_520),
        ([*["path.bandwidth=400Gbit/s", "path.rtt=1s", "flow.receive_autotuning=true"], OLD], 3_932_160),
        (["flow.window=64MB", "flow.receive_autotuning=true", OLD], 64_000_000),
    ],
)
def test_windows(scenario: Load, overrides: list[str], window: int) -> None:
    assert spec(scenario, *overrides)["flows"][0]["transport"]["window_bytes"] == window


def test_an_automatic_window_has_room_for_lost_copies_where_a_line_loses_packets(scenario: Load) -> None:
    def window(*overrides: str) -> int:
        return spec(scenario, "path.queue=1MB", *overrides)["flows"][0]["transport"]["window_bytes"]

    without = window()
    assert window("path.loss=1e-4") == 2 * without + 2 * 1_000_000
    assert window("path.loss=0") == without


def test_the_linux_that_tunes_receive_buffers_is_in_the_specification_and_in_the_notes(scenario: Load) -> None:
    tuned = "flow.receive_autotuning=true"
    assert "receive_buffers" not in spec(scenario, tuned)["flows"][0]["transport"], "absent: 6.16 and later"
    assert spec(scenario, tuned, OLD)["flows"][0]["transport"]["receive_buffers"] == "linux-6.15"
    assert receive_buffers.notes_of(spec(scenario)["flows"]) == []
    (note,) = receive_buffers.notes_of(spec(scenario, tuned, OLD)["flows"])
    assert note.startswith('receive_buffers = "linux-6.15": windows grow as in Linux 6.15 and earlier, up to ')
    assert note.endswith("; its default tcp_rmem allows 3.93 MB")


def test_udt_is_a_transport_with_a_version_and_a_window_for_its_timer(scenario: Load) -> None:
    tcp = spec(scenario)["flows"][0]["transport"]
    assert "udt" not in tcp, "absent, so that stored runs keep their ids"
    for version in ("udt4", "udt-2003"):
        transport = spec(scenario, f"flow.transport={version}")["flows"][0]["transport"]
        assert transport["udt"] == {"version": version}
        # Twice what the line of 1 Gbit/s carries within the 10 ms of the timer of acknowledgments.
        assert transport["window_bytes"] == tcp["window_bytes"] + 2 * 1_250_000
        assert {**transport, "udt": None, "window_bytes": 0} == {**tcp, "udt": None, "window_bytes": 0}


def test_an_automatic_window_does_not_limit_after_an_event_either(scenario: Load) -> None:
    text = BASE + "[[event]]\nat = '1s'\nbandwidth = '2Gbit/s'\nrtt = '134ms'\n"
    assert spec(scenario, text=text)["flows"][0]["transport"]["window_bytes"] == 9 * 8_375_000


def test_connections_are_named_and_staggered(scenario: Load) -> None:
    flows = spec(scenario, "flow.connections=3", "flow.stagger=100ms", "flow.start=1s")["flows"]
    assert [flow["name"] for flow in flows] == ["backup.1", "backup.2", "backup.3"]
    assert [flow["start_ns"] for flow in flows] == [10**9, 11 * 10**8, 12 * 10**8]
    assert {flow["group"] for flow in flows} == {0}


@pytest.mark.parametrize(
    "workload",
    [
        '{ kind = "constant_rate", load = "50%" }',
        '{ kind = "bulk", bytes = "1GB" }',
        '{ kind = "program", program = "scp", bytes = "10B" }',
    ],
)
def test_connections_share_a_load_unless_each_is_to_have_it(scenario: Load, workload: str) -> None:
    shared = spec(scenario, f"flow.workload={workload}", "flow.connections=3")["flows"]
    each = spec(scenario, f"flow.workload={workload}", "flow.connections=3", "flow.distribution=each")["flows"]
    alone = spec(scenario, f"flow.workload={workload}")["flows"]
    assert [flow.get("distribution") for flow in (*shared, *each, *alone)] == ["striped"] * 3 + [None] * 4
    assert [flow["workload"] for flow in each] == [alone[0]["workload"]] * 3
    if "program" not in workload:
        assert [flow["workload"] for flow in shared] == [alone[0]["workload"]] * 3
    else:
        # Programs share nothing while they run.
        assert [flow["workload"]["bytes"] for flow in shared] == [4, 3, 3]


def test_a_copy_has_its_streams_for_each_job(scenario: Load) -> None:
    workload = "flow.workload={ kind = 'copy', files = 3, size = '1kB', max = '2kB', jobs = 2, every = '1h' }"
    flows = spec(scenario, workload, "flow.connections=2", "flow.stagger=1s")["flows"]
    assert [flow["start_ns"] // 10**9 for flow in flows] == [0, 1, 3600, 3601]
    assert {flow["distribution"] for flow in flows} == {"striped"}
    made = flows[0]["workload"]
    assert (made["files"], made["jobs"]) == ([{"count": 3, "min_bytes": 1000, "max_bytes": 2000}], 2)
    assert (made["chunk_bytes"], made["changed_ppm"], made["read_bps"]) == (None, 10**6, None)


def test_a_long_copy_of_files_is_extrapolated(scenario: Load) -> None:
    change = ["run.duration=10h", "flow.connections=4"]
    long = spec(scenario, "flow.workload={ kind = 'copy', files = 20, size = '100GB' }", *change)
    short = spec(scenario, "flow.workload={ kind = 'copy', files = 20, size = '1GB' }", *change)
    assert "extrapolate" in long and "extrapolate" not in short


def test_connections_without_a_bound_have_nothing_to_share(scenario: Load) -> None:
    for workload in ("bulk", '{ kind = "bulk", duration = "3s" }', '{ kind = "program", program = "iperf3" }'):
        flows = spec(scenario, f"flow.workload={workload}", "flow.connections=2")["flows"]
        assert all("distribution" not in flow for flow in flows)


def test_a_bulk_duration_is_a_stop(scenario: Load) -> None:
    workload = "flow.workload={ kind = 'bulk', duration = '2s' }"
    flows = spec(scenario, workload, "flow.connections=2", "flow.stagger=1s")["flows"]
    assert [flow["stop_ns"] for flow in flows] == [2 * 10**9, 3 * 10**9]


def test_an_offered_load_is_a_share_of_the_slowest_line(scenario: Load) -> None:
    text = NETWORK + "[flow.workload]\nkind = 'constant_rate'\nload = '90%'\n"
    assert spec(scenario, text=text)["flows"][0]["workload"] == {
        "kind": "constant_rate",
        "frame_bytes": 2112,
        # The route with least delay of the shortest ones goes over the 100 Mbit/s link.
        "rate_bps": 90_000_000,
        "credits": None,
    }
    rate = spec(scenario, "flow.workload.load=123Mbit/s", text=text)["flows"][0]["workload"]["rate_bps"]
    assert rate == 123_000_000


@pytest.mark.parametrize(
    ("written", "bits"),
    [("180MB/s", 1_440_000_000), ("64MiB/s", 64 * 8 << 20), ("1.5 kB/s", 12_000), ("0.1GB/s", 800_000_000)],
)
def test_a_rate_may_be_written_in_bytes_per_second_everywhere(scenario: Load, written: str, bits: int) -> None:
    text = (
        BASE.replace('name = "backup"', 'name = "backup"\nworkload = { kind = "constant_rate", load = "50%" }')
        + "[[background]]\nrate = '20%'\n[[event]]\nat = '1s'\nbandwidth = '1Mbit/s'\n"
    )
    found = spec(
        scenario,
        f"path.bandwidth={written}",
        f"flow.workload.load={written}",
        f"background.0.rate={written}",
        f"event.0.bandwidth={written}",
        text=text,
    )
    assert found["links"][0]["rate_bps"] == bits
    assert found["flows"][0]["workload"]["rate_bps"] == bits
    assert found["background"][0]["rate_bps"] == bits
    assert found["events"][0]["action"]["rate_bps"] == bits


@pytest.mark.parametrize(
    ("size", "sizes"),
    [
        ("64KiB", {"kind": "fixed", "bytes": 65_536}),
        ("{ bytes = '8kB' }", {"kind": "fixed", "bytes": 8000}),
        ("{ mix = { '64KiB' = 30, 4KiB = 70 } }", {"kind": "mix", "sizes": [[4096, 70], [65_536, 30]]}),
        ("{ median = '16KiB', sigma = 1.5 }", {"kind": "lognormal", "median_bytes": 16_384, "sigma_e3": 1500}),
        (
            "{ min = '4KiB', max = '1MiB', pareto_shape = 1.2 }",
            {"kind": "pareto", "shape_e3": 1200, "min_bytes": 4096, "max_bytes": 1 << 20},
        ),
    ],
)
def test_writes_that_are_drawn_have_a_rate_and_sizes(scenario: Load, size: str, sizes: dict[str, Any]) -> None:
    text = BASE + '[flow.workload]\nkind = "replicate"\nrate = "50%"\n'
    workload = spec(scenario, f"flow.workload.size={size}", text=text)["flows"][0]["workload"]
    assert workload == {
        "kind": "replicate",
        "writes": {
            "rate_bps": 500_000_000,
            "sizes": sizes,
            "arrivals": {"process": "poisson"},
            "header_bytes": 48,
        },
    }


def test_writes_may_come_in_bursts(scenario: Load) -> None:
    text = BASE + '[flow.workload]\nkind = "replicate"\nrate = "180MB/s"\n'

    def arrivals(value: str) -> dict[str, Any]:
        workload = spec(scenario, f"flow.workload.arrivals={value}", text=text)["flows"][0]["workload"]
        assert workload["writes"]["rate_bps"] == 1_440_000_000
        found: dict[str, Any] = workload["writes"]["arrivals"]
        return found

    assert arrivals("constant") == {"process": "constant"}
    exponential = {"process": "on_off", "on_ns": 10**8, "off_ns": 4 * 10**8, "pareto_shape_e3": None}
    assert arrivals("on_off") == exponential
    heavy = arrivals("{ process = 'on_off', on = '1s', pareto_shape = 1.4 }")
    assert heavy == exponential | {"on_ns": 10**9, "pareto_shape_e3": 1400}


def test_transport_parameters_become_the_integers_of_the_c_source(scenario: Load) -> None:
    def transport(*overrides: str) -> dict[str, Any]:
        result: dict[str, Any] = spec(scenario, *overrides)["flows"][0]["transport"]
        return result

    friendly = transport(
        "flow.congestion_control={ name = 'storage_friendly', reduction = '1/8', congestion_avoidance = false }"
    )
    assert friendly["congestion_control"] == "storage_friendly"
    scale = 8 * friendly["parameters"]["reduction"]
    assert friendly["parameters"]["congestion_avoidance"] == 0
    for text, value in (("on", 1), ("true", 1), ("off", 0), ("false", 0)):
        switched = transport(
            f"flow.congestion_control={{ name = 'storage_friendly', congestion_avoidance = '{text}' }}"
        )
        assert switched["parameters"] == {"congestion_avoidance": value}
    assert transport("flow.congestion_control=storage_friendly", "flow.congestion_control.reduction=0.5")[
        "parameters"
    ] == {"reduction": scale // 2}
    assert transport()["congestion_control"] == "cubic"
    assert transport()["parameters"] == {}, "what is not set is left to the algorithm's own default"


def test_defaults_hold_for_flows_that_do_not_say_otherwise(scenario: Load) -> None:
    text = (
        BASE
        + "[[flow]]\nname = 'other'\ncongestion_control = 'cubic'\n"
        + "[defaults]\ncongestion_control = 'reno'\ninitial_cwnd = 1\n"
    )
    one, two = spec(scenario, text=text)["flows"]
    assert (one["transport"]["congestion_control"], two["transport"]["congestion_control"]) == ("reno", "cubic")
    assert one["transport"]["initial_cwnd"] == two["transport"]["initial_cwnd"] == 1


def test_events_on_links_mean_both_directions_but_for_loss(scenario: Load) -> None:
    text = BASE + (
        "[[background]]\nname = 'web'\nrate = '20%'\non = '1s'\noff = '2s'\n"
        "[[event]]\nat = '1s'\nbandwidth = '1Mbit/s'\nloss = 0.1\nbackground_off = 'web'\n"
        "[[event]]\nwhen = { flow = 'backup', reaches = '900Mbit/s' }\n"
        "link = 'path.reverse'\nloss = 0\nlink_down = 'path'\n"
    )
    result = spec(scenario, text=text)
    at = {"kind": "at", "time_ns": 10**9}
    when = {"kind": "flow_reaches", "flow": 0, "rate_bps": 9 * 10**8, "window_ns": 10**8}
    assert result["events"] == [
        {"when": at, "action": {"kind": "rate", "link": 0, "rate_bps": 10**6}},
        {"when": at, "action": {"kind": "rate", "link": 1, "rate_bps": 10**6}},
        {"when": at, "action": {"kind": "loss", "link": 0, "loss": {"kind": "independent", "probability_e12": 10**11}}},
        {"when": at, "action": {"kind": "background_off", "source": 0}},
        {"when": when, "action": {"kind": "loss", "link": 1, "loss": {"kind": "none"}}},
        {"when": when, "action": {"kind": "link_down", "link": 0}},
        {"when": when, "action": {"kind": "link_down", "link": 1}},
    ]
    (background,) = result["background"]
    assert (background["rate_bps"], background["on_off_ns"]) == (2 * 10**8, [10**9, 2 * 10**9])


def test_measure(scenario: Load, tmp_path: Path) -> None:
    (point,) = scenario(BASE, "measure.series=false", "measure.warmup=1s", "measure.pcap_node=right").points()
    assert point.to_spec(tmp_path / "x.pcapng")["measure"] == {
        "series_interval_ns": None,
        "warmup_ns": 10**9,
        "pcap": str(tmp_path / "x.pcapng"),
        "pcap_node": 1,
        "pcap_packets": None,
    }


def test_shortest_route_by_links_then_by_delay(scenario: Load) -> None:
    result = spec(scenario, text=NETWORK)
    names = [line["name"] for line in result["links"]]
    (flow,) = result["flows"]
    assert [names[i] for i in flow["route"]] == ["a-c.forward", "c-d.forward"]
    # The reverse route over c has the delay of its own directions: 42 ms against 10 ms.
    assert [names[i] for i in flow["return_route"]] == ["b-d.reverse", "a-b.reverse"]


def test_an_explicit_route_goes_back_the_way_it_came(scenario: Load) -> None:
    result = spec(scenario, "flow.route=['a', 'b', 'd']", text=NETWORK)
    (flow,) = result["flows"]
    names = [line["name"] for line in result["links"]]
    assert [names[i] for i in flow["return_route"]] == ["b-d.reverse", "a-b.reverse"]
    assert [names[i] for i in flow["route"]] == ["a-b.forward", "b-d.forward"]


def test_a_link_name_in_a_route_says_which_of_two_links(scenario: Load) -> None:
    text = NETWORK + "[[link]]\nname = 'light'\nfrom = 'd'\nto = 'c'\nbandwidth = '10Gbit/s'\n"
    result = spec(scenario, "flow.route=['a', 'c', 'light', 'd']", "flow.return_route=['d', 'c', 'a']", text=text)
    (flow,) = result["flows"]
    names = [line["name"] for line in result["links"]]
    assert [names[i] for i in flow["route"]] == ["a-c.forward", "light.reverse"]
    assert [names[i] for i in flow["return_route"]] == ["c-d.reverse", "a-c.reverse"]


def test_a_bdp_of_a_link_takes_the_longest_round_trip_over_it(scenario: Load) -> None:
    result = spec(scenario, text=NETWORK)
    queues = {line["name"]: line["queue"]["limit_bytes"] for line in result["links"]}
    # The flow's RTT is 2 + 4 + 5 + 5 ms.
    assert queues["c-d.forward"] == 100_000_000 * 16 // 8000
    assert queues["c-d.reverse"] == 10_000_000 * 44 // 8000, "no flow crosses it: its own 4 + 40 ms"


def test_a_thousand_connections_are_soon_specified(scenario: Load) -> None:
    result = spec(scenario, "flow.connections=1000", "path.access=4x")
    assert len(result["flows"]) == 1000
    assert len(result["links"]) == 6


def test_a_transport_of_ones_own_is_compiled_and_its_parameters_are_read_from_it(
    scenario: Load, tmp_path: Path
) -> None:
    source = ROOT / "congestion" / "storage_friendly.c"
    (tmp_path / "mine.c").write_bytes(source.read_bytes())
    transport = spec(scenario, "flow.congestion_control=./mine.c", "flow.congestion_control.reduction=1/4")["flows"][0][
        "transport"
    ]
    assert transport["congestion_control"] == str(tmp_path / "mine.c")
    theirs = spec(scenario, "flow.congestion_control=storage_friendly", "flow.congestion_control.reduction=1/4")[
        "flows"
    ][0]["transport"]
    assert transport["parameters"] == theirs["parameters"]


def test_a_time_with_a_unit_is_taken_for_a_parameter_in_us(scenario: Load) -> None:
    transport = spec(scenario, "flow.congestion_control.hystart_ack_delta=3ms")["flows"][0]["transport"]
    assert transport["parameters"] == {"hystart_ack_delta": 3000}


def test_a_choice_is_written_by_its_name(scenario: Load) -> None:
    def parameters(*changes: str) -> dict[str, int]:
        return spec(scenario, *changes)["flows"][0]["transport"]["parameters"]

    names = {"off": 0, "classic": 1, "++": 2}
    switch = {"on": 1, "false": 0, "true": 1, "0": 0, "1": 1}
    for text, value in (names | switch).items():
        assert parameters(f"flow.congestion_control.hystart={text}") == {"hystart": value}
    # Without "off" only the names are allowed: 1 would not say which.
    for text, value in [("2.3", 0), ("2.1", 1), ("'2.1'", 1)]:
        assert parameters(f"flow.congestion_control.variant={text}") == {"variant": value}

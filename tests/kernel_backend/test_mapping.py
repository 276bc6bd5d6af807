"""Translation of each key on this machine, and refusals before anything is made. Needs neither root nor a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from elephan.api import jobs_of, load
from elephan.backends.kernel.mapping import Machine
from elephan.backends.kernel.plan import Layout, layout_of
from elephan.cli.main import call
from elephan.errors import InputError
from elephan.path.session import spec_of as path_of

NEW = Machine((6, 18), frozenset({"tcp_rto_max_ms"}))
OLD = Machine((6, 10), frozenset())

SCENARIO = """\
[run]
duration = "1s"

[path]
bandwidth = "100Mbit/s"
rtt = "20ms"
{path}

[[flow]]
{flow}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "one.toml"


def spec_of(file: Path, flow: str = "", path: str = "") -> dict[str, Any]:
    file.write_text(SCENARIO.format(path=path, flow=flow), encoding="utf-8")
    return jobs_of(load(file), backend="kernel")[0].spec


def layout(file: Path, flow: str = "", machine: Machine = NEW) -> Layout:
    return layout_of(spec_of(file, flow), machine)


@pytest.mark.parametrize(
    ("flow", "sysctl", "value"),
    [
        ("", "tcp_sack", "1"),
        ('recovery = "newreno"', "tcp_sack", "0"),
        ("", "tcp_early_retrans", "3"),
        ('recovery = "newreno"', "tcp_early_retrans", "0"),
        ("sack_compression = true", "tcp_comp_sack_nr", "44"),
        ("sack_compression = false", "tcp_comp_sack_nr", "0"),
        ("window_scaling = false", "tcp_window_scaling", "0"),
        ("timestamps = false", "tcp_timestamps", "0"),
        ("receive_autotuning = true", "tcp_moderate_rcvbuf", "1"),
        ('receive_autotuning = true\nwindow = "1MB"', "tcp_rmem", "4096 131072 4000000"),
        ("ecn = true", "tcp_ecn", "1"),
        ("", "tcp_ecn", "0"),
        ("frto = false", "tcp_frto", "0"),
        ("slow_start_after_idle = false", "tcp_slow_start_after_idle", "0"),
        ("reordering = 500", "tcp_reordering", "500"),
        ("reordering = 500", "tcp_max_reordering", "500"),
        ("", "tcp_no_metrics_save", "1"),
    ],
)
def test_a_key_that_is_a_sysctl_is_set_at_both_ends(file: Path, flow: str, sysctl: str, value: str) -> None:
    hosts = layout(file, flow).hosts
    assert [host.sysctls[sysctl] for host in hosts] == [value, value]


@pytest.mark.parametrize(
    ("flow", "words"),
    [
        ("", "initcwnd 10 rto_min 200ms"),
        ("initial_cwnd = 1", "initcwnd 1 rto_min 200ms"),
        ('rto_min = "1s"', "initcwnd 10 rto_min 1000ms"),
        ("delayed_ack = false", "initcwnd 10 rto_min 200ms quickack 1"),
    ],
)
def test_a_key_that_is_an_attribute_of_the_route(file: Path, flow: str, words: str) -> None:
    assert {host.route for host in layout(file, flow).hosts} == {words}


@pytest.mark.parametrize(
    ("flow", "option", "value"),
    [
        ('window = "3MB"', "window_clamp_bytes", 3_000_000),
        ('window = "3MB"', "receive_buffer_bytes", 6_000_000),
        ("receive_autotuning = true", "receive_buffer_bytes", None),
        ("", "send_buffer_bytes", None),
        ('send_buffer = "4MB"', "send_buffer_bytes", 2_500_000),
        ("pacing = true", "pacing", True),
        ("", "rto_max_ms", None),
        ('rto_max = "60s"', "rto_max_ms", 60_000),
    ],
)
def test_a_key_that_is_an_option_of_the_socket(file: Path, flow: str, option: str, value: object) -> None:
    spec = spec_of(file, flow)
    plan = layout_of(spec, NEW).plan([], ["x"], spec)
    assert plan["flows"][0][option] == value


@pytest.mark.parametrize(
    ("flow", "machine", "words"),
    [
        ('transport = "udt4"', NEW, ['transport = "udt4"', 'take --on sim, or on kernel program = "udt"']),
        ('recovery = "sack"', NEW, ['recovery = "sack"', "6.17", '"rack"']),
        ('recovery = "reno"', NEW, ['recovery = "reno"', '"newreno"']),
        ('recovery = "sack"\nlost_retransmissions = "never"', OLD, ['lost_retransmissions = "never"', "leave it out"]),
        ("cwnd_validation = false", NEW, ["cwnd_validation = false", "leave it out"]),
        ('count = "acks"', NEW, ['count = "acks"', "leave it out"]),
        ("nagle = true", NEW, ["nagle = true", "leave it out"]),
        ("quickack_segments = 0", NEW, ["quickack_segments = 0", "16", "delayed_ack = false"]),
        ("limited_transmit = false", NEW, ["limited_transmit = false", "leave it out"]),
        ("fast_retransmit = false", NEW, ["fast_retransmit = false", "leave it out"]),
        ('receive_autotuning = true\nreceive_buffers = "linux-6.15"', NEW, ['"linux-6.15"', 'tunes as "linux-6.16"']),
        ("receive_autotuning = true", OLD, ['receive_buffers = "linux-6.16"', 'tunes as "linux-6.15": take that']),
        ('rto_min = "1500us"', NEW, ["rto_min", "whole milliseconds"]),
        ('rto_max = "200s"', NEW, ["rto_max = 200000ms", "1s to 120s"]),
        ('rto_max = "60s"', OLD, ["rto_max = 60000ms", "TCP_RTO_MAX_MS", "120s"]),
    ],
)
def test_what_the_kernel_cannot_do_is_refused_with_key_and_mitigation(
    file: Path, flow: str, machine: Machine, words: list[str]
) -> None:
    with pytest.raises(InputError) as refused:
        layout(file, f'name = "backup"\n{flow}', machine)
    text = str(refused.value)
    assert text.startswith("flow backup: ") and all(word in text for word in words) and "\n" not in text


def test_offloads_of_a_host_are_refused_with_the_node_and_its_key(file: Path) -> None:
    """Refuse what this kernel does itself, on the backend and for `elephan path`."""
    node = '[[node]]\nname = "a"\nsend = {{ rate = "1Gbit/s"{tso} }}\n[[node]]\nname = "b"\n'
    rest = '[[link]]\nfrom = "a"\nto = "b"\nbandwidth = "1Gbit/s"\n[[flow]]\nfrom = "a"\nto = "b"\n'
    file.write_text('[run]\nduration = "1s"\n' + node.format(tso="") + rest, encoding="utf-8")
    assert layout_of(jobs_of(load(file), backend="kernel")[0].spec, NEW).hosts
    file.write_text('[run]\nduration = "1s"\n' + node.format(tso=', tso = "64KiB"') + rest, encoding="utf-8")
    said = "node a: send: tso, gro and coalesce are the simulator's alone"
    with pytest.raises(InputError, match=said):
        layout_of(jobs_of(load(file), backend="kernel")[0].spec, NEW)
    with pytest.raises(InputError, match=f"{file.name}: {said}"):
        path_of(load(file))


def test_recovery_by_sack_alone_is_there_where_the_kernel_still_has_it(file: Path) -> None:
    assert layout(file, 'recovery = "sack"', OLD).hosts[0].sysctls["tcp_recovery"] == "0"


def test_quick_acks_do_not_matter_where_every_segment_is_acknowledged(file: Path) -> None:
    assert len(layout(file, "quickack_segments = 0\ndelayed_ack = false").hosts) == 2


@pytest.mark.parametrize(("flow", "noted"), [('window = "1MB"\nwindow_scale = 10', True), ('window = "1MB"', False)])
def test_a_forced_window_scale_is_noted_where_the_kernel_takes_another(file: Path, flow: str, noted: bool) -> None:
    notes = layout(file, flow).notes
    assert [("window_scale = 10: the kernel announces 4" in note) for note in notes] == ([True] if noted else [])


def test_flows_share_hosts_where_they_agree_and_controls_are_loaded_once(file: Path) -> None:
    flow = (
        'congestion_control = "reno"\n[[flow]]\ncongestion_control = "reno"\nconnections = 3\n'
        '[[flow]]\ncongestion_control = "cubic"\ntimestamps = false'
    )
    found = layout(file, flow)
    assert found.ends == ((0, 1), (0, 1), (0, 1), (0, 1), (2, 3))
    assert found.controls == (("reno", ()), ("cubic", ())) and found.control_of == (0, 0, 0, 0, 1)
    assert [host.address for host in found.hosts] == ["198.18.1.1", "198.18.1.2", "198.18.1.3", "198.18.1.4"]
    assert [host.node for host in found.hosts] == [0, 1, 0, 1]


def test_more_hosts_than_one_machine_makes_are_refused(file: Path) -> None:
    flows = "\n[[flow]]\n".join(f"initial_cwnd = {number}" for number in range(1, 40))
    said = "78 hosts, one per node and set of TCP settings, two per program, and makes at most 64"
    with pytest.raises(InputError, match=said):
        layout(file, flows)


def test_routes_of_other_packets_lead_both_ways(file: Path) -> None:
    spec = spec_of(file)
    routes = layout_of(spec, NEW).plan([], ["x"], spec)["routes"]
    flow = spec["flows"][0]
    assert routes == [
        {"from": 0, "to": 1, "links": flow["route"]},
        {"from": 1, "to": 0, "links": flow["return_route"]},
    ]


def test_check_says_what_the_kernel_cannot_do(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec_of(file, "fast_retransmit = false")
    assert call(["check", str(file)]) == 0
    assert call(["check", str(file), "--on", "sim,kernel"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{file}: flow flow1: fast_retransmit = false" in line


@pytest.mark.parametrize(("on", "word"), [("moon", "there are sim, kernel"), ("sim,sim", "each backend once")])
def test_a_backend_that_is_none_is_refused(file: Path, on: str, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    spec_of(file)
    assert call(["run", str(file), "--on", on, "--store", "none"]) == 2
    assert word in capsys.readouterr().err

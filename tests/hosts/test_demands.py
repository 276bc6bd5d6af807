"""Demands of a scenario on hosts with other kernels and rights than this machine has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from elephan import api
from elephan.backends.hosts.demands import Demands, demands_of
from elephan.backends.hosts.layout import layout_of
from elephan.errors import InputError
from elephan.hosts.facts import Facts

SCENARIO = '[run]\nduration = "4s"\n[path]\nbandwidth = "1Gbit/s"\nrtt = "32ms"\n[[flow]]\n'


def facts(name: str, root: bool = True, kernel: str = "6.12.1", **more: Any) -> Facts:
    """A host with Linux's own limits."""
    told: dict[str, Any] = {
        "kernel": kernel,
        "btf": True,
        "capabilities": {"net_admin": root, "bpf": root},
        "congestion_controls": {"available": ["reno", "cubic", "bbr"], "allowed": ["reno", "cubic"]},
        "limits": {
            "tcp_rmem": [4096, 131_072, 6_291_456],
            "tcp_wmem": [4096, 16_384, 4_194_304],
            "rmem_max": 212_992,
            "wmem_max": 212_992,
        },
        "sysctls": {"net.ipv4.tcp_frto": "2", "net.ipv4.tcp_ecn": "2", "net.ipv4.tcp_rto_max_ms": "120000"},
    }
    return Facts(name, {**told, **more}, "192.0.2.1", 0.0, 0.001)


def demands(folder: Path, flow: str, sender: Facts, receiver: Facts) -> Demands:
    """Demands of a scenario with this flow."""
    file = folder / "one.toml"
    file.write_text(SCENARIO + flow)
    spec = next(api.load(file).points_looked_at()).to_spec()
    return demands_of(spec, layout_of(spec), sender, receiver, "ab" * 16)


def test_root_has_the_window_by_socket_options_and_changes_no_sysctl(tmp_path: Path) -> None:
    found = demands(tmp_path, 'window = "8MB"', facts("left"), facts("right"))
    (flow,) = found.flows
    assert flow["receive_buffer_bytes"] == 16_000_000 and flow["send_buffer_bytes"] == 8_000_000
    assert found.sysctls == {"left": {}, "right": {}} and not found.notes
    assert [control["label"] for control in found.controls] == ["cubic=run abab"]
    assert flow["congestion_control"] == found.controls[0]["name"] == "elephan_habab00"


def test_a_user_is_told_where_a_window_ends_and_what_would_allow_more(tmp_path: Path) -> None:
    found = demands(tmp_path, 'window = "8MB"', facts("left", root=False), facts("right", root=False))
    (flow,) = found.flows
    assert flow["receive_buffer_bytes"] is None and flow["send_buffer_bytes"] is None
    assert flow["congestion_control"] == "cubic" and not found.controls
    says = " | ".join(found.notes)
    assert "left: keeps at most about 2.10 MB in flight" in says and "net.ipv4.tcp_wmem='4096 16384 16000000'" in says
    assert "right: offers a window of at most about 3.95 MB" in says and "net.ipv4.tcp_rmem='4096 131072 1" in says
    assert "left: the kernel's own cubic" in says


def test_a_control_that_an_administrator_has_loaded_is_used(tmp_path: Path) -> None:
    lists = {"available": ["reno", "elephan_fast"], "allowed": ["reno", "elephan_fast"]}
    sender = facts("left", root=False, congestion_controls=lists)
    found = demands(tmp_path, 'congestion_control = "fast"\nwindow = "100kB"', sender, facts("right"))
    assert found.flows[0]["congestion_control"] == "elephan_fast"
    with pytest.raises(InputError, match="sudo elephan kernel load fast --set"):
        flow = 'congestion_control = { name = "fast", alpha = 33 }\nwindow = "100kB"'
        demands(tmp_path, flow, sender, facts("right"))


def test_the_kernels_own_stands_in_for_the_variant_that_it_is(tmp_path: Path) -> None:
    lists = {"available": ["reno", "bic"], "allowed": ["reno", "bic"]}
    sender = facts("left", root=False, congestion_controls=lists)
    flow = 'congestion_control = { name = "bic", variant = "linux" }\nwindow = "100kB"'
    assert demands(tmp_path, flow, sender, facts("right")).flows[0]["congestion_control"] == "bic"
    with pytest.raises(InputError, match="sudo elephan kernel load bic"):
        demands(tmp_path, 'congestion_control = "bic"\nwindow = "100kB"', sender, facts("right"))


def test_bbr_on_a_kernel_that_takes_none_by_bpf_is_the_kernels_own(tmp_path: Path) -> None:
    found = demands(tmp_path, 'congestion_control = "bbr"', facts("left", kernel="6.1.0-18-amd64"), facts("right"))
    assert found.flows[0]["congestion_control"] == "bbr" and not found.controls
    assert any("Linux 6.1 takes no bbr by BPF" in note for note in found.notes)


def test_a_control_that_only_root_may_choose_comes_with_the_sysctl(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="tcp_allowed_congestion_control='reno cubic bbr'"):
        demands(tmp_path, 'congestion_control = "bbr"', facts("left", root=False), facts("right"))


def test_a_sysctl_is_set_only_where_the_host_has_another_value(tmp_path: Path) -> None:
    off = facts("right", root=False, sysctls={"net.ipv4.tcp_frto": "0", "net.ipv4.tcp_sack": "0"})
    found = demands(tmp_path, 'frto = false\nwindow = "100kB"', facts("left"), off)
    assert found.sysctls == {"left": {"net.ipv4.tcp_frto": "0"}, "right": {"net.ipv4.tcp_frto": "0"}}
    # elephan's default, and not the host's.
    assert any(note.startswith("right: net.ipv4.tcp_sack is 0") for note in found.notes), found.notes
    with pytest.raises(InputError, match="right: needs net.ipv4.tcp_frto = 0 .it is 2.* sudo sysctl -w"):
        demands(tmp_path, 'frto = false\nwindow = "100kB"', facts("left"), facts("right", root=False))


@pytest.mark.parametrize(
    ("kernel", "flow", "says"),
    [("6.18.0", 'recovery = "sack"', "left: .*removed in Linux 6.17"), ("6.1.0", 'rto_max = "5s"', "TCP_RTO_MAX_MS")],
)
def test_a_key_that_the_hosts_kernel_does_not_have_is_refused(
    tmp_path: Path, kernel: str, flow: str, says: str
) -> None:
    old = facts("left", kernel=kernel, sysctls={})
    with pytest.raises(InputError, match=says):
        demands(tmp_path, flow, old, facts("right", kernel=kernel))

"""An emulated path as ping, tracepath, iperf3 and the kernel's counters see it over IPv6.

Needs root and /dev/net/tun.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from elephan.backends.programs import installed, lacks
from elephan.path import testbed
from tests.kernel_path.test_path_routers import MEASURE, SCENARIO, TESTS, shell

PROBLEM = testbed.missing()
pytestmark = [
    pytest.mark.skipif(PROBLEM is not None, reason=f"the path {PROBLEM}"),
    pytest.mark.skipif(not testbed.IPV6_SYSCTLS.exists(), reason="this kernel has no IPv6"),
]

PATH = '[run]\nduration = "60s"\n[path]\nbandwidth = "50Mbit/s"\nrtt = "10ms"\n{more}\n[[flow]]\n{flow}\n'


def needs(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def write(folder: Path, more: str = "", flow: str = 'congestion_control = "reno"') -> Path:
    file = folder / "path.toml"
    file.write_text(PATH.format(more=more, flow=flow), encoding="utf-8")
    return file


SILENT = "far=$ELEPHAN_PATH_FAR_IPV6; for n in 1 2 3 4; do ping -6 -n -c1 -W1 $far; done; ping -4 -n -c1 -W1 198.18.0.2"


def test_a_list_of_losses_counts_the_programs_packets_alone(tmp_path: Path) -> None:
    needs("ping")
    # Packets of the kernel's own (router solicitations, reports of groups) would take numbers.
    out, _ = shell(write(tmp_path, "loss = { packets = [2, 3] }"), SILENT)
    assert re.findall(r"(\d) received", out) == ["1", "0", "0", "1", "1"], out
    assert len(re.findall(r"64 bytes from 2001:2::2: icmp_seq=1 ttl=64", out)) == 2, out


SCRIPT = """
far=2001:2::2
ping -6 -n -c1 -W2 $far; ping -6 -n -c1 -W2 -t1 $far; ping -6 -n -c1 -W2 -t2 -s 996 $far; ping -6 -n -c1 -W2 -t3 $far
ping -6 -n -c1 -W2 -M do -s1452 $far
ip -6 route flush cache
tracepath -6 -n $far
"""


def test_ping_and_tracepath_meet_every_router(tmp_path: Path) -> None:
    needs("ping")
    file = tmp_path / "path.toml"
    file.write_text(SCENARIO, encoding="utf-8")
    out, report = shell(file, SCRIPT)
    assert len(re.findall(r"64 bytes from 2001:2::2: icmp_seq=1 ttl=62", out)) == 2, out
    # Nodes 1 and 2: the addresses with the numbers of 198.19.0.2 and 198.19.0.3.
    assert "From 2001:2::1:2 icmp_seq=1 Time exceeded: Hop limit" in out
    assert "From 2001:2::1:3 icmp_seq=1 Time exceeded: Hop limit" in out
    assert "From 2001:2::1:2 icmp_seq=1 Packet too big: mtu=1400" in out
    assert re.search(r"routers: \d+ packets had no time to live left, \d+ packets were too big for a link; ", report)
    if shutil.which("tracepath") is not None:
        assert re.search(r" 2: +2001:2::1:3 ", out) and "pmtu 1400 hops 3 back 3" in out, out


def test_path_tests_find_the_routers_and_the_mtu_over_ipv6(tmp_path: Path) -> None:
    file = tmp_path / "path.toml"
    file.write_text(SCENARIO, encoding="utf-8")
    script = MEASURE.replace("$ELEPHAN_PATH_FAR:8862", "[$ELEPHAN_PATH_FAR_IPV6]:8862")
    out, _ = shell(file, script, sys.executable, TESTS)
    hops, mtu = map(json.loads, out.splitlines())
    estimates = [(one["quantity"], one["value"]) for one in hops["estimates"] + mtu["estimates"]]
    assert estimates == [("hops", 3), ("path_mtu_bytes", 1400)], out
    for hop, address in ((1, "2001:2::1:2"), (2, "2001:2::1:3"), (3, "the far end")):
        assert f"hop {hop}: {address}, 3 replies to 3 packets" in hops["notes"], hops["notes"]
    assert "2001:2::1:2 told that its next link takes 1400 bytes, as found" in mtu["notes"]


IPERF3 = """
ip netns exec $ELEPHAN_PATH_FAR_NETNS iperf3 -6 -s -1 >&2 &
until ip netns exec $ELEPHAN_PATH_FAR_NETNS ss -Hltn | grep -q :5201; do sleep 0.05; done
iperf3 -6 -J -t 4 -O 1 -c $ELEPHAN_PATH_FAR_IPV6
wait
"""


@pytest.mark.measures_time
def test_iperf3_gets_what_headers_of_ipv6_leave(tmp_path: Path) -> None:
    needs("iperf3")
    out, report = shell(write(tmp_path), IPERF3)
    share = json.loads(out)["end"]["sum_received"]["bits_per_second"] / 50e6
    # 1500 B less 40 of IPv6, 20 of TCP and 12 of timestamps; by IPv4 it would be 96.5 %.
    assert 0.6 < share <= 0.953, (share, report)


MARKED = """
for netns in $ELEPHAN_PATH_NEAR_NETNS $ELEPHAN_PATH_FAR_NETNS; do
    ip netns exec $netns sysctl -qw net.ipv4.tcp_ecn=1
done
ip netns exec $ELEPHAN_PATH_FAR_NETNS iperf3 -6 -s -1 >&2 &
until ip netns exec $ELEPHAN_PATH_FAR_NETNS ss -Hltn | grep -q :5201; do sleep 0.05; done
iperf3 -6 -t 3 -c $ELEPHAN_PATH_FAR_IPV6 >&2
wait
ip netns exec $ELEPHAN_PATH_FAR_NETNS cat /proc/net/snmp6
"""


def test_a_queue_marks_packets_of_ipv6(tmp_path: Path) -> None:
    needs("iperf3")
    out, _ = shell(write(tmp_path, 'queue = { discipline = "codel", ecn = true }'), MARKED)
    received = {name: int(number) for name, number in (line.split() for line in out.splitlines())}
    assert received["Ip6InCEPkts"] > 0 and received["Ip6InECT0Pkts"] > 100 * received["Ip6InCEPkts"] > 0, received


SMALL = """
elephan() { "$0" -c 'from elephan.cli import main; main()' "$@" >&2; }
elephan path set $ELEPHAN_PATH_ID path.mtu=1000B
ping -6 -n -c1 -W1 $ELEPHAN_PATH_FAR_IPV6 2>&1
elephan path set $ELEPHAN_PATH_ID path.mtu=1500B
ping -6 -n -c1 -W1 $ELEPHAN_PATH_FAR_IPV6
"""


def test_below_the_least_mtu_there_is_no_ipv6_until_it_is_larger_again(tmp_path: Path) -> None:
    needs("ping")
    out, report = shell(write(tmp_path), SMALL, sys.executable)
    assert re.findall(r"(\d) received", out)[-1] == "1" and "64 bytes from 2001:2::2" in out, (out, report)
    assert out.count("64 bytes from") == 1, out


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    def run(*arguments: str, more: str = "", flow: str) -> list[dict[str, Any]]:
        file = write(tmp_path, more, flow)
        file.write_text(file.read_text().replace("60s", "5s") + '[measure]\nwarmup = "2s"\n', encoding="utf-8")
        command = [sys.executable, "-c", "from elephan.cli import main; main()", "run", str(file)]
        options = ["--store", "none", "--no-report", "--json", *arguments]
        done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        records: list[dict[str, Any]] = json.loads(done.stdout)
        return records

    return run


@pytest.mark.measures_time
def test_a_run_on_the_kernel_over_ipv6_has_the_simulators_goodput(run: Callable[..., list[dict[str, Any]]]) -> None:
    # A machine that is busy with other things stops the sender for a while now and then; it never makes it faster.
    for _ in range(3):
        sim, kernel = run("--on", "sim,kernel", flow='congestion_control = "reno"\nip_version = 6\necn = true')
        shares = [record["metrics"]["line_share"] for record in (sim, kernel)]
        if shares[1] > 0.97 * shares[0]:
            break
    assert shares[1] == pytest.approx(shares[0], rel=0.03), shares
    # IPv4 would have 96.5 %.
    assert max(shares) <= 1428 / 1500
    assert all(record["spec"]["flows"][0]["transport"]["ipv6"] is True for record in (sim, kernel))


@pytest.mark.measures_time
def test_a_bound_of_the_kernels_table_holds_over_ipv6(run: Callable[..., list[dict[str, Any]]]) -> None:
    flow = 'congestion_control = "reno"\nip_version = 6\ncwnd_clamp = 20'
    (kernel,) = run("--on", "kernel", flow=flow)
    # 20 segments of 1428 B in 10 ms, and what a packet takes on the line.
    assert kernel["metrics"]["goodput_bps"] == pytest.approx(20 * 1428 * 8 / 0.0103, rel=0.1)


@pytest.mark.parametrize("program", ["udt", "srt"])
def test_packets_of_programs_over_udp_have_the_mtu(
    run: Callable[..., list[dict[str, Any]]], program: str
) -> None:
    workload = f'{{ kind = "program", program = "{program}", bytes = "5MB" }}'
    problem = lacks(program, installed())
    if problem is not None:
        pytest.skip(problem)
    (kernel,) = run("--on", "kernel", flow=f"ip_version = 6\nworkload = {workload}")
    assert kernel["flows"][0]["delivered_bytes"] == 5_000_000
    # 1500 B less 40 of IPv6, 8 of UDP and 16 of UDT or SRT; UDT resends some. A larger packet would be two fragments.
    sent = kernel["links"][0]["delivered_packets"]
    assert 1 <= sent / (5_000_000 / 1436) < 1.5, sent


@pytest.mark.measures_time
def test_a_program_runs_over_ipv6(run: Callable[..., list[dict[str, Any]]]) -> None:
    needs("iperf3")
    workload = '{ kind = "program", program = "iperf3", duration = "4s" }'
    (kernel,) = run("--on", "kernel", flow=f'congestion_control = "reno"\nip_version = 6\nworkload = {workload}')
    assert 0.3 < kernel["metrics"]["line_share"] <= 1428 / 1500

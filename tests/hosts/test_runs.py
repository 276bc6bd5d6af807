"""Runs between two hosts, end to end: real ssh, real agents, real TCP over elephan's emulated path."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from elephan.network_namespace import within
from elephan.path import testbed as path
from tests.hosts import testbed
from tests.hosts.conftest import Elephan, Said, command, here, made

pytestmark = pytest.mark.usefixtures("nothing_stays")

SCENARIO = """\
[run]
duration = "{duration}"
stop_when_done = {stop}
[path]
bandwidth = "100Mbit/s"
rtt = "32ms"
queue = "1bdp"
[measure]
warmup = "{warmup}"
[[flow]]
name = "copy"
congestion_control = "{cc}"
{more}
"""


def scenario(
    folder: Path, cc: str = "cubic", duration: str = "2s", more: str = "", warmup: str = "0s", stop: str = "false"
) -> Path:
    """Write a scenario whose path is that of the hosts."""
    file = folder / "wan.toml"
    file.write_text(SCENARIO.format(cc=cc, duration=duration, more=more, warmup=warmup, stop=stop))
    return file


def records(done: Said) -> list[dict[str, Any]]:
    """Records that a command printed."""
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_a_run_says_what_the_path_and_both_kernels_were(hosts: testbed.Hosts, elephan: Elephan, tmp_path: Path) -> None:
    file = scenario(tmp_path, more='window = "300kB"')
    done = elephan("run", file, "--on", "hosts", "--hosts", "left,right", "--yes", "--json")
    (record,) = records(done)
    assert record["backend"] == "hosts" and done.stderr == ""
    metrics, host = record["metrics"], record["host"]
    assert 0.032 <= metrics["path_rtt_s"] < 0.1 and metrics["path_mtu_bytes"] == 1500
    # A window of 300 kB in 32 ms is 75 Mbit/s.
    assert 20e6 < metrics["goodput_bps"] < 76e6
    (sender,), (receiver,) = host["sender_ends"], host["receiver_ends"]
    assert sender["congestion_control"].startswith("elephan_h")
    # Linux may set another clamp between two reads, up to half the buffer (crates/kernel/src/traffic/socket.rs).
    assert 200_000 < sender["snd_window_max_bytes"] <= 2.1 * 300_000
    assert receiver["receive_buffer_bytes"] == 4 * 300_000
    assert host["left"]["name"] == "left" and host["right"]["address"] == hosts.right.data
    assert not record["notes"], record["notes"]
    # The record is in the store, and the same command does not run it again.
    again = elephan("run", file, "--on", "hosts", "--hosts", "left,right", "--yes", "--no-report")
    assert again.returncode == 0 and "1 of 1 run was in the store" in again.stderr, again.stderr
    other = elephan("run", file, "--on", "hosts", "--hosts", "sudo-left,right", "--json")
    assert other.returncode == 2 and "say --yes" in other.stderr


def test_the_goodput_is_that_of_the_kernel_backend_on_the_same_path(elephan: Elephan, tmp_path: Path) -> None:
    file = scenario(tmp_path, duration="4s", warmup="1s")
    command_line = ("run", file, "--on", "sim,kernel,hosts", "--hosts", "left,right", "--yes", "--json")
    # Both take real time, and something else may hold up one of them: one undisturbed pair decides.
    ratios = []
    for seed in range(1, 6):
        done = elephan(*command_line, "--seed", str(seed))
        by = {record["backend"]: record["metrics"]["goodput_bps"] for record in records(done)}
        ratios.append(by["hosts"] / by["kernel"])
        if ratios[-1] == pytest.approx(1, rel=0.03):
            break
    else:
        pytest.fail(f"hosts / kernel: {ratios}")
    table = elephan("run", file, "--on", "sim,kernel,hosts", "--hosts", "left,right", "--yes", "--no-report")
    assert "hosts/sim" in table.stdout, table.stdout


def test_the_right_host_sends_when_the_flow_goes_back(hosts: testbed.Hosts, elephan: Elephan, tmp_path: Path) -> None:
    file = scenario(
        tmp_path, cc="reno", more='direction = "reverse"\nworkload = { kind = "bulk", bytes = "2MB" }', stop="true"
    )
    (record,) = records(elephan("run", file, "--on", "hosts", "--hosts", "left,right", "--yes", "--json"))
    assert record["metrics"]["delivered_bytes"] == 2_000_000
    assert 0 < record["metrics"]["completion_s"]


def test_a_sysctl_that_a_scenario_changes_is_set_for_the_run_alone(hosts: testbed.Hosts, tmp_path: Path) -> None:
    file = scenario(tmp_path, more="timestamps = false\nfrto = false")
    words = command("run", file, "--on", "hosts", "--hosts", "left,right", "--yes", "--json")
    with subprocess.Popen(words, env=hosts.environment, stdout=subprocess.PIPE, text=True) as process:
        for end in hosts.ends:
            testbed.waited(lambda end=end: end.sysctls()["net.ipv4.tcp_frto"] == "0")
        (record,) = json.loads(process.communicate(timeout=30)[0])
    # Without timestamps a segment has 12 bytes more. The fixture holds that the sysctls are what they were.
    assert record["host"]["sender_ends"][0]["max_segment_bytes"] == 1460


def test_a_user_without_rights_gets_the_kernels_own_control_with_a_note(elephan: Elephan, tmp_path: Path) -> None:
    file = scenario(tmp_path, cc="reno")
    done = elephan("run", file, "--on", "hosts", "--hosts", "user-left,user-right", "--yes", "--json")
    (record,) = records(done)
    assert record["host"]["sender_ends"][0]["congestion_control"] == "reno"
    assert any("the kernel's own reno" in note for note in record["notes"])
    assert "the kernel's own reno" in done.stderr


@pytest.mark.parametrize(
    ("cc", "more", "says"),
    [
        ("fast", "", "sudo elephan kernel load fast"),
        ("reno", "timestamps = false", "sudo sysctl -w net.ipv4.tcp_timestamps=0"),
        ("reno", 'send_buffer = "512MB"', "sudo sysctl -w net.core.wmem_max="),
    ],
)
def test_what_a_user_may_not_do_is_refused_with_an_administrators_command(
    elephan: Elephan, tmp_path: Path, cc: str, more: str, says: str
) -> None:
    file = scenario(tmp_path, cc=cc, more=more)
    done = elephan("check", file, "--on", "hosts", "--hosts", "user-left,user-right")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and says in done.stderr, done.stderr


def test_a_rate_limit_holds_for_all_connections_together(elephan: Elephan, tmp_path: Path) -> None:
    file = scenario(tmp_path, more="connections = 2", warmup="500ms")
    arguments = ("--on", "hosts", "--hosts", "left,right", "--rate-limit", "20Mbit/s", "--max-time", "1500ms", "--json")
    (record,) = records(elephan("run", file, *arguments))
    # The limit is of packets; what was sent just before the measured second may arrive in it.
    assert 5e6 < record["metrics"]["goodput_bps"] < 20.5e6
    assert record["metrics"]["simulated_s"] < 3


def test_a_run_that_harms_a_small_flow_is_stopped(elephan: Elephan, tmp_path: Path) -> None:
    # The queue of one bandwidth-delay product that cubic fills takes the round trips to 64 ms.
    file = scenario(tmp_path, duration="20s")
    arguments = ("run", file, "--on", "hosts", "--hosts", "left,right", "--yes", "--json", "--max-rtt")
    done = elephan(*arguments, "45ms")
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "the run was stopped" in done.stderr, done.stderr
    (record,) = records(elephan(*arguments, "200ms", "--max-time", "1s"))
    assert 0.032 <= record["host"]["probes"]["rtt_min_s"] < 0.1


def test_a_path_that_is_blocked_is_named_within_seconds(hosts: testbed.Hosts, elephan: Elephan, tmp_path: Path) -> None:
    file = scenario(tmp_path)
    # Packets arrive, and no answer comes: as behind a firewall that drops.
    rule = ("to", hosts.left.data, "ipproto", "tcp", "priority", "10", "blackhole")
    path.ip("-n", hosts.right.namespace, "rule", "add", *rule)
    try:
        done = elephan("run", file, "--on", "hosts", "--hosts", "left,right", "--yes", "--again")
    finally:
        path.ip("-n", hosts.right.namespace, "rule", "delete", *rule)
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    assert hosts.right.data in done.stderr and "port" in done.stderr, done.stderr


def test_a_trace_of_writes_is_sent_to_the_sender(elephan: Elephan, tmp_path: Path) -> None:
    trace = tmp_path / "writes.spc"
    trace.write_text("".join(f"0,{number * 16},8192,w,{number * 0.01:.3f}\n" for number in range(100)))
    file = scenario(tmp_path, more='workload = { kind = "replicate", trace = "writes.spc" }')
    (record,) = records(elephan("run", file, "--on", "hosts", "--hosts", "left,right", "--yes", "--json"))
    # A header of 48 bytes stands beside each write's data.
    assert record["metrics"]["delivered_bytes"] == 100 * (8192 + 48)
    assert 0.016 <= record["metrics"]["lag_p50_s"] < 0.1


def test_two_addresses_of_ipv6_are_a_path(hosts: testbed.Hosts, elephan: Elephan, tmp_path: Path) -> None:
    # Both ends are the left host, under two names: the emulated path has no IPv6.
    hosts.left.run("sysctl", "-w", "net.ipv6.conf.lo.disable_ipv6=0")
    book = hosts.folder / "hosts.toml"
    before = book.read_text()
    book.write_text(before + "".join(f'[{name}]\nssh = "root@left"\naddress = "::1"\n' for name in ("six", "seven")))
    try:
        file = scenario(tmp_path, more='workload = { kind = "bulk", bytes = "2MB" }', stop="true")
        (record,) = records(elephan("run", file, "--on", "hosts", "--hosts", "six,seven", "--yes", "--json"))
        assert record["metrics"]["delivered_bytes"] == 2_000_000
        assert any("MTU is 65536 B" in note for note in record["notes"]), record["notes"]
        mixed = elephan("check", file, "--on", "hosts", "--hosts", "six,right")
        assert mixed.returncode == 2 and "an address of the same family" in mixed.stderr, mixed.stderr
    finally:
        book.write_text(before)
        hosts.left.run("sysctl", "-w", "net.ipv6.conf.lo.disable_ipv6=1")


def test_losses_of_the_path_are_repaired_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lossy = 'bandwidth = "45Mbit/s"\nrtt = "32ms"\nqueue = "1bdp"\nloss = 5e-3'
    with made(lossy) as hosts:
        for name in ("PATH", "ELEPHAN_HOSTS", "ELEPHAN_STORE"):
            monkeypatch.setenv(name, hosts.environment[name])
        file = scenario(tmp_path, more='workload = { kind = "bulk", bytes = "5MB" }', stop="true", duration="20s")
        (record,) = records(here(capsys)("run", file, "--on", "hosts", "--hosts", "left,right", "--yes", "--json"))
    assert record["metrics"]["delivered_bytes"] == 5_000_000
    # 3,454 packets: no loss at all has a chance of e^-17. The bound above leaves room for what slow start overflows the
    # queue by, and for a timer that a busy machine lets run out too early.
    assert 0 < record["metrics"]["retransmitted_segments"] < 3454
    assert record["metrics"]["goodput_bps"] < 45e6


def test_a_host_without_a_way_to_the_other_is_named(hosts: testbed.Hosts, elephan: Elephan, tmp_path: Path) -> None:
    book = hosts.folder / "hosts.toml"
    before = book.read_text()
    book.write_text(before + '[far]\nssh = "root@right"\naddress = "203.0.113.1"\n')
    try:
        done = elephan("check", scenario(tmp_path), "--on", "hosts", "--hosts", "left,far")
    finally:
        book.write_text(before)
    assert done.returncode == 2 and "left: no route to 203.0.113.1" in done.stderr, done.stderr


def test_data_keeps_to_the_ports_of_the_receiver(hosts: testbed.Hosts, elephan: Elephan, tmp_path: Path) -> None:
    book = hosts.folder / "hosts.toml"
    before = book.read_text()
    where = f'ssh = "root@right"\naddress = "{hosts.right.data}"'
    book.write_text(f'{before}[two]\n{where}\nports = "5000-5001"\n[taken]\n{where}\nports = "2222-2223"\n')
    file = scenario(tmp_path, more='workload = { kind = "bulk", bytes = "2MB" }', stop="true")
    try:
        (record,) = records(elephan("run", file, "--on", "hosts", "--hosts", "left,two", "--yes", "--json"))
        assert record["metrics"]["delivered_bytes"] == 2_000_000
        with socket_in(hosts.right.namespace, hosts.right.data, (2222, 2223)):
            done = elephan("run", file, "--on", "hosts", "--hosts", "left,taken", "--yes", "--json")
    finally:
        book.write_text(before)
    assert done.returncode == 1 and "2222" in done.stderr and done.stderr.count("\n") == 1, done.stderr


@contextmanager
def socket_in(namespace: str, address: str, ports: tuple[int, ...]) -> Iterator[None]:
    """Hold ports in a namespace."""

    def bound() -> list[socket.socket]:
        found = []
        for port in ports:
            found.append(socket.socket())
            found[-1].bind((address, port))
            found[-1].listen()
        return found

    held = within(path.NAMESPACES / namespace, bound)
    try:
        yield
    finally:
        for one in held:
            one.close()


def test_the_agents_carry_a_copy_of_files(hosts: testbed.Hosts, elephan: Elephan, tmp_path: Path) -> None:
    more = """connections = 2
workload = { kind = "copy", files = 20, size = "10kB", max = "30kB", more = [{ size = "500kB" }] }"""
    file = scenario(tmp_path, more=more, duration="20s", stop="true")
    done = elephan("run", file, "--on", "sim,hosts", "--hosts", "left,right", "--yes", "--json")
    simulated, real = records(done)
    for name in ("files", "file_bytes", "delivered_bytes"):
        assert simulated["metrics"][name] == real["metrics"][name]
    # Seven round trips of messages of 32 ms, and those of the data.
    assert 0.22 < simulated["metrics"]["completion_s"] < 0.6 and real["metrics"]["completion_s"] > 0.22

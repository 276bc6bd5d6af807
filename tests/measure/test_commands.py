"""`elephan measure` over loopback: outcomes, refusals, signals."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from elephan.cli.measure import ESTIMATORS
from elephan.core import native
from elephan.measure.text import cost_line
from tests.hosts.conftest import Elephan
from tests.measure.conftest import KEY, reflecting
from tests.measure.proxy import proxied

QUICK = ("--count", "20", "--interval", "5ms", "--json")


def quantities(outcome: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Estimates by what they are of."""
    return {one["quantity"]: one for one in outcome["estimates"]}


def stamp(elephan: Elephan, towards: str, *options: str | Path) -> dict[str, Any]:
    """Return the outcome of a session."""
    said = elephan("measure", "stamp", towards, *QUICK, *options)
    assert said.returncode == 0, said.stderr
    outcome: dict[str, Any] = json.loads(said.stdout)
    return outcome


@pytest.mark.parametrize("time_format", ["ntp", "ptp"])
def test_a_session_tells_delay_loss_and_ttl(elephan: Elephan, reflector: str, time_format: str) -> None:
    outcome = stamp(elephan, reflector, "--time-format", time_format, "--size", "500B")
    found = quantities(outcome)
    assert outcome["test"] == "stamp" and outcome["towards"] == reflector and not outcome["stopped"]
    assert outcome["counts"]["packets"] == 20 and found["loss"]["value"] == 0
    assert outcome["cost"]["packets"] == 20 and outcome["cost"]["bytes"] == 20 * 500
    assert 0 < found["rtt_s"]["low"] <= found["rtt_s"]["value"] <= found["rtt_s"]["high"] < 0.5
    # Both ends have one clock: half of the round trip is the most that the estimate of it may be wrong by.
    for name in ("forward_delay_s", "reverse_delay_s"):
        assert found[name]["low"] <= found["rtt_s"]["high"] and found[name]["high"] >= 0
    assert found["ttl"]["value"] == 255


def test_impairments_of_the_way_are_told_one_by_one(elephan: Elephan, reflector: str) -> None:
    def fate(number: int, is_reply: bool) -> list[float]:
        if (number in (3, 4) and not is_reply) or (number == 9 and is_reply):
            return []
        if number == 6 and is_reply:
            return [0.01, 0.02]
        # Packets 13 and so on pass number 12 on its way there.
        return [0.3 if number == 12 and not is_reply else 0.01]

    with proxied(reflector, fate) as proxy:
        outcome = stamp(elephan, proxy.towards, "--timeout", "700ms")
    counts = outcome["counts"]
    assert (counts["lost"], counts["loss_runs"], counts["longest_loss_run"]) == (3, 2, 2)
    assert (counts["reordered"], counts["forward_reordered"], counts["duplicates"]) == (1, 1, 1)
    assert quantities(outcome)["rtt_s"]["low"] >= 0.02
    told = "3 lost in 2 runs, the longest of 2, 2 of them on the way there"
    assert told in outcome["notes"], "\n".join(outcome["notes"])


def taken_from(received: int, sent: int) -> tuple[int, int]:
    """Return both time stamps of a reply with the reflector's two clocks 37 s apart, as TAI is from UTC."""
    return received + (37 << 32), sent


@pytest.mark.parametrize(
    "stamps",
    [
        taken_from,
        lambda received, sent: (received - (18 << 32), sent),
        lambda received, sent: (0, sent),
        lambda received, sent: (sent, received - (1 << 22)),
    ],
    ids=["TAI", "GPS", "no receive timestamp", "sent before received"],
)
def test_a_reflector_with_two_clocks_gives_the_round_trip_alone(
    elephan: Elephan, reflector: str, stamps: Callable[[int, int], tuple[int, int]]
) -> None:
    def edit(reply: bytes) -> bytes:
        # RFC 8762, 4.3.1: timestamp at octet 4, receive timestamp at 16.
        (sent,), (received,) = struct.unpack_from(">Q", reply, 4), struct.unpack_from(">Q", reply, 16)
        received, sent = stamps(received, sent)
        return reply[:4] + struct.pack(">Q", sent) + reply[12:16] + struct.pack(">Q", received) + reply[24:]

    with proxied(reflector, lambda number, is_reply: [0.01], edit) as proxy:
        outcome = stamp(elephan, proxy.towards)
    found = quantities(outcome)
    assert 0.02 <= found["rtt_s"]["value"] < 1
    assert not found.keys() & {"forward_delay_s", "reverse_delay_s"}
    assert any("time stamps of the reflector that the round trip contradicts" in note for note in outcome["notes"])


def test_no_delay_is_printed_below_zero(elephan: Elephan, reflector: str) -> None:
    for estimate in stamp(elephan, reflector, "--count", "20", "--interval", "10ms")["estimates"]:
        assert estimate["low"] >= 0, estimate
    said = elephan("measure", "stamp", reflector, "--count", "20").stdout
    assert not re.search(r"(?<!\w)-\d", said), said


def test_a_key_is_needed_on_both_ends(elephan: Elephan, key_file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text(KEY[::-1])
    with reflecting("--key-file", str(key_file)) as (towards, process):
        assert stamp(elephan, towards, "--key-file", key_file)["counts"]["lost"] == 0
        for options in ([], ["--key-file", other]):
            said = elephan("measure", "stamp", towards, "--count", "2", "--timeout", "50ms", *options)
            assert (said.returncode, said.stderr) == (1, f"error: {towards}: no packet has a reply\n")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=10)
        assert process.returncode == 0
        assert "20 replies; not answered: 2 too short for a reply, 2 with a wrong HMAC" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nobody.invalid"], "nobody.invalid: no address"),
        (["127.0.0.1:0"], "a port of 1 to 65535"),
        (["127.0.0.1:862", "--interval", "5"], "--interval"),
        (["127.0.0.1:862", "--interval", "1us"], "--interval 1us: 0.001s or more"),
        (["127.0.0.1:862", "--size", "20kB"], "at most 9244"),
        (["127.0.0.1:862", "--time-format", "unix"], "ntp or ptp"),
        (["127.0.0.1:862", "--dscp", "64"], "--dscp"),
        (["127.0.0.1:862", "--count", "0"], "--count"),
        (["127.0.0.1:862", "--each", "--json"], "--each"),
        (["127.0.0.1:862", "--key-file", "/nowhere/key"], "--key-file /nowhere/key: cannot be read"),
    ],
)
def test_bad_input_is_a_line_and_exit_code_2(elephan: Elephan, arguments: list[str], says: str) -> None:
    said = elephan("measure", "stamp", *arguments)
    assert said.returncode == 2 and said.stdout == ""
    assert says in said.stderr and said.stderr.count("\n") == 1


def test_large_packets_without_a_reply_point_to_the_mtu(elephan: Elephan) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        towards = f"127.0.0.1:{silent.getsockname()[1]}"
        large = elephan("measure", "stamp", towards, "-c", "2", "--timeout", "100ms", "--size", "1400B")
        small = elephan("measure", "stamp", towards, "-c", "2", "--timeout", "100ms")
    assert f"1400 bytes: elephan measure mtu {towards}" in large.stdout + large.stderr
    assert "is there a reflector" in small.stdout and "measure mtu" not in small.stdout


def test_keys_that_are_none_are_refused(elephan: Elephan, tmp_path: Path) -> None:
    file = tmp_path / "short"
    for text in ("0011", "not a key of any kind", "é", ""):
        file.write_text(text)
        said = elephan("measure", "reflect", "127.0.0.1", "--key-file", file)
        assert said.returncode == 2 and "16 or more hexadecimal digits" in said.stderr


def test_a_taken_port_and_a_strange_address_are_told(elephan: Elephan) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        said = elephan("measure", "reflect", "127.0.0.1", "--port", str(taken.getsockname()[1]))
    assert said.returncode == 1 and "Address already in use" in said.stderr
    said = elephan("measure", "reflect", "one.two", "--port", "0")
    assert said.returncode == 2 and "an IPv4 or IPv6 address of this machine" in said.stderr


def test_estimators_are_commands_by_their_names(elephan: Elephan, reflector: str) -> None:
    names = native.path_test_names()
    assert names[0] == "stamp" and len(names) > 1
    said = elephan("measure", "--help")
    assert all(f"\n  {name} " in said.stdout for name in [*names, "reflect", "throughput"])
    said = elephan("measure", "mtu", reflector, "--json")
    outcome = json.loads(said.stdout)
    assert outcome["test"] == "mtu" and outcome["cost"]["packets"] > 0
    (found,) = (one["value"] for one in outcome["estimates"] if one["quantity"] == "path_mtu_bytes")
    # To the last byte: an MTU of 1498 is another one than 1500.
    began_s = time.monotonic()
    shown = elephan("measure", "mtu", reflector).stdout
    assert f" {found:.0f} B" in shown
    assert re.search(r"^cost: \d+ packets, .*B, took [\d.]+ m?s", shown, re.MULTILINE), shown
    assert 0 < outcome["took_s"] < 2 * (time.monotonic() - began_s) + 1
    said = elephan("measure", "capacity", reflector, "--set", "speed=3")
    assert said.returncode == 2 and "speed" in said.stderr
    said = elephan("measure", "capacity", reflector, "--set", "test=mtu")
    assert said.returncode == 2 and "--set test=mtu" in said.stderr


@pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is missing; scripts/packages.sh test")
def test_throughput_is_that_of_a_transfer_to_an_iperf3_server(elephan: Elephan) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["iperf3", "-s", "-B", "127.0.0.1", "-p", str(port), "--forceflush"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            while "listening" not in server.stdout.readline():
                pass
            towards = f"127.0.0.1:{port}"
            for options in ([], ["--reverse", "--streams", "2", "--congestion-control", "reno"]):
                said = elephan("measure", "throughput", towards, "--bytes", "4MB", "--json", *options)
                assert said.returncode == 0, said.stderr
                outcome = json.loads(said.stdout)
                assert (outcome["test"], outcome["towards"]) == ("throughput", towards)
                found = quantities(outcome)["throughput_bps"]
                assert 0 < found["low"] <= found["value"] <= found["high"]
                assert 3_900_000 <= outcome["cost"]["bytes"] < 20_000_000
            assert "reno, 2 connections" in outcome["notes"]
        finally:
            server.terminate()
    said = elephan("measure", "throughput", towards, "--bytes", "4MB")
    assert said.returncode == 1 and "start `iperf3 -s` there" in said.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["127.0.0.1:0"], "a port from 1 to 65535"),
        (["127.0.0.1", "--bytes", "20"], "--bytes"),
        (["127.0.0.1", "--bytes", "0B"], "--bytes 0B: 1 B or more"),
        (["127.0.0.1", "--seconds", "0"], "--seconds 0: 0.1 to 86400"),
        (["127.0.0.1", "--streams", "0"], "--streams"),
    ],
)
def test_bounds_of_a_transfer_are_checked(elephan: Elephan, arguments: list[str], says: str) -> None:
    said = elephan("measure", "throughput", *arguments)
    assert said.returncode == 2 and says in said.stderr and said.stderr.count("\n") == 1


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is missing; scripts/packages.sh test")
def test_tshark_reads_the_packets_as_twamps(elephan: Elephan, reflector: str, tmp_path: Path) -> None:
    with proxied(reflector) as proxy:
        outcome = stamp(elephan, proxy.towards)
    file = tmp_path / "stamp.pcap"
    proxy.write(file)
    names = ("seq_number", "error_estimate.multiplier", "sender_seq_number", "sender_ttl", "timestamp")
    shown = [word for name in names for word in ("-e", f"twamp.test.{name}")]
    words = ["tshark", "-r", str(file), "-d", "udp.port==862,twamp.test", "-T", "fields", *shown]
    # Without a control connection it takes a request's zeros for the other fields of a reply.
    done = subprocess.run([*words, "-t", "u"], capture_output=True, text=True, timeout=60, check=True)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(rows) == 40 == 2 * outcome["cost"]["packets"]
    assert [int(row[0]) for row in rows] == [int.from_bytes(packet[:4]) for _, _, packet in proxy.packets]
    for (_, is_reply, packet), row in zip(proxy.packets, rows, strict=True):
        own, of_sender = (int(one) for one in row[1].split(","))
        assert own > 0 and (of_sender > 0) == is_reply
        assert (int(row[2]), int(row[3])) == ((int.from_bytes(packet[24:28]), 64) if is_reply else (0, 0))
        assert row[4].count(":") >= 2


def test_a_scenario_is_simulated_and_the_truth_stands_beside_the_estimate(elephan: Elephan) -> None:
    done = elephan("measure", "queue", "examples/bulk.toml", "--json")
    told = json.loads(done.stdout)
    (depth,) = [one["value"] for one in told["estimates"] if one["quantity"] == "queue_bytes"]
    assert depth == pytest.approx(told["truth"]["queue_bytes"], rel=0.15)
    assert "truth: capacity 200 Mbit/s, " in elephan("measure", "capacity", "examples/bulk.toml").stdout
    done = elephan("measure", "capacity", "examples/bulk.toml", "--from", "vienna")
    assert done.returncode == 2 and "neither --key-file nor --from" in done.stderr


def test_each_estimator_of_the_core_has_a_command() -> None:
    assert {"stamp", *ESTIMATORS} == set(native.path_test_names())


def test_a_test_beside_background_traffic_alone_takes_its_route(elephan: Elephan, tmp_path: Path) -> None:
    text = '[run]\nduration = "5min"\n[path]\nbandwidth = "50Mbit/s"\nrtt = "20ms"\nqueue = "100 packets"\n'
    (tmp_path / "shared.toml").write_text(text + '[[background]]\nrate = "20Mbit/s"\n')
    done = elephan("measure", "available", tmp_path / "shared.toml", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    # 50 Mbit/s less 20.
    assert abs(quantities(found)["available_bps"]["value"] - 30e6) < 1.5e6
    assert abs(found["truth"]["available_bps"] - 30e6) < 0.5e6


@pytest.mark.parametrize("octets", [14, 40, 41])
def test_a_twamp_packet_is_answered_where_the_reply_fits_into_it(octets: int) -> None:
    with reflecting() as (towards, process):
        host, _, port = towards.rpartition(":")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.settimeout(0.5)
            # RFC 5357, 4.1.2: number, timestamp, error estimate, padding.
            sender.sendto(struct.pack(">IQH", 7, 1 << 63, 1).ljust(octets, b"\0"), (host, int(port)))
            if octets < 41:
                with pytest.raises(TimeoutError):
                    sender.recv(100)
            else:
                # 4.2.1: the sender's number at octet 24.
                reply = sender.recv(100)
                assert len(reply) == 41 and struct.unpack_from(">I", reply, 24) == (7,)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=10)
    told = "1 too short for a reply (TWAMP needs 27 octets of padding)" if octets < 41 else "0 too short for a reply, "
    assert told in out


def test_the_cost_tells_a_tests_time_from_that_of_its_share_of_the_line() -> None:
    """24.3 MB are 1 % of 100 Mbit/s for 194 s, however soon the test is over."""
    cost = {"packets": 16200, "bytes": 24_300_000, "seconds": 24_300_000 * 8 / 1e6}
    sent = "cost: 16200 packets, 24.3 MB"
    share = "as much as its share of the line carries in 3 min 14 s"
    assert cost_line({"cost": cost, "took_s": 71.0}) == f"{sent}, took 71.0 s; {share}"
    assert cost_line({"cost": cost, "took_s": 194.0}) == f"{sent}, took 3 min 14 s"
    # Simulated: the clock of this machine tells nothing.
    assert cost_line({"cost": cost}) == f"{sent}; {share}"

"""`ip_version = 6`: headers of 40 bytes in place of 20, by arithmetic on RFC 8200 and 9293 and by tshark's reading."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

COMMAND = [sys.executable, "-c", "from elephan.cli import main; main()"]

PATH = """
[run]
duration = "6s"

[path]
{line}
rtt = "10ms"
queue = "3bdp"
mtu = "{mtu}B"

[[flow]]
congestion_control = "reno"
window = "300kB"
ip_version = {version}
timestamps = {timestamps}

[measure]
warmup = "3s"
series = false
"""

IP_BYTES = {4: 20, 6: 40}
"""Headers without options or extension headers (RFC 791, 3.1; RFC 8200, 3)."""


def command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False)


def run(file: Path, text: str, *arguments: str | Path) -> dict[str, Any]:
    file.write_text(text, encoding="utf-8")
    done = command("run", file, "--store", "none", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    (record,) = json.loads(done.stdout)
    return dict(record)


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize(
    ("line", "rate_bps", "framing_bytes", "mtu", "timestamps"),
    [
        # PPP over SONET: a flag between frames, and 8 bytes of header and check sequence (RFC 2615, RFC 1662).
        ('line = "oc-3"', 149_760_000, 9, 1500, True),
        ('bandwidth = "100Mbit/s"', 100_000_000, 0, 1500, True),
        ('bandwidth = "100Mbit/s"', 100_000_000, 0, 1500, False),
        ('bandwidth = "100Mbit/s"', 100_000_000, 0, 9000, True),
        ('bandwidth = "100Mbit/s"', 100_000_000, 0, 1280, True),
    ],
)
def test_a_full_line_carries_what_the_headers_leave(
    tmp_path: Path, version: int, line: str, rate_bps: int, framing_bytes: int, mtu: int, timestamps: bool
) -> None:
    text = PATH.format(line=line, mtu=mtu, version=version, timestamps=str(timestamps).lower())
    record = run(tmp_path / "one.toml", text)
    payload = mtu - IP_BYTES[version] - 20 - (12 if timestamps else 0)
    share = record["metrics"]["goodput_bps"] / rate_bps
    # The window is more than the path holds, and less than path and queue: the line is full, without losses.
    assert share == pytest.approx(payload / (mtu + framing_bytes), rel=1e-3)
    assert record["metrics"]["retransmitted_segments"] == 0
    assert record["spec"]["flows"][0]["transport"].get("ipv6", False) is (version == 6)


@pytest.mark.parametrize("version", [4, 6])
def test_a_transfer_of_udt_has_packets_of_the_mtu(tmp_path: Path, version: int) -> None:
    segments = 1000
    # IP, UDP (RFC 768) and a data header of UDT (draft-gg-udt-03, 4).
    payload = 1500 - IP_BYTES[version] - 8 - 16
    text = f"""
        [run]
        duration = "20s"
        [path]
        bandwidth = "100Mbit/s"
        rtt = "10ms"
        queue = "2bdp"
        [[flow]]
        transport = "udt4"
        window = "200kB"
        workload = {{ kind = "bulk", bytes = "{segments * payload}B" }}
        ip_version = {version}
        [measure]
        series = false
    """
    record = run(tmp_path / "one.toml", text)
    (flow,), link = record["flows"], record["links"][0]
    assert flow["delivered_bytes"] == segments * payload and flow["retransmitted_segments"] == 0
    control_packets = link["delivered_packets"] - segments
    control_bytes = link["delivered_bytes"] - segments * 1500
    # Beside the data: handshakes and acknowledgments of acknowledgments, from 4 bytes behind the headers to 48.
    headers = IP_BYTES[version] + 8 + 16
    assert 0 < control_packets < 200
    assert headers + 4 <= control_bytes / control_packets <= headers + 48


def test_flows_of_both_versions_share_a_link_and_each_has_its_own_segments(tmp_path: Path) -> None:
    text = """
        [run]
        duration = "20s"
        [path]
        bandwidth = "100Mbit/s"
        rtt = "10ms"
        [defaults]
        ip_version = 6
        workload = { kind = "bulk", bytes = "14280000B" }
        [[flow]]
        name = "six"
        [[flow]]
        name = "four"
        ip_version = 4
        [measure]
        series = false
    """
    six, four = run(tmp_path / "one.toml", text)["flows"]
    for flow, payload in ((six, 1428), (four, 1448)):
        first_time = flow["sent_segments"] - flow["retransmitted_segments"]
        assert first_time == pytest.approx(14_280_000 / payload, abs=3), flow["name"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["flow.ip_version=5"], "flow.flow1.ip_version = 5: one of 4, 6"),
        (["flow.ip_version=6", "path.mtu=1279B"], "flow.flow1.ip_version = 6: 4: the route's MTU is 1279B"),
        (["flow.ip_version=6", "flow.mtu=1000B"], "at least 1280B, the least of IPv6 (RFC 8200, 5)"),
    ],
)
def test_what_ipv6_does_not_have_is_refused_in_one_line(tmp_path: Path, changes: list[str], words: str) -> None:
    file = tmp_path / "one.toml"
    run_and_path = '[run]\nduration = "1s"\n[path]\nbandwidth = "1Mbit/s"\nrtt = "1ms"\n'
    file.write_text(f'{run_and_path}[[flow]]\ncongestion_control = "reno"\n', "utf-8")
    sets = [part for change in changes for part in ("--set", change)]
    done = command("run", file, "--store", "none", *sets)
    assert done.returncode == 2 and words in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


def tshark(capture: Path, *arguments: str) -> list[str]:
    checks = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
    done = subprocess.run(
        ["tshark", "-n", "-r", str(capture), *checks, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is missing; scripts/packages.sh test")
def test_tshark_reads_packets_of_ipv6_beside_those_of_ipv4(tmp_path: Path) -> None:
    capture = tmp_path / "both.pcapng"
    text = PATH.format(line='bandwidth = "10Mbit/s"\nloss = 1e-3', mtu=1500, version=6, timestamps="true")
    text += '[[flow]]\nname = "four"\ncongestion_control = "reno"\necn = true\n'
    record = run(tmp_path / "one.toml", text.replace("6s", "2s").replace("3s", "0s"), "--pcap", capture)
    bad = "_ws.malformed or tcp.checksum.status == 0 or ip.checksum.status == 0 or tcp.analysis.lost_segment"
    assert tshark(capture, "-Y", bad) == []
    for number, (version, mss) in enumerate((("ipv6", 1440), ("ip", 1460))):
        syns = f"{version} and tcp.flags.syn == 1"
        (offered,) = set(tshark(capture, "-Y", syns, "-Tfields", "-etcp.options.mss_val"))
        assert offered == str(mss)
        fields = [f"-e{name}" for name in ("frame.len", "tcp.len", "tcp.hdr_len")]
        rows = [
            [int(number) for number in line.split()]
            for line in tshark(capture, "-Y", f"{version} and tcp.flags.syn == 0", "-Tfields", *fields)
        ]
        assert all(frame == payload + header + (40 if version == "ipv6" else 20) for frame, payload, header in rows)
        assert max(frame for frame, _, _ in rows) == 1500
        again = tshark(capture, "-Y", f"{version} and (tcp.analysis.retransmission or tcp.analysis.out_of_order)")
        assert len(again) == record["flows"][number]["retransmitted_segments"] > 0
    ends = set(tshark(capture, "-Y", "ipv6", "-Tfields", "-eipv6.src"))
    assert ends == {"fd00::a01:1", "fd00::a80:1"}


GATEWAYS = """
[run]
duration = "2s"
[[node]]
name = "west"
kind = "gateway"
rate = "1GFC"
[[node]]
name = "east"
kind = "gateway"
rate = "1GFC"
[[link]]
from = "west"
to = "east"
bandwidth = "200Mbit/s"
delay = "5ms"
[[flow]]
name = "san"
from = "west"
to = "east"
ip_version = 6
stop = "1s"
workload = {{ kind = "fc", protocol = "{protocol}", load = "5%" }}
[measure]
series = false
"""


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is missing; scripts/packages.sh test")
@pytest.mark.parametrize("protocol", ["ifcp", "fcip"])
def test_segments_of_gateways_are_whole_over_ipv6(tmp_path: Path, protocol: str) -> None:
    capture = tmp_path / "san.pcapng"
    record = run(tmp_path / "one.toml", GATEWAYS.format(protocol=protocol), "--pcap", capture)
    assert record["metrics"]["delivered_bytes"] > 1_000_000
    statuses = set(tshark(capture, "-Y", "ipv6 and tcp", "-Tfields", "-etcp.checksum.status"))
    # 1: good, which tshark says of whole payloads alone.
    assert statuses == {"1"}
    assert len(tshark(capture, "-Y", "ipv6 and fc")) > 500

"""Captures of simulated gateways hold the frames: what tshark and a reader of RFC 3643's bytes find is the record's."""

from __future__ import annotations

import shutil
import subprocess
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

import elephan

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is missing; scripts/packages.sh test")

SCENARIO = """
[run]
duration = "10s"

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
loss = 0.01
reverse = { loss = 0.01 }

[[flow]]
name = "san"
from = "west"
to = "east"
stop = "1s"

[measure]
series = false
"""

LOADS = {
    "fc": {"kind": "fc", "load": "5%"},
    "mix": {"kind": "fc", "load": "5%", "frame": {"mix": {"2112B": 3, "61B": 1}}},
    "fcp": {"kind": "fcp", "queue_depth": 8, "disk": "nvme", "source": {"reads": 0.5, "size": "16KiB"}},
}
PORTS = {"ifcp": 3420, "fcip": 3225}
ENCAPSULATIONS = {"ifcp": 2, "fcip": 1}
"""Protocol numbers of RFC 3643, section 3.1."""
HEADER_BYTES = 28
WELL_KNOWN = "ff.ff."
"""Begin of the addresses of a fabric's services."""
SESSION, SPECIAL_FRAME = 4, 1
"""Flags of a frame that carries none of a port: of a session message of iFCP, and of FCIP's special frame."""
FIELDS = (
    "frame.number",
    "frame.interface_name",
    "_ws.malformed",
    "_ws.expert.severity",
    "_ws.expert.message",
    "_ws.col.Protocol",
    "tcp.srcport",
    "tcp.seq",
    "tcp.len",
    "tcp.payload",
    "fc.r_ctl",
    "fc.s_id",
    "fc.d_id",
    "fc.crc.status",
)
ERROR = 0x800000
"""Of Wireshark's severities."""
CHECKS = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-o", "tcp.reassemble_out_of_order:TRUE"]
FCIP_CHECKS = ["-o", "fc.reassemble:FALSE"]
"""Wireshark 4.0 reads the first FCIP frame of what TCP hands it in place of each later one, and then finds that the
sequence has it already."""


@dataclass
class Message:
    """A message in a stream."""

    start: int
    content: bytes | None
    """FC header, payload and CRC; None: a message of the protocol itself."""


@dataclass
class Direction:
    """The bytes of one direction of a connection, put together by their numbers."""

    content: bytearray = field(default_factory=bytearray)
    known: bytearray = field(default_factory=bytearray)
    """1 for each byte that came."""
    ends: set[int] = field(default_factory=set)
    """Ends of segments."""
    again: int = 0
    """Segments without a new byte."""

    def add(self, start: int, data: bytes) -> None:
        """Add a segment; a byte that comes again is the same."""
        end = start + len(data)
        for whole in (self.content, self.known):
            whole.extend(bytes(max(0, end - len(whole))))
        if any(self.known[start:end]):
            pairs = zip(self.content[start:end], data, self.known[start:end], strict=True)
            assert all(old == new for old, new, is_known in pairs if is_known), "a segment came again with other bytes"
        self.again += all(self.known[start:end])
        self.content[start:end], self.known[start:end] = data, b"\1" * len(data)
        self.ends.add(end)

    def messages(self, protocol: str) -> list[Message]:
        """Return the messages; no byte is missing."""
        assert all(self.known)
        return list(messages(bytes(self.content), protocol))


@dataclass
class Captured:
    """A capture at one node, and what the record says."""

    file: Path
    kind: str
    protocol: str
    changes: dict[str, Any]
    metrics: dict[str, Any]

    @cached_property
    def packets(self) -> list[dict[str, str]]:
        """Return the packets with `FIELDS`, as tshark reads them: once, since its start takes longer than all else."""
        shown = [part for field in FIELDS for part in ("-e", field)]
        checks = CHECKS + FCIP_CHECKS if self.protocol == "fcip" else CHECKS
        command = ["tshark", "-r", str(self.file), *checks, "-T", "fields", "-E", "separator=|", *shown]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return [dict(zip(FIELDS, line.split("|"), strict=True)) for line in done.stdout.splitlines()]

    @cached_property
    def directions(self) -> list[Direction]:
        """Return the bytes that the first gateway sent, then those of the other."""
        there, back = Direction(), Direction()
        port = str(PORTS[self.protocol])
        for packet in self.packets:
            if not packet["tcp.srcport"]:
                continue
            data = bytes.fromhex(packet["tcp.payload"])
            assert len(data) == int(packet["tcp.len"]), "a segment without its bytes"
            if data:
                (back if packet["tcp.srcport"] == port else there).add(int(packet["tcp.seq"]) - 1, data)
        return [there, back]


def messages(stream: bytes, protocol: str) -> Iterator[Message]:
    """Read the messages of a stream; every check value is right."""
    at = 0
    while at < len(stream):
        start, header = at, stream[at : at + HEADER_BYTES]
        number = ENCAPSULATIONS[protocol]
        assert header[:4] == bytes([number, 1, 255 - number, 254])
        flags_and_length, complement = int.from_bytes(header[12:14]), int.from_bytes(header[14:16])
        assert flags_and_length ^ complement == 0xFFFF
        length = 4 * (flags_and_length & 0x3FF)
        has_crc = flags_and_length >> 10 & 1
        assert has_crc == (protocol == "ifcp")
        assert header[24:] == (zlib.crc32(header[:24]).to_bytes(4, "little") if has_crc else bytes(4))
        message = stream[at : at + length]
        assert len(message) == length
        at += length
        if protocol == "fcip" and header[8] & SPECIAL_FRAME:
            yield Message(start, None)
            continue
        sof, content, eof = message[28:32], message[32:-4], message[-4:]
        for word in (sof, eof):
            assert word[0] == word[1] == 255 - word[2] == 255 - word[3]
        assert zlib.crc32(content[:-4]).to_bytes(4, "little") == content[-4:], "FC CRC"
        yield Message(start, None if protocol == "ifcp" and header[9] & SESSION else content)


@pytest.fixture(scope="module", params=[(kind, protocol) for kind in LOADS for protocol in PORTS], ids="-".join)
def captures(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Captured]:
    """Run a workload twice, with the capture at either node."""
    kind, protocol = request.param
    folder = tmp_path_factory.mktemp(f"{kind}-{protocol}")
    scenario = folder / "san.toml"
    scenario.write_text(SCENARIO)
    of = {}
    for node in ("west", "east"):
        file = folder / f"{node}.pcapng"
        changes = {"flow.workload": {**LOADS[kind], "protocol": protocol}, "measure.pcap_node": node}
        results = elephan.run(scenario, changes, store="none", pcap=file)
        of[node] = Captured(file, kind, protocol, changes, dict(results[0].metrics))
    return of


@pytest.mark.parametrize("node", ["west", "east"])
def test_frames_are_those_of_the_record(captures: dict[str, Captured], node: str) -> None:
    captured, metrics = captures[node], captures[node].metrics
    directions = captured.directions
    read = [direction.messages(captured.protocol) for direction in directions]
    for messages_of_one in read:
        own = [number for number, message in enumerate(messages_of_one) if message.content is None]
        assert own == [0], "a message opens the session, and frames follow"
    assert sum(len(messages_of_one) - 1 for messages_of_one in read) == metrics["fc_frames"] > 100
    if node == "west":
        assert directions[0].again == metrics["retransmitted_segments"] > 0


@pytest.mark.parametrize("node", ["west", "east"])
def test_tshark_reads_every_frame_without_a_fault(captures: dict[str, Captured], node: str) -> None:
    captured = captures[node]
    for packet in captured.packets:
        severities = [int(severity, 0) for severity in packet["_ws.expert.severity"].split(",") if severity]
        assert not packet["_ws.malformed"] and max(severities, default=0) < ERROR, packet
    rows = [packet["fc.r_ctl"] for packet in captured.packets if packet["tcp.srcport"]]
    read = sum(len(row.split(",")) for row in rows if row)
    frames = captured.metrics["fc_frames"]
    if captured.protocol == "ifcp":
        # Messages of the session are frames, too.
        assert read == frames + 2
    elif (captured.kind, node) == ("fc", "west"):
        # At the sender each of these frames is the first in what TCP hands on. Wireshark 4.0 does not see an FCIP frame
        # of which a segment ends within the encapsulation header.
        there = captured.directions[0]
        starts = [message.start for message in there.messages("fcip")]
        cut = sum(not there.ends.isdisjoint(range(at + 1, at + HEADER_BYTES + 1)) for at in starts)
        assert read + cut == frames
    else:
        assert read > frames / 2


@pytest.mark.parametrize("node", ["west", "east"])
def test_frames_of_the_ports_are_there_with_their_crc(captures: dict[str, Captured], node: str) -> None:
    captured = captures[node]
    of_ports = [packet for packet in captured.packets if packet["frame.interface_name"] == "fc"]
    assert {packet["fc.crc.status"] for packet in of_ports} == {"1"}, "1 is good"
    ends = [packet["fc.s_id"] + packet["fc.d_id"] for packet in of_ports]
    assert sum(WELL_KNOWN not in both for both in ends) == captured.metrics["fc_frames"]
    if captured.kind == "fcp":
        protocols = {packet["_ws.col.Protocol"] for packet in of_ports}
        assert protocols >= {"FC ELS", "dNS", "FCP"}, "a login, the name server, commands"


def test_the_two_ends_see_the_same_bytes(captures: dict[str, Captured]) -> None:
    west, east = (captured.directions for captured in captures.values())
    assert [direction.content for direction in west] == [direction.content for direction in east]


def test_a_capture_changes_no_record(captures: dict[str, Captured]) -> None:
    for captured in captures.values():
        scenario = captured.file.with_name("san.toml")
        without = dict(elephan.run(scenario, captured.changes, store="none")[0].metrics)
        assert without == {**captured.metrics, "cpu_s": without["cpu_s"]}

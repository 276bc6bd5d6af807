"""`--pcap` held against another program: what tshark counts in a capture is what the record says.

The capture is taken at the sender, where nothing has been lost or reordered yet. There every segment of the sender that
does not begin where the last one ended was sent before. tshark calls most of these retransmissions. Those that follow
the newest data within the handshake's round-trip time it calls out-of-order, as SACK is not taken into account there
(Wireshark User's Guide, TCP Analysis; Wireshark issue 13863). At the sender they are retransmissions all the same, and
the two kinds together must be `retransmitted_segments` exactly.

A duplicate ACK is for tshark one without payload, SYN or FIN, whose number and window are those of *the ACK captured
before it*. RFC 5681, section 2, compares with *the greatest* number received; so does the record. The two differ where
ACKs overtake each other, and where an ACK is there to report a duplicate (DSACK, RFC 2883), which tells of no segment
that left the network: Linux and the record leave it out. The first tests have neither, and must agree exactly; the
last ones have both, and there the definition is applied to the headers that tshark read.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import elephan

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is missing; scripts/packages.sh test")

SCENARIO = """
[run]
duration = "4s"

[path]
bandwidth = "50Mbit/s"
rtt = "20ms"
loss = 1e-3
queue = "1bdp"

[[flow]]
name = "copy"
congestion_control = "reno"

[measure]
series = false
"""

FIELDS = (
    "ip.src",
    "tcp.seq",
    "tcp.ack",
    "tcp.len",
    "tcp.window_size_value",
    "tcp.flags.syn",
    "tcp.options.sack_le",
    "tcp.options.sack_re",
    "tcp.analysis.retransmission",
    "tcp.analysis.out_of_order",
    "tcp.analysis.duplicate_ack",
)


@dataclass
class Packet:
    """A packet as tshark shows it."""

    from_sender: bool
    seq: int
    ack: int
    length: int
    window: int
    syn: bool
    sacks: list[tuple[int, int]]
    sent_again: bool
    duplicate_ack: bool

    @property
    def reports_a_duplicate(self) -> bool:
        """Return True if the first block is a DSACK (RFC 2883, section 4): acknowledged already, or within the second.
        """
        if not self.sacks:
            return False
        start, end = self.sacks[0]
        within = len(self.sacks) > 1 and self.sacks[1][0] <= start and end <= self.sacks[1][1]
        return start < self.ack or within


def read(capture: Path) -> list[Packet]:
    """Read a capture with tshark."""
    command = ["tshark", "-r", str(capture), "-T", "fields", "-E", "separator=|"]
    for field in FIELDS:
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(packets(done.stdout))


def packets(text: str) -> Iterator[Packet]:
    """Turn tshark's lines into packets. The first packet is the sender's SYN."""
    sender = ""
    for line in text.splitlines():
        source, seq, ack, length, window, syn, left, right, again, late, duplicate = line.split("|")
        sender = sender or source
        blocks = zip(left.split(","), right.split(","), strict=True) if left else ()
        yield Packet(
            from_sender=source == sender,
            seq=int(seq),
            ack=int(ack or 0),
            length=int(length),
            window=int(window),
            syn=syn in ("1", "True"),
            sacks=[(int(start), int(end)) for start, end in blocks],
            sent_again=bool(again or late),
            duplicate_ack=bool(duplicate),
        )


def by_the_definition(seen: list[Packet]) -> int:
    """Count duplicate ACKs as RFC 5681, section 2, defines them, those left out that report a duplicate."""
    count = greatest = newest = window = 0
    for packet in seen:
        if packet.from_sender:
            newest = max(newest, packet.seq + packet.length)
            continue
        same = packet.ack == greatest and packet.window == window and packet.length == 0
        if not packet.syn and same and newest > greatest and not packet.reports_a_duplicate:
            count += 1
        if packet.ack >= greatest:
            greatest, window = packet.ack, packet.window
    return count


def run(tmp_path: Path, changes: dict[str, Any]) -> tuple[dict[str, Any], list[Packet]]:
    """Run the scenario with a capture at the sender; return the record's metrics and the packets."""
    file = tmp_path / "capture.toml"
    file.write_text(SCENARIO)
    capture = tmp_path / "capture.pcapng"
    results = elephan.run(file, changes, store="none", pcap=capture)
    return results[0].metrics, read(capture)


@pytest.mark.parametrize("recovery", ["newreno", "sack", "rack"])
@pytest.mark.parametrize("cc", ["reno", "cubic", "storage_friendly"])
def test_tshark_counts_the_same_on_a_lossy_path(tmp_path: Path, cc: str, recovery: str) -> None:
    metrics, seen = run(tmp_path, {"flow.congestion_control": cc, "flow.recovery": recovery})
    assert metrics["retransmitted_segments"] > 0 and metrics["duplicate_acks"] > 100
    assert sum(packet.sent_again for packet in seen) == metrics["retransmitted_segments"]
    assert sum(packet.duplicate_ack for packet in seen) == metrics["duplicate_acks"]


@pytest.mark.parametrize("recovery", ["newreno", "sack", "rack"])
@pytest.mark.parametrize(
    "changes",
    [
        {"path.loss": 0.15, "path.reverse.loss": 0.1, "run.duration": "20s"},
        {"path.loss": 0.03, "flow.timestamps": False},
        {"path.queue": "20 packets", "flow.congestion_control": "cubic"},
        {"flow.window": "64KiB", "path.reverse.loss": 0.05},
    ],
    ids=["time-outs", "no-timestamps", "short-queue", "window-limited"],
)
def test_tshark_counts_the_same_in_hard_cases(tmp_path: Path, changes: dict[str, Any], recovery: str) -> None:
    metrics, seen = run(tmp_path, changes | {"flow.recovery": recovery})
    assert metrics["retransmitted_segments"] > 0
    assert sum(packet.sent_again for packet in seen) == metrics["retransmitted_segments"]
    # Unneeded retransmissions after a time-out are reported by DSACK: tshark counts those ACKs, see above.
    reports = sum(packet.duplicate_ack and packet.reports_a_duplicate for packet in seen)
    assert sum(packet.duplicate_ack for packet in seen) - reports == metrics["duplicate_acks"]
    assert by_the_definition(seen) == metrics["duplicate_acks"]


@pytest.mark.parametrize("recovery", ["newreno", "sack", "rack"])
def test_duplicate_acks_are_those_of_the_definition_where_packets_overtake(tmp_path: Path, recovery: str) -> None:
    jitter = {"path.jitter": {"scale": "8ms", "reordering": True}, "run.duration": "3s"}
    metrics, seen = run(tmp_path, jitter | {"flow.recovery": recovery})
    assert sum(packet.sent_again for packet in seen) == metrics["retransmitted_segments"]
    assert by_the_definition(seen) == metrics["duplicate_acks"]


def test_headers_are_whole(tmp_path: Path) -> None:
    """No checksum is wrong, nothing is malformed, and the options are those of a handshake (RFC 9293, 3.2)."""
    run(tmp_path, {"run.duration": "500ms"})
    command = ["tshark", "-r", str(tmp_path / "capture.pcapng"), "-o", "ip.check_checksum:TRUE"]
    bad = "_ws.malformed or ip.checksum.status == 0 or tcp.analysis.ack_lost_segment or tcp.analysis.lost_segment"
    done = subprocess.run([*command, "-Y", bad], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    wanted = "tcp.flags.syn == 1 and tcp.options.mss_val == 1460 and tcp.options.wscale and tcp.options.sack_perm"
    done = subprocess.run([*command, "-Y", wanted], capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) == 2

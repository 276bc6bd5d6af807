"""Runs of libudt over the emulated path, by elephan's own sender and receiver (elephan/backends/programs/udt.cc)."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from elephan.backends.programs import built
from elephan.errors import RunError
from elephan.path import shell
from elephan.path.report import Report

TOOLS = {"g++": "g++", "ip": "iproute2"}
"""Commands, and the Debian package of each; that libudt-dev is there, building says."""

INTERVAL_MS = 500
PORT = 5000

SCRIPT = """\
set -e
ip netns exec $ELEPHAN_PATH_FAR_NETNS "$0" receive $ELEPHAN_PATH_FAR {port} "$2" {interval} "$3" "$4" >"$1/received" &
receiver=$!
until grep -qs listening "$1/received"; do kill -0 $receiver; sleep 0.05; done
"$0" send $ELEPHAN_PATH_FAR {port} "$2" {interval} "$3" "$4" >"$1/sent"
wait
"""
"""$0 is the program, $1 the folder of its output, then seconds, window and MTU."""


@dataclass(frozen=True)
class Sent:
    """The sender's view at one time."""

    time_s: float
    period_us: float
    window_packets: int
    in_flight_packets: int
    rtt_s: float
    capacity_bps: float
    retransmitted: int


@dataclass(frozen=True)
class Live:
    """Result of a run."""

    received: list[tuple[float, int]]
    """Times, s since the connection, and bytes that the receiver had read by then."""
    sent: list[Sent]
    faults: list[str]
    """Reasons for which the emulator did not honour the path."""

    @property
    def goodput_bps(self) -> float:
        """Payload that was read, per second since the connection."""
        time_s, count = self.received[-1]
        return 8 * count / time_s


def run(scenario: str, seconds: int, window_bytes: int, mtu_bytes: int) -> Live:
    """Run libudt for some seconds over the path of a scenario's text. Raises `RunError`."""
    program = built.udt()
    with tempfile.TemporaryDirectory(prefix="elephan-udt-") as folder:
        file = Path(folder, "path.toml")
        file.write_text(scenario, encoding="utf-8")
        script = SCRIPT.format(port=PORT, interval=INTERVAL_MS)
        words = ["sh", "-c", script, program, folder, str(seconds), str(window_bytes), str(mtu_bytes)]
        code, report = shell.run(file, words)
        if code != 0:
            raise RunError(f"libudt's run ended with {code}")
        received, sent = (Path(folder, name).read_text(encoding="ascii") for name in ("received", "sent"))
    assert isinstance(report, Report), "elephan's own emulator carried it"
    return read(received, sent, [str(fault) for fault in report.faults()])


def read(received: str, sent: str, faults: list[str]) -> Live:
    """Return a run from the output of both ends. Raises `RunError`."""
    pairs = [line.split() for line in received.splitlines() if line != "listening"]
    if not pairs:
        raise RunError("libudt's receiver reported nothing")
    times = [(float(ms) / 1000, int(count)) for ms, count in pairs]
    return Live(times, [_sent(line.split()) for line in sent.splitlines()], faults)


def _sent(words: list[str]) -> Sent:
    ms, period_us, congestion, flow, in_flight, rtt_ms, capacity_mbps, _, retransmitted = words[:9]
    return Sent(
        float(ms) / 1000,
        float(period_us),
        min(int(congestion), int(flow)),
        int(in_flight),
        float(rtt_ms) / 1000,
        float(capacity_mbps) * 1e6,
        int(retransmitted),
    )

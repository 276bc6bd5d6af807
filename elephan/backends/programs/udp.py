"""Programs over UDP: a sender and a receiver on libudt, and SRT's srt-file-transmit.

srt-file-transmit and not srt-live-transmit: stored data goes as fast as the path takes it and arrives whole, which is
SRT's transtype=file; live mode sends at the rate of its source and drops what comes too late (SRT's API documentation,
"Transmission types").
"""

from __future__ import annotations

from elephan.backends.programs.ends import Apart, End, Place, to_receive, to_send
from elephan.run_spec.types import FlowSpec, ProgramWorkloadSpec
from elephan.scenario.program import SRT_MTU_MAX

UDP_HEADERS = 28
"""IPv4 and UDP: SRT and UDT count their windows in packets of the MTU without them."""

SRT_HEADER = 16
"""Of a data packet (draft-sharabayko-srt-01, 3.1)."""

WINDOW_LEAST = 32
"""Packets of the least flow window of both (UDT_FC, SRTO_FC)."""

SIZE_MAX = (1 << 31) - 1
"""Of a buffer, bytes: an int of C."""


def udt(flow: FlowSpec, workload: ProgramWorkloadSpec, near: Place, far: Place, port: int) -> tuple[End, End]:
    """Return receiver, at `far`, and sender, which ends when the receiver has written all."""
    received, sent = to_receive(workload, far), to_send(workload, near)
    transport = flow["transport"]
    given = [str(min(transport["window_bytes"], SIZE_MAX)), str(transport["mtu_bytes"]), str(sent.bytes)]
    server = (far.command("udt"), "receive-file", far.address, str(port), *given, received.paths[0])
    client = (near.command("udt"), "send-file", far.reached, str(port), *given, sent.paths[0])
    return End(server, (), received, Apart(received)), End(client, (), sent)


def srt(flow: FlowSpec, workload: ProgramWorkloadSpec, near: Place, far: Place, port: int) -> tuple[End, End]:
    """Return receiver, at `far`, and sender, which ends when the receiver's SRT has acknowledged all."""
    received, sent = to_receive(workload, far), to_send(workload, near)
    options = _srt_options(flow)
    # A chunk makes packets of its own: one that fills a packet.
    quiet = ("-q", f"-chunk:{_srt_mtu(flow) - UDP_HEADERS - SRT_HEADER}")
    server = (
        far.command("srt-file-transmit"),
        *quiet,
        f"srt://{far.address}:{port}?mode=listener&{options}",
        f"file://{received.paths[0]}",
    )
    client = (
        near.command("srt-file-transmit"),
        *quiet,
        f"file://{sent.paths[0]}",
        f"srt://{far.reached}:{port}?mode=caller&{options}",
    )
    return End(server, (), received, Apart(received)), End(client, (), sent)


def _srt_mtu(flow: FlowSpec) -> int:
    return min(flow["transport"]["mtu_bytes"], SRT_MTU_MAX)


def _srt_options(flow: FlowSpec) -> str:
    """Return the options of both ends: the window as libudt's have it, twice of it in the sender's buffer."""
    window, mtu = flow["transport"]["window_bytes"], _srt_mtu(flow)
    options = {
        "transtype": "file",
        "mss": mtu,
        "fc": max(window // (mtu - UDP_HEADERS), WINDOW_LEAST),
        "rcvbuf": min(window, SIZE_MAX),
        "sndbuf": min(2 * window, SIZE_MAX),
    }
    return "&".join(f"{name}={value}" for name, value in options.items())

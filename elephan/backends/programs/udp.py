"""Programs over UDP: a sender and a receiver on libudt, and SRT's srt-file-transmit.

srt-file-transmit and not srt-live-transmit: stored data goes as fast as the path takes it and arrives whole, which is
SRT's transtype=file; live mode sends at the rate of its source and drops what comes too late (SRT's API documentation,
"Transmission types").
"""

from __future__ import annotations

from elephan.backends.programs.ends import Apart, End, Place, bracketed, to_receive, to_send
from elephan.run_spec.route import IPV6_EXTRA_BYTES
from elephan.run_spec.types import FlowSpec, ProgramWorkloadSpec
from elephan.scenario.program import SRT_MTU_MAX

UDP_HEADERS = 28
"""IPv4 and UDP: SRT and UDT count their windows in packets of the MTU without them, over IPv6 too."""

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
    given = [str(min(transport["window_bytes"], SIZE_MAX)), str(_mss(transport["mtu_bytes"], far)), str(sent.bytes)]
    server = (far.command("udt"), "receive-file", far.address, str(port), *given, received.paths[0])
    client = (near.command("udt"), "send-file", far.reached, str(port), *given, sent.paths[0])
    return End(server, (), received, Apart(received)), End(client, (), sent)


def srt(flow: FlowSpec, workload: ProgramWorkloadSpec, near: Place, far: Place, port: int) -> tuple[End, End]:
    """Return receiver, at `far`, and sender, which ends when the receiver's SRT has acknowledged all."""
    received, sent = to_receive(workload, far), to_send(workload, near)
    options = _srt_options(flow, far)
    # A chunk makes packets of its own: one that fills a packet.
    quiet = ("-q", f"-chunk:{_srt_mss(flow, far) - UDP_HEADERS - SRT_HEADER}")
    server = (
        far.command("srt-file-transmit"),
        *quiet,
        f"srt://{bracketed(far.address)}:{port}?mode=listener&{options}",
        f"file://{received.paths[0]}",
    )
    client = (
        near.command("srt-file-transmit"),
        *quiet,
        f"file://{sent.paths[0]}",
        f"srt://{far.in_url}:{port}?mode=caller&{options}",
    )
    return End(server, (), received, Apart(received)), End(client, (), sent)


def _mss(mtu_bytes: int, far: Place) -> int:
    """Return UDT_MSS or SRTO_MSS, which count a header of IPv4, so that a packet to `far` has the MTU."""
    return mtu_bytes - (IPV6_EXTRA_BYTES if far.is_ipv6 else 0)


def _srt_mss(flow: FlowSpec, far: Place) -> int:
    return _mss(min(flow["transport"]["mtu_bytes"], SRT_MTU_MAX), far)


def _srt_options(flow: FlowSpec, far: Place) -> str:
    """Return the options of both ends: the window as libudt's have it, twice of it in the sender's buffer."""
    window, mss = flow["transport"]["window_bytes"], _srt_mss(flow, far)
    options = {
        "transtype": "file",
        "mss": mss,
        "fc": max(window // (mss - UDP_HEADERS), WINDOW_LEAST),
        "rcvbuf": min(window, SIZE_MAX),
        "sndbuf": min(2 * window, SIZE_MAX),
    }
    return "&".join(f"{name}={value}" for name, value in options.items())

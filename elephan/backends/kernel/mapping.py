"""Map each key of a transport to this machine's TCP: a sysctl, an attribute of the route, an option of the socket.

A key that it does not have is refused before anything is made, with the expected value, or noted in the record if it
changes next to nothing. docs/reference/kernel-settings.md has the table. Sources are Linux's ip-sysctl, ip-route(8),
tcp(7).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from elephan.backends.programs import installed
from elephan.kernel.socket_buffers import INT_MAX, buffer_for
from elephan.run_spec.route import header_bytes
from elephan.run_spec.types import TransportSpec
from elephan.scenario import receive_buffers
from elephan.scenario.flow import WINDOW_MAX

BUFFER_PER_WINDOW = 2
"""SO_RCVBUFFORCE for a window of one byte: the kernel doubles it, and counts its own memory against it, up to 2.5 B for
each byte of a packet of 1500 B."""

LARGEST_BUFFER = (INT_MAX - 1) // 2
"""Most that SO_RCVBUFFORCE and SO_SNDBUFFORCE take (net/core/sock.c)."""

QUICK_ACKS = 16
"""TCP_MAX_QUICKACKS of include/net/tcp.h."""

RTO_MAX_MS = (1_000, 120_000)
"""Range of TCP_RTO_MAX_MS (Linux 6.15)."""

RACK_NO_DUPTHRESH = 4
"""Of net.ipv4.tcp_recovery (Linux's ip-sysctl)."""

LARGEST_SHIFT = 14
"""Of a window scale (RFC 7323, 2.3)."""

SYSCTL = Path("/proc/sys/net/ipv4")


class Refused(ValueError):
    """The kernel cannot do what a key asks for. The text names the key, the reason, and the expected value."""


@dataclass(frozen=True)
class Machine:
    """The kernel's properties that decide which keys it can follow."""

    release: tuple[int, int]
    sysctls: frozenset[str]
    commands: frozenset[str] = frozenset()
    """Of programs that may be a flow's traffic, those that are installed."""

    @classmethod
    def here(cls) -> Machine:
        """Return this machine."""
        numbers = re.match(r"(\d+)\.(\d+)", os.uname().release)
        release = (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)
        return cls(release, frozenset(os.listdir(SYSCTL)) if SYSCTL.is_dir() else frozenset(), installed())

    @property
    def name(self) -> str:
        """Return how it is called in an error."""
        return f"Linux {self.release[0]}.{self.release[1]}"


@dataclass(frozen=True, order=True)
class Settings:
    """The part of a transport that holds for a whole namespace: flows that agree in it, at one node, share a host."""

    mtu_bytes: int
    sysctls: tuple[tuple[str, str], ...]
    route: str
    """Attributes of the route, as ip-route(8) writes them."""
    ssthresh: int | None
    """First slow start threshold, segments; see metrics.py."""
    cwnd_clamp: int | None
    """Most segments in flight; see metrics.py."""


def require_of(transport: TransportSpec, machine: Machine) -> None:
    """Check that a kernel can follow the keys of a transport. Raises `Refused`."""
    for check in _CHECKS:
        check(transport, machine)


def settings_of(transport: TransportSpec, machine: Machine) -> Settings:
    """Return the settings of a transport for the namespaces of both ends. Raises `Refused`."""
    require_of(transport, machine)
    return Settings(
        mtu_bytes=transport["mtu_bytes"],
        sysctls=tuple(sysctls_of(transport).items()),
        route=_route(transport),
        ssthresh=transport["initial_ssthresh"],
        cwnd_clamp=transport["cwnd_clamp"],
    )


def program_settings_of(transport: TransportSpec, machine: Machine) -> Settings:
    """Return the same for a program that makes the sockets: socket options become settings of the namespace.

    Raises `Refused`.
    """
    if transport.get("udt") is not None:
        # No key of TCP concerns it; its window is an option of its own (elephan/backends/programs/udp.py).
        return Settings(transport["mtu_bytes"], (), "", None, None)
    problem = pacing_problem(transport)
    if problem is not None:
        raise Refused(problem)
    settings, own = settings_of(transport, machine), socket_of(transport)
    sysctls = dict(settings.sysctls)
    if own["receive_buffer_bytes"] is not None:
        size = min(buffer_for(transport["window_bytes"], transport["mtu_bytes"], header_bytes(transport)), INT_MAX)
        sysctls["tcp_rmem"] = f"4096 {size} {size}"
    if own["send_buffer_bytes"] is not None:
        size = min(2 * own["send_buffer_bytes"], INT_MAX)
        sysctls["tcp_wmem"] = f"4096 {size} {size}"
    if own["rto_max_ms"] is not None:
        sysctls["tcp_rto_max_ms"] = str(own["rto_max_ms"])
    route = f"{settings.route} window {transport['window_bytes']}"
    return replace(settings, sysctls=tuple(sysctls.items()), route=route)


def pacing_problem(transport: TransportSpec) -> str | None:
    """Return the reason why a program's sockets are not paced as a transport says; None: it says nothing of it."""
    if not transport["pacing"] and "max_pacing_bps" not in transport:
        return None
    key = "pacing = true" if transport["pacing"] else "max_pacing_rate"
    return f"{key}: only an option of the socket does it, and a program's sockets are its own"


def waiting(settings: Settings) -> Settings:
    """Return the same with a RACK that waits for its reordering window whatever the number of duplicate ACKs.

    RACK_NO_DUPTHRESH (include/net/tcp.h) is read on every ACK, so that connections that run would take it, too; here it
    is set from the start, which a run without reordering or loss before its move cannot tell apart.
    """
    sysctls = dict(settings.sysctls)
    sysctls["tcp_recovery"] = str(int(sysctls["tcp_recovery"]) | RACK_NO_DUPTHRESH)
    return replace(settings, sysctls=tuple(sysctls.items()))


def socket_of(transport: TransportSpec) -> dict[str, Any]:
    """Return the settings of a transport for a flow's sockets, as crates/kernel/src/plan.rs has them."""
    window = transport["window_bytes"]
    send = transport["send_buffer_bytes"]
    rto_max_ms = transport["rto_max_ns"] // 1_000_000
    return {
        "window_clamp_bytes": window,
        # A buffer that is set switches autotuning off for the socket.
        "receive_buffer_bytes": None
        if transport["receive_autotuning"]
        else min(max(window * BUFFER_PER_WINDOW, 4096), LARGEST_BUFFER),
        # The kernel doubles it; of a full buffer about a fifth is its own memory (ss -tm).
        "send_buffer_bytes": None if send is None else min(max(send * 5 // 8, 1), LARGEST_BUFFER),
        "max_segment_bytes": None,
        "pacing": transport["pacing"],
        "max_pacing_bps": transport.get("max_pacing_bps"),
        "rto_max_ms": None if rto_max_ms == RTO_MAX_MS[1] else rto_max_ms,
    }


def notes_of(transport: TransportSpec) -> list[str]:
    """Return notes on keys that the kernel follows only approximately."""
    notes = []
    shift = transport["window_scale"]
    if shift is not None and shift != _shift_for(transport["window_bytes"]):
        notes.append(
            f"window_scale = {shift}: the kernel announces {_shift_for(transport['window_bytes'])}, the smallest that "
            "can "
            f"express the window; the steps of the advertised window are smaller, the window is the same"
        )
    if transport["send_buffer_bytes"] is not None:
        notes.append(
            "send_buffer: the kernel counts its own memory beside the payload, and lets a program write again when a "
            "third of the buffer is free: between half and all of it is payload"
        )
    return notes


def _shift_for(window: int) -> int:
    """Return the shift that tcp_select_initial_window (net/ipv4/tcp_output.c) chooses under a clamp."""
    return min(max(window.bit_length() - 1 - 15, 0), LARGEST_SHIFT)


def sysctls_of(transport: TransportSpec) -> dict[str, str]:
    """Return the namespace's sysctls under net.ipv4: all that a transport has a key for; none is the host's
    value."""

    def switch(on: bool) -> str:
        return "1" if on else "0"

    largest = INT_MAX
    if transport["receive_autotuning"]:
        # Limit of the buffer that autotuning may reach; the window itself ends at TCP_WINDOW_CLAMP.
        largest = min(2 * BUFFER_PER_WINDOW * transport["window_bytes"], INT_MAX)
    return {
        "tcp_sack": "0" if transport["recovery"] == "newreno" else "1",
        "tcp_recovery": "0" if transport["recovery"] == "sack" else "1",
        # Tail loss probes belong to RACK-TLP; without SACK the kernel sends none.
        "tcp_early_retrans": "3" if transport["recovery"] == "rack" else "0",
        # Segments out of order for which an ACK may be held back; 44 is Linux's own.
        "tcp_comp_sack_nr": "44" if transport["sack_compression"] else "0",
        "tcp_window_scaling": switch(transport["window_scaling"]),
        "tcp_timestamps": switch(transport["timestamps"]),
        "tcp_moderate_rcvbuf": switch(transport["receive_autotuning"]),
        "tcp_rmem": f"4096 {min(131_072, largest)} {largest}",
        "tcp_wmem": f"4096 16384 {INT_MAX}",
        "tcp_ecn": switch(transport["ecn"]),
        "tcp_frto": "2" if transport["frto"] else "0",
        "tcp_slow_start_after_idle": switch(transport["slow_start_after_idle"]),
        "tcp_max_reordering": str(transport["max_reordering"]),
        "tcp_reordering": str(transport["reordering"]),
        # A connection must not begin where the last one between the two hosts ended.
        "tcp_no_metrics_save": "1",
    }


def _route(transport: TransportSpec) -> str:
    words = [f"initcwnd {transport['initial_cwnd']}", f"rto_min {transport['rto_min_ns'] // 1_000_000}ms"]
    return " ".join(words + ([] if transport["delayed_ack"] else ["quickack 1"]))


def _protocol(transport: TransportSpec, _: Machine) -> None:
    udt = transport.get("udt")
    if udt is not None:
        raise Refused(
            f'transport = "{udt["version"]}": the kernel has no UDT; take --on sim, or on kernel program = "udt"'
        )


def _recovery(transport: TransportSpec, machine: Machine) -> None:
    if transport["recovery"] == "reno":
        raise Refused('recovery = "reno": no kernel of today has it: take "newreno" for recovery without SACK')
    lost = transport.get("lost_retransmissions", "era")
    if lost != "era":
        raise Refused(f'lost_retransmissions = "{lost}": the kernel has no switch for it: leave it out')
    if transport["recovery"] == "sack" and machine.release >= (6, 17):
        raise Refused(
            f'recovery = "sack": {machine.name} knows no RFC 6675 any more (removed in Linux 6.17), only RACK-TLP: '
            'take "rack", or "newreno" for recovery without SACK'
        )


def _receive_buffers(transport: TransportSpec, machine: Machine) -> None:
    if not transport["receive_autotuning"]:
        return
    wanted, here = receive_buffers.version_of(transport), receive_buffers.version_of_kernel(machine.release)
    if wanted != here:
        raise Refused(f'receive_buffers = "{wanted}": {machine.name} tunes as "{here}": take that')


def _quick_acks(transport: TransportSpec, _: Machine) -> None:
    if transport["delayed_ack"] and transport["quickack_segments"] != QUICK_ACKS:
        raise Refused(
            f"quickack_segments = {transport['quickack_segments']}: the kernel has {QUICK_ACKS} and no switch for it: "
            f"leave it out, or take delayed_ack = false for no delayed ACKs at all"
        )


def _switches(transport: TransportSpec, _: Machine) -> None:
    switches = {
        "cwnd_validation": transport.get("cwnd_validation", True),
        "limited_transmit": transport["limited_transmit"],
        "fast_retransmit": transport["fast_retransmit"],
        "undo": transport["undo"],
        # A specification without it is older than the key.
        "tso_autosizing": transport.get("tso_autosizing", True),
    }
    for key, on in switches.items():
        if not on:
            raise Refused(f"{key} = false: the kernel has no switch for it: leave it out")
    if transport.get("count", "segments") != "segments":
        raise Refused('count = "acks": the kernel counts segments: leave it out')
    if transport.get("nagle", False):
        raise Refused("nagle = true: elephan's own sockets have TCP_NODELAY: leave it out")
    if "send_overhead" in transport:
        raise Refused("send_overhead: a real sender takes the time that it takes; take --on sim, or leave it out")
    if transport["window_bytes"] > WINDOW_MAX:
        raise Refused(f"window = {transport['window_bytes']}B: no TCP but the simulator's has more than {WINDOW_MAX}B")


def _time_outs(transport: TransportSpec, machine: Machine) -> None:
    for key, time_ns in {"rto_min": transport["rto_min_ns"], "rto_max": transport["rto_max_ns"]}.items():
        if time_ns % 1_000_000:
            raise Refused(f"{key} = {time_ns}ns: the kernel takes whole milliseconds")
    longest_ms = transport["rto_max_ns"] // 1_000_000
    if longest_ms == RTO_MAX_MS[1]:
        return
    if not RTO_MAX_MS[0] <= longest_ms <= RTO_MAX_MS[1]:
        raise Refused(f"rto_max = {longest_ms}ms: the kernel takes 1s to 120s")
    if "tcp_rto_max_ms" not in machine.sysctls:
        raise Refused(f"rto_max = {longest_ms}ms: {machine.name} has no TCP_RTO_MAX_MS (Linux 6.15): leave it at 120s")


_CHECKS: tuple[Callable[[TransportSpec, Machine], None], ...] = (
    _protocol,
    _recovery,
    _receive_buffers,
    _quick_acks,
    _switches,
    _time_outs,
)

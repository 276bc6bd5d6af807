"""First slow start threshold and bound of the congestion window, which no socket option and no sysctl sets.

The kernel takes both from its table of metrics per pair of addresses (ip-tcp_metrics(8)), and of a route's attributes
only what was in force when the pair entered the table; no command writes there. So, before anything is carried, a
connection of the host with itself under its peer's address, over a local route with both attributes locked, makes the
entry; afterwards tcp_no_metrics_save keeps it as it is. What else that connection leaves, an RTT of some microseconds,
is below every path's and is not used (tcp_init_metrics in net/ipv4/tcp_metrics.c).
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from pathlib import Path

from elephan.errors import RunError
from elephan.network_namespace import within
from elephan.path.testbed import NAMESPACES, ip

SYSCTL = Path("/proc/sys/net/ipv4")

#: Saved are metrics; read is the threshold.
SAVING = {"tcp_no_metrics_save": "0", "tcp_no_ssthresh_metrics_save": "0"}

IPV6_FREEBIND = 78
"""Of linux/in6.h; the module socket does not have it."""

PATIENCE_S = 5.0
"""Of a connection over loopback, s."""


def enter(namespace: str, pairs: Iterable[tuple[str, str]], ssthresh: int | None, cwnd_clamp: int | None) -> None:
    """Make the entries of a host for pairs of its own address, on a device already, and a peer's. Raises `RunError`."""
    given = (("ssthresh", ssthresh), ("cwnd", cwnd_clamp))
    words = " ".join(f"{name} lock {value}" for name, value in given if value is not None)
    pairs = list(pairs)
    if not words or not pairs:
        return
    ip("-n", namespace, lines=[f"route add local {peer} dev lo table local src {own} {words}" for own, peer in pairs])
    try:
        within(NAMESPACES / namespace, lambda: _connect(pairs))
    except OSError as error:
        raise RunError(f"initial_ssthresh and cwnd_clamp cannot be set: {error}") from error
    finally:
        ip("-n", namespace, lines=[f"route delete local {peer} dev lo table local" for _, peer in pairs])
    entered = ip("-n", namespace, "tcp_metrics", "show")
    entry = r"^{} .*source {}$"
    lost = [
        peer for own, peer in pairs if not re.search(entry.format(re.escape(peer), re.escape(own)), entered, re.M)
    ]
    if lost:
        names = ", ".join(lost)
        raise RunError(f"initial_ssthresh and cwnd_clamp cannot be set: the kernel kept no metrics of {names}")


def _connect(pairs: list[tuple[str, str]]) -> None:
    before = {name: (SYSCTL / name).read_text() for name in SAVING if (SYSCTL / name).exists()}
    for name in before:
        (SYSCTL / name).write_text(SAVING[name])
    try:
        for own, peer in pairs:
            family = socket.AF_INET6 if ":" in peer else socket.AF_INET
            with socket.socket(family) as listener, socket.socket(family) as near:
                for end in (listener, near):
                    end.settimeout(PATIENCE_S)
                if family == socket.AF_INET6:
                    # IPv6 asks for an address of a device, where IPv4 asks for a local route.
                    listener.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)
                listener.bind((peer, 0))
                listener.listen()
                near.bind((own, 0))
                near.connect(listener.getsockname())
                far, _ = listener.accept()
                with far:
                    # An entry is made when a connection ends that has measured a round trip.
                    far.settimeout(PATIENCE_S)
                    near.sendall(b"x")
                    far.recv(1)
                    far.sendall(b"x")
                    near.recv(1)
    finally:
        (SYSCTL / "tcp_no_metrics_save").write_text(before["tcp_no_metrics_save"])

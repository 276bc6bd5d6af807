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

PATIENCE_S = 5.0
"""Of a connection over loopback, s."""


def enter(namespace: str, own: str, peers: Iterable[str], ssthresh: int | None, cwnd_clamp: int | None) -> None:
    """Make the entries of a host for its `peers`; its own address is on a device already. Raises `RunError`."""
    given = (("ssthresh", ssthresh), ("cwnd", cwnd_clamp))
    words = " ".join(f"{name} lock {value}" for name, value in given if value is not None)
    peers = list(peers)
    if not words or not peers:
        return
    ip("-n", namespace, lines=[f"route add local {peer} dev lo table local src {own} {words}" for peer in peers])
    try:
        within(NAMESPACES / namespace, lambda: _connect(own, peers))
    except OSError as error:
        raise RunError(f"initial_ssthresh and cwnd_clamp cannot be set: {error}") from error
    finally:
        ip("-n", namespace, lines=[f"route delete local {peer} dev lo table local" for peer in peers])
    entered = ip("-n", namespace, "tcp_metrics", "show")
    lost = [peer for peer in peers if not re.search(rf"^{re.escape(peer)} .*source {re.escape(own)}$", entered, re.M)]
    if lost:
        names = ", ".join(lost)
        raise RunError(f"initial_ssthresh and cwnd_clamp cannot be set: the kernel kept no metrics of {names}")


def _connect(own: str, peers: list[str]) -> None:
    before = {name: (SYSCTL / name).read_text() for name in SAVING if (SYSCTL / name).exists()}
    for name in before:
        (SYSCTL / name).write_text(SAVING[name])
    try:
        for peer in peers:
            with socket.socket() as listener, socket.socket() as near:
                for end in (listener, near):
                    end.settimeout(PATIENCE_S)
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

"""Receive buffers that Linux tunes: the window that its own limit allows, by version, and the note that says which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from elephan import units
from elephan.run_spec.types import FlowSpec, ReceiveBuffersSpec, TransportSpec

NEWEST: Final[ReceiveBuffersSpec] = "linux-6.16"
"""The version that a specification without the key has."""

_TCP_RMEM: Final[dict[ReceiveBuffersSpec, int]] = {"linux-6.16": 33_554_432, "linux-6.15": 6_291_456}
"""Largest value of net.ipv4.tcp_rmem, bytes (Documentation/networking/ip-sysctl.rst)."""

_SAYS: Final[dict[ReceiveBuffersSpec, str]] = {
    "linux-6.16": "Linux 6.16 and later",
    "linux-6.15": "Linux 6.15 and earlier",
}


def version_of(transport: TransportSpec) -> ReceiveBuffersSpec:
    """Return the version of a transport."""
    return transport.get("receive_buffers", NEWEST)


def version_of_kernel(release: tuple[int, ...]) -> ReceiveBuffersSpec:
    """Return the version of a Linux release, such as (6, 18)."""
    return "linux-6.16" if release >= (6, 16) else "linux-6.15"


def largest_window(version: ReceiveBuffersSpec) -> int:
    """Return the window that the default tcp_rmem allows, bytes.

    Of a packet of 1500 B, which takes 2304 B of memory, 160 / 256 are window (tcp_win_from_space since Linux 6.6). On
    Linux 6.18 a connection with the default offered 20,970,496 B (2026-11-30).
    """
    return _TCP_RMEM[version] * 160 // 256


def notes_of(flows: Sequence[FlowSpec]) -> list[str]:
    """Return a note on each Linux whose autotuning some flows have."""
    notes: dict[str, None] = {}
    for flow in flows:
        transport = flow["transport"]
        if transport["receive_autotuning"] and transport.get("udt") is None:
            version = version_of(transport)
            largest = units.size(transport["window_bytes"])
            notes[
                f'receive_buffers = "{version}": windows grow as in {_SAYS[version]}, up to {largest}; '
                f"its default tcp_rmem allows {units.size(largest_window(version))}"
            ] = None
    return list(notes)

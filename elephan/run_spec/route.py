"""Links of a flow's route in a specification: their policers, the rate that passes, the round trip."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

PACKET_OVERHEAD_BYTES = 52
"""Headers of IPv4 and TCP, and the padded option of time stamps (RFC 791, 9293, 7323)."""

IPV6_EXTRA_BYTES = 20
"""Bytes that a header of IPv6 is longer than one of IPv4 (RFC 8200, 3)."""

IPV6_MTU_LEAST = 1280
"""MTU that every link has which carries IPv6, bytes (RFC 8200, 5)."""

TCP_IP_BYTES, TIMESTAMP_BYTES, UDT_BYTES = 40, 12, 44
"""IPv4 and TCP; the padded option of time stamps; IPv4, UDP and UDT."""


def header_bytes(transport: Mapping[str, Any]) -> int:
    """Return the bytes of the headers of a full packet of a flow."""
    if transport.get("udt") is not None:
        own = UDT_BYTES
    else:
        own = TCP_IP_BYTES + (TIMESTAMP_BYTES if transport["timestamps"] else 0)
    return own + (IPV6_EXTRA_BYTES if transport.get("ipv6") else 0)


def policers_of(spec: Mapping[str, Any], route: Iterable[int]) -> list[Mapping[str, Any]]:
    """Return the policers on a route, in order."""
    return [policer for hop in route if (policer := spec["links"][hop].get("policer")) is not None]


def passing_bps(spec: Mapping[str, Any], route: Iterable[int]) -> int:
    """Return the least rate of a route's links and policers, bit/s."""
    route = list(route)
    links = [spec["links"][hop] for hop in route]
    return min(int(passed["rate_bps"]) for passed in (*links, *policers_of(spec, route)))


def round_trip_ns(spec: Mapping[str, Any], flow: Mapping[str, Any]) -> int:
    """Return the propagation delay of a flow's route there and back, ns."""
    return sum(int(spec["links"][hop]["delay_ns"]) for hop in (*flow["route"], *flow["return_route"]))

"""Interfaces that a line test must not take: those that something else uses. Each reason is one line.

A test sends at up to the full rate of the line, from an address of its own. On an interface that carries a route or an
address it would drown whatever the machine does there, the user's own session included.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from elephan.errors import InputError

PEER_KINDS = ("veth", "netkit", "vxcan")
"""Kinds of interface whose "link" is their peer; any other's is the one below it."""
TUNNEL_KINDS = ("vxlan", "geneve", "gretap", "ip6gretap", "erspan", "ip6erspan", "bareudp", "l2tp_eth")
"""Kinds of interface whose frames leave by the machine's routes."""
HALF = 1
"""Prefix length up to which a route is a default route: VPNs set two halves in place of it."""

Ip = Callable[[Sequence[str]], list[dict[str, Any]]]
"""Gives the objects that `ip -j` prints for some arguments."""


def ip_json(arguments: Sequence[str]) -> list[dict[str, Any]]:
    """Return what `ip -j` prints (iproute2). Raises `InputError` where it cannot run or fails."""
    try:
        done = subprocess.run(["ip", "-j", *arguments], capture_output=True, text=True, check=False)
    except OSError as error:
        problem = f"ip (iproute2) is needed to see whether an interface is in use: {error.strerror}"
        raise InputError(f"{problem}; --force goes on without it") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["it failed"]
        raise InputError(f"ip {' '.join(arguments)}: {lines[-1]}")
    # It prints nothing for an empty list in some versions.
    found: list[dict[str, Any]] = json.loads(done.stdout or "[]")
    # Objects of other interfaces are left empty by older versions.
    return [one for one in found if one]


def check(interface: str, force: bool, ip: Ip = ip_json) -> str | None:
    """Return the interface's own MAC address; None where `force` and nothing is known of it.

    Raises `InputError` for an interface that is not there, is no Ethernet, or, without `force`, that is in use, down or
    without carrier.
    """
    try:
        links = {link["ifname"]: link for link in ip(["-d", "addr", "show"])}
        routes = (
            []
            if force
            else [*ip(["-4", "route", "show", "table", "all"]), *ip(["-6", "route", "show", "table", "all"])]
        )
    except InputError:
        if force:
            return None
        raise
    link = links.get(interface)
    if link is None:
        known = ", ".join(name for name, other in links.items() if other.get("link_type") == "ether")
        raise InputError(f"{interface}: no such interface; there {'are' if ',' in known else 'is'} {known or 'none'}")
    if link.get("link_type") != "ether":
        raise InputError(f"{interface}: a line test needs an Ethernet interface, and this is {link.get('link_type')}")
    if not force:
        reason = in_use(interface, links, routes)
        if reason is not None:
            raise InputError(f"{interface} {reason}; --force tests it all the same")
    return str(link["address"]) if "address" in link else None


def in_use(interface: str, links: Mapping[str, Mapping[str, Any]], routes: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the reason why an interface should not be tested; None: there is none.

    `links` are the objects of `ip -j -d addr show` by name, `routes` those of `ip -j route show table all`.
    """
    reason = _used_by(interface, links, routes, ())
    if reason is not None:
        return reason
    # Frames of an interface such as a VLAN's leave the one below it, and drown whatever that carries.
    above = [interface]
    below = _below(links[interface])
    while below is not None and below in links and below not in above:
        reason = _used_by(below, links, routes, above)
        if reason is not None:
            return f"is on {below}, which {reason}"
        above.append(below)
        below = _below(links[below])
    flags = links[interface].get("flags", ())
    if "UP" not in flags:
        return f"is down: ip link set {interface} up"
    if "LOWER_UP" not in flags or "NO-CARRIER" in flags:
        return "has no carrier: the cable is out, or the other end is down"
    return None


def _kind(link: Mapping[str, Any]) -> str:
    return str(link.get("linkinfo", {}).get("info_kind", ""))


def _below(link: Mapping[str, Any]) -> str | None:
    """Return the name of the interface below; None: there is none, or it is in another namespace."""
    if _kind(link) in PEER_KINDS or "link_netnsid" in link:
        return None
    below = link.get("link")
    return None if below is None else str(below)


def _used_by(
    interface: str, links: Mapping[str, Mapping[str, Any]], routes: Sequence[Mapping[str, Any]], known: Sequence[str]
) -> str | None:
    """Return what uses an interface, but for the `known` ones above it."""
    link = links[interface]
    own = [
        route
        for route in routes
        if interface in (route.get("dev"), *(hop.get("dev") for hop in route.get("nexthops", ())))
    ]
    for route in own:
        if is_default(str(route.get("dst", ""))):
            return f"carries the default route{_of_table(route)}: this machine reaches others over it"
    addresses = [
        f"{address['local']}/{address['prefixlen']}"
        for address in link.get("addr_info", ())
        # Linux gives every interface that is up an IPv6 address of its own.
        if not (address.get("family") == "inet6" and address.get("scope") == "link")
    ]
    if addresses:
        return f"has the address {addresses[0]}: something here uses it"
    for route in own:
        if not is_of_every_interface(str(route.get("dst", ""))):
            return f"carries the route to {route.get('dst')}{_of_table(route)}: this machine reaches others over it"
    if _kind(link) in TUNNEL_KINDS:
        return f"is a tunnel ({_kind(link)}): its frames leave by the routes of this machine"
    if "master" in link:
        kind = link.get("linkinfo", {}).get("info_slave_kind", "another interface")
        return f"is a port of {link['master']} ({kind})"
    for name, other in links.items():
        if name not in known and _below(other) == interface and "UP" in other.get("flags", ()):
            return f"carries {name}, which is up"
    return None


def is_of_every_interface(destination: str) -> bool:
    """Return True for a route that Linux gives each interface: to link-local addresses, or to groups."""
    try:
        network = ipaddress.ip_network(destination, strict=False)
    except ValueError:
        return False
    return network.is_link_local or network.is_multicast


def is_default(destination: str) -> bool:
    """Return True for a route to everywhere, or to half of it."""
    if destination == "default":
        return True
    address, slash, length = destination.partition("/")
    return bool(slash) and length.isdecimal() and int(length) <= HALF and address != ""


def _of_table(route: Mapping[str, Any]) -> str:
    table = route.get("table")
    return f" of table {table}" if table not in (None, "main", "254") else ""


def own_address(hardware: str | None, role: str) -> str:
    """Return the MAC address from which tests at an interface send: locally administered, the same each time.

    Derived from the hardware's, so that two ends differ, and from the role, so that an interface can send and receive
    at once (IEEE 802, 8.2: the second bit of the first byte). Random where the hardware's is not known.
    """
    known = hardware or os.urandom(16).hex()
    digest = hashlib.sha256(f"elephan line {role} {known}".encode()).digest()
    return ":".join(["02", *(f"{byte:02x}" for byte in digest[:5])])


def parse_address(option: str, text: str) -> str:
    """Return a MAC address in its one form. Raises `InputError`."""
    parts = text.lower().replace("-", ":").split(":")
    if len(parts) != 6 or not all(len(part) == 2 and set(part) <= set("0123456789abcdef") for part in parts):
        raise InputError(f"{option} {text}: a MAC address is needed, such as 02:11:22:33:44:55")
    if int(parts[0], 16) & 1:
        raise InputError(f"{option} {text}: an address of one station is needed, not of a group")
    return ":".join(parts)


def parse_own_address(option: str, text: str) -> str:
    """Return an address of one's own: locally administered. Raises `InputError`."""
    address = parse_address(option, text)
    if not int(address[:2], 16) & 2:
        expected = "a locally administered address is needed: its second digit is 2, 6, a or e"
        raise InputError(f"{option} {text}: {expected}")
    return address

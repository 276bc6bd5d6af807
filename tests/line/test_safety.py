"""Interfaces that a test must not take, by what `ip -j` says of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from elephan.errors import InputError
from elephan.line import safety

FREE: dict[str, Any] = {
    "ifname": "eth1",
    "link_type": "ether",
    "address": "52:54:00:12:34:56",
    "flags": ["BROADCAST", "MULTICAST", "UP", "LOWER_UP"],
    "addr_info": [{"family": "inet6", "local": "fe80::1", "prefixlen": 64, "scope": "link"}],
}


def machine(
    link: dict[str, Any], routes: Sequence[dict[str, Any]] = (), others: Sequence[dict[str, Any]] = ()
) -> safety.Ip:
    """Return an `ip -j` of a machine with one interface in question, and others."""

    def ip(arguments: Sequence[str]) -> list[dict[str, Any]]:
        if "addr" in arguments:
            return [link, *others]
        family = 6 if "-6" in arguments else 4
        return [route for route in routes if (":" in str(route.get("gateway", ""))) == (family == 6)]

    return ip


def test_an_interface_that_nothing_uses_may_be_tested() -> None:
    assert safety.check("eth1", False, machine(FREE)) == "52:54:00:12:34:56"
    # The default route goes over another; routes to link-local addresses and groups are of every interface.
    own = [{"dst": "fe80::/64", "dev": "eth1"}, {"dst": "ff00::/8", "dev": "eth1", "table": "local"}]
    routes = [{"dst": "default", "dev": "eth0"}, {"dst": "10.0.0.0/8", "dev": "eth0"}, *own]
    assert safety.check("eth1", False, machine(FREE, routes))
    # The peer of a veth has it as its link, and is nothing above it.
    peer = {**FREE, "ifname": "eth2", "link": "eth1", "linkinfo": {"info_kind": "veth"}}
    assert safety.check("eth1", False, machine(FREE, others=[peer]))


UPPER = {**FREE, "ifname": "eth1.100", "link": "eth1", "linkinfo": {"info_kind": "vlan"}}

CASES: list[tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]], str]] = [
    (FREE, [{"dst": "default", "dev": "eth1", "gateway": "192.0.2.1"}], [], "eth1 carries the default route: "),
    (FREE, [{"dst": "default", "dev": "eth1", "gateway": "fe80::9"}], [], "eth1 carries the default route: "),
    (FREE, [{"dst": "default", "dev": "eth1", "table": "100"}], [], "the default route of table 100"),
    (FREE, [{"dst": "default", "nexthops": [{"dev": "eth0"}, {"dev": "eth1"}]}], [], "carries the default route"),
    (FREE, [{"dst": "0.0.0.0/1", "dev": "eth1"}], [], "carries the default route"),
    (
        {**FREE, "addr_info": [{"family": "inet", "local": "10.0.0.1", "prefixlen": 24, "scope": "global"}]},
        [],
        [],
        "eth1 has the address 10.0.0.1/24: something here uses it",
    ),
    (
        {**FREE, "master": "br0", "linkinfo": {"info_slave_kind": "bridge"}},
        [],
        [],
        r"eth1 is a port of br0 \(bridge\)",
    ),
    ({**FREE, "master": "bond0", "linkinfo": {"info_slave_kind": "bond"}}, [], [], r"is a port of bond0 \(bond\)"),
    (FREE, [], [UPPER], "eth1 carries eth1.100, which is up"),
    ({**FREE, "flags": ["BROADCAST"]}, [], [], "eth1 is down: ip link set eth1 up"),
    ({**FREE, "flags": ["UP", "NO-CARRIER"]}, [], [], "eth1 has no carrier"),
]


@pytest.mark.parametrize(("link", "routes", "others", "expected"), CASES)
def test_an_interface_in_use_is_refused_in_one_line_and_tested_by_force(
    link: dict[str, Any], routes: list[dict[str, Any]], others: list[dict[str, Any]], expected: str
) -> None:
    with pytest.raises(InputError, match=expected) as refused:
        safety.check("eth1", False, machine(link, routes, others))
    assert "--force" in str(refused.value) and "\n" not in str(refused.value)
    assert safety.check("eth1", True, machine(link, routes, others)) == FREE["address"]


def test_force_does_not_make_an_ethernet_of_anything_else() -> None:
    loopback = {**FREE, "ifname": "lo", "link_type": "loopback"}
    with pytest.raises(InputError, match="lo: a line test needs an Ethernet interface, and this is loopback"):
        safety.check("lo", True, machine(FREE, others=[loopback]))
    with pytest.raises(InputError, match="eth7: no such interface; there is eth1"):
        safety.check("eth7", True, machine(FREE))


def test_without_iproute2_nothing_is_tested_but_by_force(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InputError, match=r"ip \(iproute2\) is needed .* --force goes on without it"):
        safety.check("eth1", False)
    assert safety.check("eth1", True) is None


def test_this_machines_loopback_is_no_ethernet() -> None:
    with pytest.raises(InputError, match="a line test needs an Ethernet interface"):
        safety.check("lo", False)


def test_an_address_of_ones_own_is_local_and_stays() -> None:
    first, second = (safety.own_address(f"52:54:00:00:00:0{end}", "send") for end in (1, 2))
    assert first != second and first == safety.own_address("52:54:00:00:00:01", "send")
    # An interface may send and receive at once; one of which nothing is known has no address of another machine's.
    assert first != safety.own_address("52:54:00:00:00:01", "receive")
    assert safety.own_address(None, "send") != safety.own_address(None, "send")
    assert int(first[:2], 16) & 3 == 2 and safety.parse_own_address("--address", first) == first
    assert safety.parse_address("--to", "02-AA-BB-CC-DD-EE") == "02:aa:bb:cc:dd:ee"
    for text, expected in (
        ("02:00", "--to 02:00: a MAC address is needed"),
        ("01:00:5e:00:00:01", "not of a group"),
        ("gg:00:00:00:00:01", "a MAC address is needed"),
    ):
        with pytest.raises(InputError, match=expected):
            safety.parse_address("--to", text)
    with pytest.raises(InputError, match="--address 50:54:00:00:00:01: a locally administered address"):
        safety.parse_own_address("--address", "50:54:00:00:00:01")


def on(name: str, below: str, kind: str, **more: object) -> dict[str, Any]:
    return {**FREE, "ifname": name, "link": below, "linkinfo": {"info_kind": kind}, **more}


ADDRESS = {"family": "inet", "local": "10.0.0.1", "prefixlen": 24, "scope": "global"}


@pytest.mark.parametrize("kind", ["macvlan", "vlan", "macsec", "ipvlan"])
def test_an_interface_on_one_in_use_is_in_use(kind: str) -> None:
    eth0, default = {**FREE, "ifname": "eth0"}, [{"dst": "default", "dev": "eth0"}]
    up = on("up0", "eth0", kind)
    assert safety.check("up0", False, machine(up, others=[eth0]))
    with pytest.raises(InputError, match="up0 is on eth0, which carries the default route"):
        safety.check("up0", False, machine(up, default, others=[eth0]))
    used = {**eth0, "addr_info": [ADDRESS]}
    with pytest.raises(InputError, match=r"up0 is on eth0, which has the address 10\.0\.0\.1/24"):
        safety.check("up0", False, machine(up, others=[used]))
    # Two below.
    top = on("top0", "up0", "vlan")
    with pytest.raises(InputError, match="top0 is on eth0, which has the address"):
        safety.check("top0", False, machine(top, others=[up, used]))
    # Its neighbour on the same interface.
    with pytest.raises(InputError, match="up0 is on eth0, which carries next0, which is up"):
        safety.check("up0", False, machine(up, others=[eth0, on("next0", "eth0", "vlan")]))
    # The one below is in another namespace, where an interface of the same name is not it.
    assert safety.check("up0", False, machine({**up, "link_netnsid": 0}, default, others=[eth0]))


@pytest.mark.parametrize("kind", ["macsec", "vxlan", "ipvlan", "hsr"])
def test_any_interface_above_is_a_user(kind: str) -> None:
    with pytest.raises(InputError, match="eth1 carries up0, which is up"):
        safety.check("eth1", False, machine(FREE, others=[on("up0", "eth1", kind)]))


def test_a_tunnel_leaves_by_the_routes() -> None:
    with pytest.raises(InputError, match=r"vx0 is a tunnel \(vxlan\): its frames leave by the routes of this machine"):
        safety.check("vx0", False, machine({**FREE, "ifname": "vx0", "linkinfo": {"info_kind": "vxlan"}}))


@pytest.mark.parametrize("destination", ["10.0.0.0/8", "192.0.2.7", "fd00::/8"])
def test_a_route_without_an_address_is_a_use(destination: str) -> None:
    with pytest.raises(InputError, match=f"eth1 carries the route to {destination}"):
        safety.check("eth1", False, machine(FREE, [{"dst": destination, "dev": "eth1"}]))

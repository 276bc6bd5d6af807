"""Interfaces that a test must not take, as the running kernel and iproute2 describe them. Needs root."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from elephan.errors import InputError
from elephan.line import safety
from elephan.network_namespace import within
from elephan.path import testbed

PROBLEM = testbed.missing()
pytestmark = [
    pytest.mark.skipif(PROBLEM is not None, reason=f"the path {PROBLEM}"),
    pytest.mark.looks_at_kernel,
]


@pytest.fixture
def namespace() -> Iterator[str]:
    """Make a namespace with two ends of a veth, va and vb."""
    name = f"line-{secrets.token_hex(3)}"
    testbed.ip("netns", "add", name)
    try:
        testbed.ip("-n", name, "link", "add", "va", "type", "veth", "peer", "name", "vb")
        yield name
    finally:
        testbed.ip("netns", "delete", name)


def why(namespace: str, interface: str = "va", force: bool = False) -> str:
    """Return the reason for which an interface is refused; empty: it may be tested."""

    def ask() -> str:
        try:
            safety.check(interface, force)
        except InputError as error:
            return str(error)
        return ""

    return within(Path("/run/netns") / namespace, ask)


def test_what_uses_an_interface_is_seen(namespace: str) -> None:
    def ip(*arguments: str) -> None:
        testbed.ip("-n", namespace, *arguments)

    assert why(namespace).startswith("va is down: ip link set va up")
    ip("link", "set", "va", "up")
    assert why(namespace).startswith("va has no carrier")
    ip("link", "set", "vb", "up")
    # Its own link-local address is no address in use, and its peer is nothing above it.
    assert why(namespace) == ""
    ip("addr", "add", "10.9.0.1/24", "dev", "va")
    assert why(namespace).startswith("va has the address 10.9.0.1/24")
    for family, route in (("-4", "10.9.0.2"), ("-6", "fe80::2")):
        ip(family, "route", "add", "default", "via", route, "dev", "va", "table", "77")
        assert why(namespace).startswith("va carries the default route of table 77")
        ip(family, "route", "delete", "default", "table", "77")
    ip("addr", "flush", "dev", "va")
    assert why(namespace) == ""
    ip("addr", "add", "fd00::1/64", "dev", "va", "nodad")
    assert why(namespace).startswith("va has the address fd00::1/64")
    assert why(namespace, force=True) == ""
    ip("addr", "flush", "dev", "va", "scope", "global")
    ip("link", "add", "br0", "type", "bridge")
    ip("link", "set", "va", "master", "br0")
    assert why(namespace).startswith("va is a port of br0 (bridge)")


def test_an_interface_of_another_namespace_is_not_there(namespace: str) -> None:
    assert "no such interface; there are va, vb" in why(namespace, "eth7").replace("vb, va", "va, vb")

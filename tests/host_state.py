"""The state of this machine's network that a test must leave as it was."""

from __future__ import annotations

from elephan.path import testbed


def network() -> tuple[str, ...]:
    """Return routes, links and addresses, as ip(8) shows them without numbers of links.

    Other tests that change them run at another time: those in the folders of the kernel, and those that are marked
    (tests/conftest.py).
    """
    return testbed.ip("route", "show", "table", "all"), testbed.ip("-br", "link"), testbed.ip("-br", "address")

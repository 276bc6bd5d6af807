"""The state of this machine's network that a test must leave as it was."""

from __future__ import annotations

import re

from elephan.path import testbed

OTHERS = re.compile(r"\beh[0-9a-f]+\b")
"""Devices to the hosts of tests/hosts, which tests of other folders make and remove meanwhile."""


def network() -> tuple[str, ...]:
    """Return routes, links and addresses, as ip(8) shows them, without those of others and without numbers of links."""
    shown = (testbed.ip("route", "show", "table", "all"), testbed.ip("-br", "link"), testbed.ip("-br", "address"))
    return tuple("".join(line for line in text.splitlines(keepends=True) if not OTHERS.search(line)) for text in shown)

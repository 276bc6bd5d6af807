"""One path test of the monitor: its outcome by the core, or by iperf3 for throughput."""

from __future__ import annotations

from typing import Any

from elephan.core import native
from elephan.errors import InputError
from elephan.measure import test as path_test
from elephan.measure import throughput
from elephan.measure.target import Target

STAMP_PACKETS = 20
"""Packets of `stamp` by hand, 100 ms apart."""
THROUGHPUT_NS = 10 * 10**9
"""Time for which `throughput` sends unless the file says otherwise, ns."""
OF_TRAINS = ("capacity", "available", "queue", "policer", "loss", "hops")
"""Tests that are told the line's rate and the share of it that they may take."""
OF_CAPACITY = ("available", "queue", "policer", "loss")
"""Of these, those that measure the capacity first unless it is known."""


def measure(asked: dict[str, Any]) -> dict[str, Any]:
    """Run the test `asked["test"]` towards `asked["towards"]`; return its outcome.

    Raises `InputError` for a test that this build does not have, `RunError` when it cannot be run.
    """
    test, towards = asked["test"], str(asked["towards"])
    if test == "throughput":
        seconds = (asked.get("duration_ns") or THROUGHPUT_NS) / 1e9
        # At an iperf3 server on its own port, beside the reflector.
        host = towards.rpartition(":")[0].strip("[]")
        return throughput.run(throughput.Transfer(host, max_bytes=None, max_seconds=seconds), lambda _: False)
    known = native.path_test_names()
    if test not in known:
        raise InputError(f'test "{test}": this build has none; it has {", ".join([*known, "throughput"])}')
    keys: dict[str, Any] = {}
    if test == "stamp":
        keys = {"count": STAMP_PACKETS}
    elif test in OF_TRAINS:
        keys = {"line_rate_bps": asked["line_bps"], "share_ppm": asked["budget_e6"]}
        if test in OF_CAPACITY and asked.get("capacity_bps"):
            keys["capacity_bps"] = asked["capacity_bps"]
    key = bytes.fromhex(asked["key"]) if asked.get("key") else None
    return path_test.run(test, Target(towards, key), keys, lambda _: False)

"""`elephan path shell`: a path for as long as one program runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from elephan.core import native
from elephan.errors import InputError, RunError
from elephan.path import report, site
from elephan.record import canonical_json
from elephan.scenario import load

END_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def run(file: Path, command: Sequence[str], overrides: Sequence[str] = ()) -> tuple[int, report.Report]:
    """Bring the path of a scenario up, run `command` at its sender (a shell without one), take the path down.

    Returns the command's exit code (128 + n when signal n ended it) and what the path did. Raises `InputError` when
    the scenario is not one for this or the machine lacks something.
    """
    problem = site.missing()
    if problem is not None:
        raise InputError(f"elephan path {problem}")
    spec = _spec_of(file, overrides)
    words = list(command) or [os.environ.get("SHELL", "/bin/sh")]
    with _signals() as passed_to:
        place = site.Site()
        emulator = None
        try:
            place.make()
            plan = _plan(spec, place)
            try:
                emulator = native().Emulator(canonical_json(plan["hosts"]))
                place.configure(plan["hosts"][0]["mtu_bytes"])
                emulator.start(canonical_json(spec), canonical_json(plan))
            except (OSError, ValueError) as error:
                raise RunError(f"the path cannot be made: {error}") from error
            code = _run_there(place, words, passed_to)
            done = report.of([link["name"] for link in spec["links"]], emulator.stop(), place.counters())
        finally:
            if emulator is not None:
                emulator.stop()
            # The devices close with it.
            emulator = None
            place.remove()
    return code, done


def _spec_of(file: Path, overrides: Sequence[str]) -> dict[str, Any]:
    points = load(file, overrides).points()
    spec = points[0].to_spec()
    if any(_network(other.to_spec()) != _network(spec) for other in points[1:]):
        raise InputError(f"{file}: the sweep changes the path: choose one value with --set")
    if any(event["when"]["kind"] == "flow_reaches" for event in spec["events"]):
        raise InputError(f"{file}: event: elephan path runs no flows whose rate an event could wait for: give a time")
    return spec


def _network(spec: dict[str, Any]) -> list[Any]:
    """What of a specification the path is made of."""
    ends = [spec["flows"][0][key] for key in ("source", "destination", "route", "return_route")]
    return [spec["links"], spec["events"], spec["background"], ends]


def _plan(spec: dict[str, Any], place: site.Site) -> dict[str, Any]:
    """Say where the two hosts stand, in the form of crates/kernel/src/plan.rs: at the ends of the first flow."""
    flow = spec["flows"][0]
    nodes = (flow["source"], flow["destination"])
    hosts = [
        {
            "namespace": namespace,
            "device": site.DEVICE,
            "address": address,
            "node": node,
            "mtu_bytes": flow["stack"]["mtu_bytes"],
        }
        for namespace, address, node in zip(place.files, site.ADDRESSES, nodes, strict=True)
    ]
    routes = [
        {"from": 0, "to": 1, "links": flow["route"]},
        {"from": 1, "to": 0, "links": flow["return_route"]},
    ]
    return {"hosts": hosts, "flows": [], "routes": routes, "emulator": {}}


def _run_there(place: site.Site, words: list[str], passed_to: list[int]) -> int:
    near, far = place.names
    own, other = site.ADDRESSES
    environment = os.environ | {
        "ELEPHAN_PATH_ID": place.id,
        "ELEPHAN_PATH_NEAR": own,
        "ELEPHAN_PATH_FAR": other,
        "ELEPHAN_PATH_NEAR_NETNS": near,
        "ELEPHAN_PATH_FAR_NETNS": far,
    }
    if passed_to and passed_to[0] < 0:
        return 128 - passed_to[0]  # Told to end before there was a program.
    process = subprocess.Popen(["ip", "netns", "exec", near, *words], env=environment)
    passed_to[:] = [process.pid]
    code = process.wait()
    return code if code >= 0 else 128 - code


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Signals that end elephan go to the program while it runs, so that the path is always taken down after it.

    A terminal gives Ctrl-C to the program itself; a shell that runs there must be able to live on.
    """
    passed_to: list[int] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        if passed_to and passed_to[0] > 0:
            if number == signal.SIGINT and _in_foreground():
                return
            try:
                os.kill(passed_to[0], number)
            except ProcessLookupError:
                return
        else:
            passed_to[:] = [-number]

    if threading.current_thread() is not threading.main_thread():
        yield passed_to
        return
    before = {number: signal.signal(number, pass_on) for number in END_SIGNALS}
    try:
        yield passed_to
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return False

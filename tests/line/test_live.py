"""`elephan line` over real interfaces: pairs of virtual ones in a network namespace of the test's own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.line.impair import Impaired
from tests.processes import until

if os.geteuid() != 0 or shutil.which("ip") is None:
    pytest.skip("network namespaces need root and ip (iproute2)", allow_module_level=True)

# Each has a processor to itself for a second or two: a generator spins between frames.
pytestmark = pytest.mark.measures_time

ELEPHAN = [sys.executable, "-c", "from elephan.cli import main; main()"]
PATIENCE_S = 60
PATIENT = ["--within", "30s"]
"""Wait for a receiver that a busy machine lets answer late."""
SMALL = ["--line", "100Mbit/s", "--rate", "20%", "--mix", "1518:9,64:1", "--count", "3000", "--ramp", "0s", *PATIENT]
"""3000 frames in 1.7 s: a rate that the impaired line passes in Python."""


@pytest.fixture
def namespace() -> Iterator[str]:
    """Make a namespace with the pairs near-one and two-far; it goes with the test."""
    name = f"elephan-line-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        for pair in (("near", "one"), ("two", "far")):
            link(name, *pair)
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


def link(namespace: str, one: str, other: str, mtu: int = 9234) -> None:
    """Make a pair of interfaces that are up."""
    link = ["ip", "-n", namespace, "link"]
    subprocess.run(
        [*link, "add", "dev", one, "mtu", str(mtu), "type", "veth", "peer", "name", other, "mtu", str(mtu)], check=True
    )
    for interface in (one, other):
        subprocess.run([*link, "set", "dev", interface, "up"], check=True)


def run(namespace: str, *words: str, code: int = 0) -> dict[str, Any]:
    """Run a command in the namespace with --json; return its object."""
    done = subprocess.run(
        ["ip", "netns", "exec", namespace, *ELEPHAN, "line", *words, "--json"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == code, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_wire_loses_nothing(namespace: str) -> None:
    told = run(namespace, "send", "near", "--far", "one", *SMALL, "--payload", "cjpat")
    assert (told["sent"]["frames"], told["received"]["frames"], told["received"]["lost"]) == (3000, 3000, 0)
    assert told["received"]["bit_errors"] == 0
    assert told["received"]["bits_checked"] == 8 * (told["sent"]["bytes"] - 3000 * 48)
    # One clock: the latency is above 0 without an error.
    assert told["clock"] == {"offset_ns": 0, "error_ns": 0}
    assert 0 < told["received"]["latency_ns"]["min"] <= told["received"]["latency_ns"]["mean"]


def test_what_a_line_does_to_frames_is_counted_exactly(namespace: str) -> None:
    held: list[bytes] = []

    def fate(number: int, frame: bytes) -> list[bytes]:
        if number in (100, 200, 201, 202):
            return []
        if number == 300:
            return [frame, frame]
        if number == 400:
            # Behind the stamp: three bits of the pattern.
            return [frame[:45] + bytes([frame[45] ^ 0b111]) + frame[46:]]
        if number == 500:
            held.append(frame)
            return []
        if number == 510:
            return [frame, held.pop()]
        return [frame]

    with Impaired(namespace, "one", "two", fate):
        told = run(namespace, "send", "near", "--far", "far", *SMALL, code=1)
    received = told["received"]
    assert (received["lost"], received["loss_events"], received["longest_loss"]) == (4, 2, 3)
    assert (received["duplicates"], received["reordered"], received["reorder_extent_max"]) == (1, 1, 10)
    assert (received["bit_errors"], received["errored_frames"], received["bad_headers"]) == (3, 1, 0)
    assert received["frames"] == 2996


@pytest.mark.parametrize("method", ["packet-mmap", "af-xdp"])
def test_a_receiver_in_a_process_of_its_own_counts_and_ends_by_a_signal(namespace: str, method: str) -> None:
    link(namespace, "left", "right", 1500)
    receiver = subprocess.Popen(
        ["ip", "netns", "exec", namespace, *ELEPHAN, "line", "receive", "right", "--method", method, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert receiver.stderr is not None
        address = receiver.stderr.readline().split("receives at ")[1].strip()
        told = run(namespace, "send", "left", "--to", address, "--method", method, *SMALL)
        receiver.send_signal(signal.SIGINT)
        out, said = receiver.communicate(timeout=PATIENCE_S)
    finally:
        receiver.kill()
    assert told["received"]["frames"] == 3000 and told["port"]["method"] == method, said
    (stream,) = json.loads(out)["streams"]
    assert stream["received"]["frames"] == 3000 and stream["is_over"]
    assert told["receiver"]["interface"] == "right"


def test_tags_are_of_the_frame_and_keep_others_apart(namespace: str) -> None:
    tagged = ["--vlan", "7", "--pcp", "3", "--mix", "1522", "--count", "300"]
    told = run(namespace, "send", "near", "--far", "one", "--line", "100Mbit/s", "--ramp", "0s", *PATIENT, *tagged)
    assert told["received"]["frames"] == 300
    assert told["received"]["bytes"] == told["sent"]["bytes"] == 300 * 1522


def test_a_line_that_breaks_is_no_fault_of_the_generator(namespace: str) -> None:
    line = ["--far", "one", "--line", "100Mbit/s", "--rate", "20%", "--ramp", "0s", *PATIENT]
    words = ["send", "near", *line, "--duration", "4s", "--json"]
    started = subprocess.Popen(
        ["ip", "netns", "exec", namespace, *ELEPHAN, "line", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert started.stderr is not None
        until(lambda: "sending" in started.stderr.readline(), PATIENCE_S)  # type: ignore[union-attr]
        time.sleep(1)
        subprocess.run(["ip", "-n", namespace, "link", "set", "dev", "one", "down"], check=True)
        out, said = started.communicate(timeout=PATIENCE_S)
    finally:
        started.kill()
    # Down to the end, with nobody to answer: it ends all the same, and says why.
    told = json.loads(out)
    assert started.returncode == 1, said
    assert told["sent"]["no_carrier_frames"] > 0 and told["received"] is None
    assert "has no carrier" in said


def test_a_series_adds_up(namespace: str) -> None:
    line = ["--far", "one", "--line", "100Mbit/s", "--ramp", "100ms", *PATIENT]
    done = run(namespace, "send", "near", *line, "--duration", "1s", "--series", "200ms")
    rows = done["series"]
    assert sum(row["sent"] for row in rows) == done["sent"]["frames"]
    assert sum(row["received"] for row in rows) == done["received"]["frames"] == done["sent"]["frames"]


def test_a_bit_error_rate_is_bounded_by_what_was_sent(namespace: str) -> None:
    line = ["--far", "one", "--line", "100Mbit/s", "--rate", "20%", "--ramp", "0s", *PATIENT]
    told = run(namespace, "test", "ber", "near", *line, "--target", "1e-6", "--duration", "2s")
    rate = told["results"]["line"]
    assert told["passed"] is True and rate["errors"] == 0
    # Ten times the bits that the target takes, for a busy machine. 3 / n, to the digits that ln 20 has more.
    assert rate["upper"] * rate["bits"] == pytest.approx(2.9957, abs=1e-3) and rate["upper"] < 1e-6


def test_wrong_bits_fail_a_target(namespace: str) -> None:
    def fate(number: int, frame: bytes) -> list[bytes]:
        return [frame[:50] + bytes([frame[50] ^ 1]) + frame[51:]] if number % 10 == 0 else [frame]

    line = ["--far", "far", "--line", "100Mbit/s", "--rate", "20%", "--ramp", "0s", *PATIENT]
    with Impaired(namespace, "one", "two", fate):
        told = run(namespace, "test", "ber", "near", *line, "--target", "1e-6", "--duration", "2s", code=1)
    assert told["passed"] is False and told["results"]["payload"]["errors"] >= 10


def test_a_soak_that_is_killed_goes_on(namespace: str, tmp_path: Path) -> None:
    line = ["--far", "one", "--line", "100Mbit/s", "--rate", "20%", "--ramp", "0s", "--every", "200ms", *PATIENT]
    words = ["soak", "near", *line, "--for", "3s", "--into", str(tmp_path / "soak")]
    first = subprocess.Popen(
        ["ip", "netns", "exec", namespace, *ELEPHAN, "line", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        until(lambda: any(file.stat().st_size > 300 for file in (tmp_path / "soak").glob("*.jsonl")), PATIENCE_S)
    finally:
        first.kill()
        first.communicate()
    told = run(namespace, *words)
    assert len(told["parts"]) == 2 and told["totals"]["lost"] == 0
    assert told["totals"]["span_ns"] >= 2.9e9
    assert (tmp_path / "soak" / "report.html").is_file()


def test_no_receiver_is_said_in_a_line(namespace: str) -> None:
    done = subprocess.run(
        ["ip", "netns", "exec", namespace, *ELEPHAN, "line", "send", "near", "--line", "1Gbit/s", "--within", "300ms"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 1
    assert "no receiver answers behind near: start elephan line receive" in done.stderr


def test_no_root_is_needed_where_raw_frames_are_granted() -> None:
    commands = (
        "ip link add dev a type veth peer name b && ip link set dev a up && ip link set dev b up && exec "
        + " ".join(f"'{word}'" for word in [*ELEPHAN, "line", "send", "a", "--far", "b", *SMALL, "--json"])
    )
    done = subprocess.run(
        ["unshare", "-Urn", "sh", "-c", commands], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["received"]["frames"] == 3000

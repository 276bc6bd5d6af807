"""Judges of the command: programs and counters that share no code with it."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from elephan.path.testbed import ip
from tests.field.network import Field, device

IPERF = 5201


def tree(folder: Path, seed: int, large_bytes: int = 1_500_000) -> Path:
    """Make a tree with a large file, small ones, an empty one, a hole, a symbolic and a hard link."""
    draw = random.Random(seed)
    (folder / "inner" / "deep").mkdir(parents=True)
    (folder / "large").write_bytes(draw.randbytes(large_bytes))
    for number in range(12):
        (folder / "inner" / f"small-{number}").write_bytes(draw.randbytes(draw.randrange(1, 20_000)))
    (folder / "inner" / "deep" / "empty").touch()
    (folder / "inner" / "deep" / "ümlaut and space").write_text("text\n")
    with (folder / "hole").open("wb") as file:
        file.truncate(1_000_000)
        file.seek(500_000)
        file.write(b"middle")
    (folder / "link").symlink_to("inner/small-1")
    os.link(folder / "inner" / "small-2", folder / "inner" / "same")
    (folder / "inner" / "small-3").chmod(0o640)
    os.utime(folder / "inner" / "small-4", ns=(10**18, 10**18 + 123_456_789))
    return folder


def differences(one: Path, other: Path) -> str:
    """Return how two trees differ by rsync(1), which reads both: names, bytes, modes, owners, times, links."""
    words = ["rsync", "-naciHAX", "--delete", f"{one}/", f"{other}/"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def carried_bytes(field: Field) -> int:
    """Return the bytes that have come to site b, by its kernel's counter."""
    return int(device(field.b.namespace, "lan")["rx"]["bytes"])


@contextmanager
def black_hole(field: Field) -> Iterator[None]:
    """Keep the router of site a from sending ICMP messages: they have no route, and forwarded packets have."""
    rule = ["priority", "1", "iif", "lo", "ipproto", "icmp", "blackhole"]
    ip("-n", field.a.router, "rule", "add", *rule)
    # The site forgets the MTU that it was told before.
    ip("-n", field.a.namespace, "route", "flush", "cache")
    try:
        yield
    finally:
        ip("-n", field.a.router, "rule", "del", *rule)


def ping(field: Field, *options: str) -> list[float]:
    """Return the round trips from site a to site b by ping(8), s."""
    words = field.a.within("ping", "-n", "-i0.02", "-W1", *options, field.b.address)
    said = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120).stdout
    return [float(time) / 1000 for time in re.findall(r"time=([\d.]+) ms", said)]


def iperf3(field: Field, seconds: float, *options: str) -> float:
    """Return the goodput from site a to site b by iperf3, bit/s at the receiver."""
    words = field.a.within("iperf3", "-c", field.b.address, "-p", str(IPERF), "-t", str(seconds), "-J", *options)
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.startswith("{"), (words, done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    assert "error" not in found, found["error"]
    return float(found["end"]["sum_received"]["bits_per_second"])

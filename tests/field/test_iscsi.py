"""docs/howto/iscsi.md over the path: the target at site b, read by qemu-img and loaded by `bench` at site a."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.field.network import Field
from tests.hosts.testbed import waited

PORT = 3260


@contextmanager
def target(field: Field, disk: Path) -> Iterator[str]:
    """Serve a file at site b; give the URL for site a."""
    with field.started("iscsi", "target", "--lun", disk, "--portal", f"{field.b.address}:{PORT}", site=field.b):

        def listens() -> bool:
            words = field.b.within("ss", "-HltnO", f"sport = :{PORT}")
            return bool(subprocess.run(words, capture_output=True, text=True, check=True).stdout)

        waited(listens)
        yield f"iscsi://{field.b.address}:{PORT}/iqn.2026-01.elephan:disk/0"


def test_another_initiator_reads_what_the_file_has(field: Field, folder: Path) -> None:
    if shutil.which("qemu-img") is None:
        pytest.skip("needs qemu-img (Debian packages qemu-utils, qemu-block-extra)")
    disk = folder / "disk.img"
    disk.write_bytes(random.Random(1).randbytes(2 << 20))
    with target(field, disk) as url:
        found = field.elephan("iscsi", "discover", f"{field.b.address}:{PORT}")
        assert found.returncode == 0 and "iqn.2026-01.elephan:disk" in found.stdout, found.stderr
        words = field.a.within("qemu-img", "convert", "-O", "raw", url, folder / "read")
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        if "Unknown driver" in done.stderr or "Unknown protocol" in done.stderr:
            pytest.skip("this qemu-img has no iscsi driver")
        assert done.returncode == 0, done.stderr
    assert (folder / "read").read_bytes() == disk.read_bytes()


def test_a_load_takes_a_round_trip_and_keeps_to_the_line(field: Field, folder: Path) -> None:
    disk = folder / "disk.img"
    with disk.open("wb") as file:
        file.truncate(8 << 20)
    with target(field, disk) as url:
        words = ("--depth", "8", "--connections", "1", "--duration", "2s", "--json")
        done = field.elephan("iscsi", "bench", url, *words)
        assert done.returncode == 0, done.stderr
        (point,) = json.loads(done.stdout)["points"]
    assert point["reads"]["latency_p50_ns"] >= 20_000_000
    assert 0 < point["reads"]["bytes"] * 8 < 40e6 * point["elapsed_ns"] / 1e9

"""qemu-img and iscsi-perf on our target."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from elephan.cli.main import call
from tests.iscsi.conftest import BYTES, NAME, Target

qemu = pytest.mark.skipif(shutil.which("qemu-img") is None, reason="needs qemu-img (Debian package qemu-utils)")


def qemu_img(*arguments: str) -> None:
    """Run qemu-img; skips where it has no iscsi driver."""
    done = subprocess.run(["qemu-img", *arguments], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0 and "Unknown protocol" in done.stderr:
        pytest.skip("needs qemu's iscsi driver (Debian package qemu-block-extra)")
    assert done.returncode == 0, done.stderr


@qemu
def test_what_qemu_wrote_is_compared_and_read_back_and_there_after_kill_9(
    image: Path, target: Target, tmp_path: Path
) -> None:
    source, back = tmp_path / "source.raw", tmp_path / "back.raw"
    # Half of it data, half zeros, which qemu unmaps or writes as WRITE SAME.
    data = bytes((at * 7 + at // 4096) % 256 for at in range(1 << 20)) * (BYTES >> 21)
    source.write_bytes(data + bytes(BYTES - len(data)))
    # Cache mode none: qemu-img ends with a flush, which is SYNCHRONIZE CACHE.
    qemu_img("convert", "-n", "-t", "none", "-f", "raw", "-O", "raw", str(source), target.url)
    qemu_img("compare", "-f", "raw", "-F", "raw", str(source), target.url)
    qemu_img("convert", "-T", "none", "-f", "raw", "-O", "raw", target.url, str(back))
    assert back.read_bytes() == source.read_bytes()
    target.kill()
    assert image.read_bytes() == source.read_bytes()


@pytest.mark.skipif(shutil.which("iscsi-perf") is None, reason="needs iscsi-perf (Debian package libiscsi-bin)")
@pytest.mark.parametrize("options", [["-m", "1", "-b", "8"], ["-m", "32", "-b", "128", "-r"]])
def test_iscsi_perf_reads(target: Target, options: list[str]) -> None:
    command = ["iscsi-perf", *options, "-t", "1", target.url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    found = re.findall(r"iops average (\d+)", done.stdout)
    assert found, done.stdout
    assert int(found[-1]) > 0
    assert "finished" in done.stdout


def test_discovery_finds_the_target(target: Target, capsys: pytest.CaptureFixture[str]) -> None:
    portal = target.url.split("/")[2]
    assert call(["iscsi", "discover", portal]) == 0
    assert capsys.readouterr().out.split() == [NAME, f"{portal},1"]

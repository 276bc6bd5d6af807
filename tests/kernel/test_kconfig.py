"""Objects that ask for the kernel's configuration, where it is kept elsewhere."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from elephan.stack import kconfig
from tests.kernel.test_kernel import ROOT
from tests.kernel.test_objects import compiled

PLACES = [Path(place) for place in kconfig.PLACES if Path(place).exists()]


def configured() -> int:
    """Return the CONFIG_HZ of this kernel's configuration."""
    if not PLACES:
        pytest.skip("this kernel's configuration is not to be had: nothing to compare with")
    raw = PLACES[0].read_bytes()
    text = (gzip.decompress(raw) if PLACES[0].suffix == ".gz" else raw).decode()
    found = re.search(r"^CONFIG_HZ=(\d+)$", text, re.MULTILINE)
    assert found is not None
    return int(found[1])


def test_ticks_are_as_the_kernel_was_built(kernel: None) -> None:
    assert kconfig.ticks_per_s() == configured()


def test_libbpf_is_told_only_what_it_cannot_find(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "config").touch()
    monkeypatch.setattr(kconfig, "PLACES", (str(tmp_path / "none"), str(tmp_path / "config")))
    assert kconfig.options(b"name").kconfig is None
    monkeypatch.setattr(kconfig, "PLACES", (str(tmp_path / "none"),))
    monkeypatch.setattr(kconfig, "TIMERS", tmp_path / "none")
    assert kconfig.options().kconfig == b"CONFIG_HZ=0\n"


def test_an_object_that_asks_is_taken_without_any_configuration(kernel: None) -> None:
    # As in a container: of /proc there is what belongs to processes, and no /boot.
    command = (
        "mount -t proc -o subset=pid none /proc && mount -t tmpfs none /boot && exec $PYTHON -m elephan.stack.load"
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", command],
        input=compiled("cubic"),
        capture_output=True,
        check=False,
        env=os.environ | {"PYTHON": sys.executable, "PYTHONPATH": str(ROOT)},
    )
    answer = json.loads(done.stdout)
    assert answer["passed"], (answer, done.stderr)

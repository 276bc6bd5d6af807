"""A disk that is full: exit code 1, one line, and nothing half written.

The disk is a small tmpfs in a mount namespace of the command's own.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from elephan.store import Store

SCENARIO = """
[run]
duration = "4s"
[path]
bandwidth = "100Mbit/s"
rtt = "20ms"
[[flow]]
name = "copy"
[measure]
series = "1ms"
[sweep]
"flow.congestion_control" = ["reno", "cubic"]
"""

UNSHARE = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]


@pytest.fixture
def folder(folder: Path) -> Path:
    """With a scenario whose captures and series take more than a few hundred kilobytes."""
    (folder / "busy.toml").write_text(SCENARIO)
    (folder / "disk").mkdir()
    return folder


def on_a_disk_of(size_k: int, folder: Path, *arguments: str, fill: str = "true") -> tuple[int, str, str, list[str]]:
    """Run the command with `disk` of so many KiB; return exit code, stdout, stderr and the disk's content then."""
    command = shlex.join([sys.executable, "-c", "from elephan.cli import main; main()", *arguments])
    script = f"mount -t tmpfs -o size={size_k}k none disk && {{ {fill}; }} && {{ {command}; }}; s=$?; "
    script += "cd disk && find . -type f -printf '%s %P\\n' >../left; exit $s"
    possible = subprocess.run([*UNSHARE, "true"], check=False, capture_output=True)
    if possible.returncode != 0:
        pytest.skip(f"no mount namespace: {possible.stderr.decode()}")
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [*UNSHARE, "sh", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr, (folder / "left").read_text().splitlines()


def test_a_capture_that_does_not_fit_is_one_line_and_leaves_no_file(folder: Path) -> None:
    code, out, err, left = on_a_disk_of(200, folder, "run", "busy.toml", "--no-report", "--pcap", "disk/all.pcapng")
    assert (code, out, left) == (1, "", [])
    assert err.startswith("error: run ") and err.count("\n") == 1
    assert "cannot write the capture" in err and "No space left on device" in err


def test_a_capture_that_does_not_fit_leaves_the_one_before(folder: Path) -> None:
    one = ["run", "busy.toml", "--no-report", "--set", "flow.congestion_control=reno", "--pcap", "disk/all.pcapng"]
    code, _, _, left = on_a_disk_of(200, folder, *one, fill="echo before >disk/all.pcapng")
    assert (code, left) == (1, ["7 all.pcapng"])


@pytest.mark.parametrize("place", ["missing/all.pcapng", "disk", "busy.toml/all.pcapng"])
def test_a_capture_at_a_wrong_place_is_wrong_input(folder: Path, place: str) -> None:
    one = ["run", "busy.toml", "--no-report", "--set", "flow.congestion_control=reno", "--pcap", place]
    code, _, err, left = on_a_disk_of(4000, folder, *one)
    assert (code, left) == (2, []) and err.startswith("error: cannot write the capture ") and err.count("\n") == 1


@pytest.mark.parametrize("size_k", [4, 40, 60, 80, 100, 120, 160, 200, 300])
def test_a_store_that_does_not_fit_is_one_line_and_keeps_what_it_had(folder: Path, size_k: int) -> None:
    """Full while the store is made, while the first run is stored, or the second, its series or its row."""
    code, out, err, left = on_a_disk_of(size_k, folder, "run", "busy.toml", "--no-report", "--store", "disk/r.sqlite")
    assert (code, out) == (1, "")
    assert err.startswith("error: ") and err.count("\n") == 1 and "Traceback" not in err
    assert not [line for line in left if line.endswith(".tmp")]
    assert [line for line in left if line.startswith("0 ")] in ([], ["0 r.sqlite"], ["0 r.sqlite-wal"])


def test_a_full_disk_under_a_store_of_before_keeps_its_runs(folder: Path) -> None:
    run = ["run", "busy.toml", "--no-report", "--store", "disk/r.sqlite"]
    first = shlex.join(
        [sys.executable, "-c", "from elephan.cli import main; main()", *run, "--set", "flow.congestion_control=reno"]
    )
    fill = f"{first} && (cat /dev/zero >disk/filler 2>/dev/null || true)"
    code, _, err, left = on_a_disk_of(4000, folder, *run, fill=f"{fill}; cp -r disk kept")
    assert code == 1 and err.count("error: ") == 1 and "Traceback" not in err
    assert len([line for line in left if line.endswith(".parquet")]) == 2
    with Store(str(folder / "kept" / "r.sqlite")) as store:
        assert store.count() == 1

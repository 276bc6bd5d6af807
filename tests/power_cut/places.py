"""Paths and devices, the same in the virtual machine and here: journals of copies hold paths."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path("/run/elephan-power-cut")
DISK = ROOT / "disk"
"""Mount point of the disk that loses its power."""
SOURCES = ROOT / "sources"
"""Mount point of a disk that is only read."""
STATE = DISK / "state"
"""The state of commands: XDG_STATE_HOME."""
SIZE_MB = {"ext4": 256, "xfs": 320}
"""XFS has none below 300 MB (mkfs.xfs(8))."""
MAKE = {"ext4": ["mkfs.ext4", "-q", "-F"], "xfs": ["mkfs.xfs", "-q", "-f"]}


def run(*words: object) -> None:
    """Run a program of the system. Raises RuntimeError with its message."""
    environment = os.environ | {"PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin", "DM_DISABLE_UDEV": "1"}
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr.strip() or done.stdout.strip()}")


def database_copy(database: Path) -> Path:
    """Copy an SQLite database with its log, since a reader replays the log; return the copy, which may be absent."""
    folder = ROOT / "database"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for file in database.parent.glob(f"{database.name}*"):
        shutil.copy(file, folder)
    return folder / database.name


def make_image(image: Path, kind: str, size_mb: int) -> None:
    """Make a file system in a new file."""
    image.unlink(missing_ok=True)
    with image.open("wb") as file:
        file.truncate(size_mb << 20)
    run(*MAKE[kind], image)


def mount(what: object, folder: Path, *options: str) -> None:
    """Mount a device, or an image."""
    folder.mkdir(parents=True, exist_ok=True)
    run("mount", *(["-o", ",".join(options)] if options else []), what, folder)


def unmount(folder: Path) -> None:
    """Unmount."""
    run("umount", folder)

"""File systems for worlds, in a mount namespace of this process: the kernel removes all of them when it ends."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

CLONE_NEWNS = 0x20000
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MNT_DETACH = 2
SIZE_MB = {"tmpfs": 192, "ext4": 192, "xfs": 320}
"""Size of each; XFS has none below 300 MB (mkfs.xfs(8))."""

_libc = ctypes.CDLL(None, use_errno=True)


class Unavailable(Exception):
    """A file system that this machine or user cannot mount, and why."""


def _check(result: int, what: str) -> None:
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def private_mounts() -> None:
    """Give this process mounts of its own. Raises OSError without the right to."""
    _check(_libc.unshare(CLONE_NEWNS), "unshare")
    _check(_libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "mount --make-rprivate /")


def mount_tmpfs(folder: bytes, options: str) -> None:
    """Mount a tmpfs."""
    _check(_libc.mount(b"tmpfs", folder, b"tmpfs", 0, options.encode()), "mount tmpfs")


def bind(source: bytes, folder: bytes) -> None:
    """Mount a folder at another one."""
    _check(_libc.mount(source, folder, None, MS_BIND, None), "mount --bind")


def unmount(folder: bytes) -> None:
    """Unmount."""
    _check(_libc.umount2(folder, MNT_DETACH), "umount")


def below(root: bytes) -> list[bytes]:
    """Return the mount points below a folder, relative to it, in the order in which they were mounted."""
    found = []
    with open("/proc/self/mountinfo", "rb") as lines:
        for line in lines:
            path = re.sub(rb"\\([0-7]{3})", lambda octal: bytes([int(octal[1], 8)]), line.split(b" ")[4])
            if path.startswith(root + b"/"):
                found.append(path[len(root) + 1 :])
    return found


def mounted(kind: str) -> Path:
    """Return the folder of a new file system. Raises `Unavailable`."""
    folder = Path(tempfile.mkdtemp(prefix="elephan-model-"))
    try:
        if kind == "tmpfs":
            mount_tmpfs(os.fsencode(folder), f"size={SIZE_MB[kind]}m,mode=755")
        else:
            _loop(kind, folder)
    except BaseException:
        folder.rmdir()
        raise
    return folder


def _loop(kind: str, folder: Path) -> None:
    make = shutil.which(f"mkfs.{kind}", path=f"{os.environ.get('PATH', '')}:/sbin:/usr/sbin")
    if make is None:
        raise Unavailable(f"mkfs.{kind} is missing (Debian package {'xfsprogs' if kind == 'xfs' else 'e2fsprogs'})")
    handle, image = tempfile.mkstemp(prefix="elephan-model-", suffix=".img")
    try:
        os.truncate(handle, SIZE_MB[kind] << 20)
        os.close(handle)
        quiet = {"ext4": ["-q", "-F"], "xfs": ["-q", "-f"]}[kind]
        _run([make, *quiet, image])
        # The loop device is removed with the mount (losetup(8), autoclear), and the image with the loop device.
        _run(["mount", "-o", "loop", image, str(folder)])
    finally:
        os.unlink(image)


def _run(words: list[str]) -> None:
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise Unavailable(f"{' '.join(words[:3])}: {done.stderr.strip()}")


def removed(folder: Path) -> None:
    """Unmount a file system and remove its folder."""
    unmount(os.fsencode(folder))
    folder.rmdir()


FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE = 1, 2


def punch(handle: int, at: int, count: int) -> None:
    """Make a hole in an open file."""
    offset, length = ctypes.c_long(at), ctypes.c_long(count)
    _check(_libc.fallocate(handle, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length), "fallocate")

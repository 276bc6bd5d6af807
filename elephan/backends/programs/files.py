"""Files of a program's ends on this machine: written, their data checked. Their folders go with the run.

Nothing of the machine's configuration, keys or users is read. What is to be on a disk lies in a folder of its own.
"""

from __future__ import annotations

import filecmp
import os
import shutil
import tarfile
from collections.abc import Iterable
from pathlib import Path

from elephan.backends.programs.ends import Data, End, Place
from elephan.errors import InputError, RunError
from elephan.run_spec.types import FlowSpec

PASSABLE = 0o711
"""Mode of a folder that a server which is not root passes through and cannot read; keys in it are root's alone."""

READABLE = 0o755
WRITABLE = 0o777

PIECE = 1 << 20
"""Bytes of random data that are drawn at once."""

SPARE = 64 << 20
"""Bytes of a disk that are left free."""

IN_MEMORY = frozenset({"tmpfs", "ramfs"})
"""File systems that are no disk."""


def write(end: End, place: Place) -> None:
    """Write an end's files, and the data that it sends; `place` is on this machine. Raises `OSError`."""
    folder = Path(place.folder)
    _make(folder, PASSABLE)
    for file in end.files:
        path = folder / file.name
        if file.name.endswith("/"):
            _make(path, file.mode)
            continue
        path.touch(file.mode)
        path.chmod(file.mode)
        path.write_text(file.text, encoding="utf-8")
    if end.data is not None:
        _write_data(end.data, folder)


def _write_data(data: Data, folder: Path) -> None:
    target = Path(data.folder)
    if data.kind in ("holes", "random"):
        for parent in (target.parent, target):
            _make(parent, PASSABLE if parent != target else READABLE)
        for path, size in zip(map(Path, data.paths), data.sizes, strict=True):
            if data.kind == "holes":
                with path.open("wb") as file:
                    file.truncate(size)
            else:
                _write_random(path, size)
            path.chmod(0o644)
        return
    # A server may refuse to give its users a root that they can write to: the folder in it is what they write to.
    _make(target.parent.parent, PASSABLE)
    _make(target.parent, READABLE)
    _make(target, WRITABLE)
    if data.kind == "devices":
        _write_devices(data, folder / "devices.tar")


def _make(folder: Path, mode: int) -> None:
    folder.mkdir(exist_ok=True)
    folder.chmod(mode)


def _write_random(path: Path, size: int) -> None:
    """Write random bytes to the disk, and drop them from the page cache, so that reading them is reading the disk."""
    with path.open("wb") as file:
        for begin in range(0, size, PIECE):
            file.write(os.urandom(min(PIECE, size - begin)))
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _write_devices(data: Data, archive: Path) -> None:
    """Write an archive of devices like /dev/null: an end unpacks it where devices may be."""
    with tarfile.open(archive, "w") as tar:
        for name in data.names:
            device = tarfile.TarInfo(name)
            device.type, device.mode = tarfile.CHRTYPE, 0o666
            device.devmajor, device.devminor = 1, 3
            tar.addfile(device)


def check(sent: Data, received: Data) -> None:
    """Compare files on the disk with those that were sent. Raises `RunError` for the first that differs."""
    if received.kind != "disk":
        return
    for source, sink in zip(map(Path, sent.paths), map(Path, received.paths), strict=True):
        if not sink.is_file():
            raise RunError(f"{sink.name} did not arrive")
        if not filecmp.cmp(source, sink, shallow=False):
            raise RunError(f"{sink.name} arrived with {sink.stat().st_size} bytes that are not those of its source")


def require_room(flows: Iterable[FlowSpec], disk: Path) -> None:
    """Raise `InputError` when the data of the flows' programs does not fit on the disk, or in memory, here."""
    on_disk = in_memory = 0
    for flow in flows:
        workload = flow["workload"]
        if workload["kind"] != "program" or workload["program"] == "iperf3":
            continue
        ends = (workload.get("source"), workload.get("sink"))
        on_disk += (workload["bytes"] or 0) * ends.count("disk")
        if workload["program"] == "lftp" and workload.get("sink") != "disk":
            in_memory += workload["bytes"] or 0
    if on_disk:
        kind = file_system_of(disk)[0]
        if kind in IN_MEMORY:
            raise InputError(f'"disk": {disk} is a {kind}, which is memory: mount a disk there, or take "memory"')
        free = shutil.disk_usage(disk).free - SPARE
        if on_disk > free:
            raise InputError(f'"disk": {disk} has room for {max(free, 0)} bytes, and the programs have {on_disk}')
    if in_memory:
        free = _memory_bytes()
        if in_memory > free // 2:
            raise InputError(
                f"lftp cannot write to a device, so {in_memory} bytes would stay in memory, of which half of "
                f'{free} may be used: take sink = "disk", or program = "ftp"'
            )


def file_system_of(folder: Path) -> tuple[str, str]:
    """Return the type of the file system on which a folder lies, and its source: ("ext4", "/dev/sda1")."""
    best, found = "", ("unknown", "unknown")
    for line in Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines():
        source, mounted, kind = line.split()[:3]
        at = mounted.rstrip("/") + "/"
        # Of several mounts at one place the last is on top.
        if f"{folder}/".startswith(at) and len(at) >= len(best):
            best, found = at, (kind, source)
    return found


def _memory_bytes() -> int:
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return 0

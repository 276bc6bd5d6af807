"""Faults planted into a command by its system calls: what the machine has to find."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass

from tests.copy.model.tracer import Act, Call, Leave, Observer, Skip


@dataclass
class NoLength(Observer):
    """A length that is not set: ftruncate(2) below the destination does nothing, and says that it did."""

    scope: str
    wants: frozenset[str] = frozenset({"ftruncate"})

    def enter(self, call: Call) -> Act:
        """See `Observer`."""
        return Skip(0) if call.file(call.arguments[0]).startswith(self.scope) else None


@dataclass
class NoSync(Observer):
    """A sync left out: those of files, and of file systems, do nothing; those of folders do."""

    scope: str
    wants: frozenset[str] = frozenset({"fsync", "fdatasync", "syncfs"})

    def enter(self, call: Call) -> Act:
        """See `Observer`."""
        if not call.file(call.arguments[0]).startswith(self.scope):
            return None
        is_folder = stat.S_ISDIR(os.stat(call.descriptor(call.arguments[0])).st_mode)
        return Skip(0) if call.name == "syncfs" or not is_folder else None


STATX_MNT_ID, STATX_DEVICE = 144, 136
"""Offsets in struct statx (linux/stat.h): stx_mnt_id, stx_dev_major."""
STAT_DEVICE = 0
"""Offset of st_dev in struct stat (asm/stat.h)."""
RESOLVE_NO_XDEV = 1


@dataclass
class NoMounts(Observer):
    """A removal across a mount: all that the command sees is on the mount of the destination."""

    scope: str
    wants: frozenset[str] = frozenset({"statx", "newfstatat", "fstat", "openat2"})
    mount: bytes = b""
    device: bytes = b""

    def enter(self, call: Call) -> Act:
        """See `Observer`."""
        if call.name != "openat2":
            return Leave()
        at = call.arguments[2] + 16
        resolve = int.from_bytes(call.memory(at, 1) or b"\0", "little")
        if resolve & RESOLVE_NO_XDEV:
            call.set_memory(at, bytes([resolve & ~RESOLVE_NO_XDEV]))
        return None

    def leave(self, call: Call, result: int) -> None:
        """See `Observer`."""
        if result != 0:
            return
        if call.name == "statx":
            at = call.arguments[4]
            self._same(call, at + STATX_DEVICE, 8)
            self._same_mount(call, at + STATX_MNT_ID)
        else:
            at = call.arguments[1] if call.name == "fstat" else call.arguments[2]
            self._same(call, at + STAT_DEVICE, 8)

    def _same(self, call: Call, at: int, count: int) -> None:
        folder = call.arguments[0]
        path = call.file(folder) if call.name == "fstat" else os.path.realpath(call.path(folder, call.arguments[1]))
        if path.startswith(self.scope):
            device = os.stat(self.scope).st_dev
            if call.name == "statx":
                words = os.major(device).to_bytes(4, "little") + os.minor(device).to_bytes(4, "little")
            else:
                words = device.to_bytes(8, "little")
            call.set_memory(at, words[:count])

    def _same_mount(self, call: Call, at: int) -> None:
        path = os.path.realpath(call.path(call.arguments[0], call.arguments[1]))
        if path.startswith(self.scope):
            if not self.mount:
                self.mount = _mount_of(self.scope)
            call.set_memory(at, self.mount)


def _mount_of(path: str) -> bytes:
    handle = os.open(path, os.O_RDONLY)
    try:
        with open(f"/proc/self/fdinfo/{handle}") as lines:
            for line in lines:
                if line.startswith("mnt_id:"):
                    return int(line.split()[1]).to_bytes(8, "little")
    finally:
        os.close(handle)
    return b""


PLANTS: dict[str, Callable[[str], Observer]] = {"length": NoLength, "sync": NoSync, "mount": NoMounts}

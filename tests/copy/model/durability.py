"""Order of changes and syncs: a file has its name only when its content is on the disk, and the end finds all there."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field

from tests.copy.model.tracer import CHANGING, FICLONE, Act, Call, Leave, Observer

Key = tuple[int, int]
DATA = {"write": 0, "pwrite64": 0, "writev": 0, "pwritev": 0, "ftruncate": 0, "fallocate": 0, "copy_file_range": 2}
"""Calls that change content, with the argument that has the descriptor."""
BY_DESCRIPTOR = frozenset({"fchmod", "fchown", "fsetxattr", "fremovexattr"})
SYNCS = frozenset({"fsync", "fdatasync", "syncfs", "sync"})
OWN = ".elephan-copy"


@dataclass
class Durability(Observer):
    """Judges one command by its system calls below `scope`."""

    scope: str
    """Path of the area that is judged."""
    destination: str = ""
    """Path of the destination; empty: `scope`."""
    problems: list[str] = field(default_factory=list)
    time: int = 0
    data: dict[Key, tuple[int, str]] = field(default_factory=dict)
    """Files with content that no sync has covered: when it was changed, and the path."""
    metadata: dict[Key, tuple[int, str]] = field(default_factory=dict)
    names: dict[Key, tuple[int, str]] = field(default_factory=dict)
    """Folders with names that no sync has covered."""
    began: dict[int, int] = field(default_factory=dict)
    """Time at which a thread's sync began."""
    wants: frozenset[str] = CHANGING | {"openat", "openat2"}
    naming: dict[int, str] = field(default_factory=dict)
    """Folder that a thread's call gives or takes a name in."""

    def enter(self, call: Call) -> Act:
        """See `Observer`."""
        self.time += 1
        name = call.name
        if name in SYNCS:
            self.began[call.thread] = self.time
            return Leave()
        if name in ("openat", "openat2"):
            return self._opened(call)
        elif name in DATA:
            self._changed(self.data, call.descriptor(call.arguments[DATA[name]]))
        elif name == "ioctl":
            if call.arguments[1] == FICLONE:
                self._changed(self.data, call.descriptor(call.arguments[0]))
        elif name in BY_DESCRIPTOR or (name == "utimensat" and call.arguments[1] == 0):
            self._changed(self.metadata, call.descriptor(call.arguments[0]))
        elif name in ("renameat", "renameat2"):
            return self._renamed(call)
        elif name in ("linkat", "symlinkat", "mkdirat", "mknodat", "unlinkat"):
            position = {"linkat": 2, "symlinkat": 1}.get(name, 0)
            return self._named(call, call.arguments[position], call.arguments[position + 1])
        elif name in ("utimensat", "fchownat"):
            self._changed(self.metadata, call.path(call.arguments[0], call.arguments[1]), follow=False)
        elif name in ("chmod", "lsetxattr", "lremovexattr"):
            self._changed(self.metadata, call.path(-100, call.arguments[0]), follow=name == "chmod")
        return None

    def _changed(self, where: dict[Key, tuple[int, str]], path: str, follow: bool = True) -> None:
        try:
            found = os.stat(path, follow_symlinks=follow)
            real = os.readlink(path) if path.rpartition("/")[0].endswith("/fd") else os.path.realpath(path)
        except OSError:
            return
        if real.startswith(self.scope) and (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            where[found.st_dev, found.st_ino] = (self.time, real)

    def _named(self, call: Call, folder: int, address: int) -> Act:
        if os.fsdecode(call.text(address)).startswith(OWN):
            return None
        self.naming[call.thread] = os.path.dirname(call.path(folder, address))
        return Leave()

    def _opened(self, call: Call) -> Act:
        flags = call.arguments[2]
        if call.name == "openat2":
            flags = int.from_bytes(call.memory(call.arguments[2], 8).ljust(8, b"\0"), "little")
        if flags & os.O_CREAT and not os.path.lexists(call.path(call.arguments[0], call.arguments[1])):
            return self._named(call, call.arguments[0], call.arguments[1])
        return None

    def _renamed(self, call: Call) -> Act:
        old_folder, old, new_folder, new = call.arguments[:4]
        source, target = call.path(old_folder, old), call.path(new_folder, new)
        real = os.path.realpath(os.path.dirname(target))
        if not real.startswith(self.scope) or f"/{OWN}" in real:
            return None
        try:
            found = os.lstat(source)
        except OSError:
            return None
        key = (found.st_dev, found.st_ino)
        if stat.S_ISREG(found.st_mode):
            shown = os.path.join(real, os.path.basename(target))
            for what, where in (("content", self.data), ("metadata", self.metadata)):
                # A link is to a file that has its name already.
                if key in where and found.st_nlink == 1:
                    self.problems.append(f"{shown!r} gets its name before its {what} is synced")
        return self._named(call, new_folder, new)

    def leave(self, call: Call, result: int) -> None:
        """See `Observer`."""
        if (folder := self.naming.pop(call.thread, None)) is not None:
            self.time += 1
            if result >= 0:
                self._changed(self.names, folder)
            return
        began = self.began.pop(call.thread, self.time)
        if result != 0:
            return
        key: Key | None = None
        if call.name != "sync":
            try:
                found = os.stat(call.descriptor(call.arguments[0]))
            except OSError:
                return
            key = (found.st_dev, found.st_ino)
        for where in (self.data, self.metadata, self.names):
            if call.name == "fdatasync" and where is not self.data:
                continue
            for other in list(where):
                covered = key is None or other == key or (call.name == "syncfs" and other[0] == key[0])
                if covered and where[other][0] <= began:
                    del where[other]

    def at_end(self) -> list[str]:
        """Return what is wrong once the command has ended well."""
        lines = list(self.problems)
        there: set[Key] = set()
        for folder, folders, files in os.walk(self.scope):
            for name in [".", *folders, *files]:
                found = os.lstat(os.path.join(folder, name))
                there.add((found.st_dev, found.st_ino))
        for what, where in (("content", self.data), ("metadata", self.metadata), ("names", self.names)):
            for key, (_, path) in where.items():
                # The state folder is removed after the last sync, and the destination's time set once more.
                is_own = f"/{OWN}" in path or (path in (self.scope, self.destination) and where is self.metadata)
                if key in there and not is_own and (where is not self.names or _is_folder(path, key)):
                    lines.append(f"{path!r}: its {what} are not synced when the copy ends")
        return lines


def _is_folder(path: str, key: Key) -> bool:
    """Return True if the folder of these numbers is at a path: of one that was removed another entry may have them."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and (found.st_dev, found.st_ino) == key

"""Trees of the model: read by plain system calls, changed step by step, and the required content of a version."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import stat
from dataclasses import dataclass, field
from pathlib import Path

from tests.copy.model import places
from tests.copy.model.changes import acl, break_link
from tests.copy.model.request import Excluded

Entry = tuple[object, ...]
Tree = dict[bytes, Entry]
"""Entries by path below a folder, without the folder itself."""
Inodes = dict[bytes, tuple[int, int]]
"""Device and inode numbers of the files of a tree, by path: names of one file have the same."""

NAMES = [b"a", b"b", b"c", b"\xff\xfe", b"with space", b"back\\slash", b"\\x41", b"new\nline", "ä".encode()]
BASE_NS = 1_700_000_000_000_000_000
MOUNTS_MAX = 3
"""File systems below a source at once."""


def walk(folder: Path | bytes) -> Tree:
    """Return the tree below a folder; links are not followed. Of the state of copies and backups nothing is read."""
    root = os.fsencode(folder)
    found: Tree = {}

    def visit(below: bytes) -> None:
        for name in sorted(os.listdir(os.path.join(root, below) if below else root)):
            if not below and name in (b".elephan-copy", b".elephan-backup"):
                continue
            path = os.path.join(below, name) if below else name
            full = os.path.join(root, path)
            there = os.lstat(full)
            mode, kind = stat.S_IMODE(there.st_mode), stat.S_IFMT(there.st_mode)
            if kind == stat.S_IFDIR:
                found[path] = ("folder", mode, there.st_uid, there.st_mtime_ns, attributes(full))
                visit(path)
            elif kind == stat.S_IFLNK:
                found[path] = ("link", os.readlink(full), there.st_uid, there.st_mtime_ns)
            else:
                with open(full, "rb") as file:
                    content = hashlib.sha256(file.read()).hexdigest()
                found[path] = ("file", mode, there.st_uid, there.st_mtime_ns, attributes(full), there.st_size, content)

    visit(b"")
    return found


def attributes(path: bytes) -> tuple[tuple[str, bytes], ...]:
    """Return the extended attributes of an entry that belong to it, not to its host; ACLs are among them."""
    names = [name for name in os.listxattr(path) if name.startswith(("user.", "trusted.", "system.posix_acl_"))]
    return tuple((name, os.getxattr(path, name)) for name in sorted(names))


def inodes(folder: Path | bytes, tree: Tree) -> Inodes:
    """Return the numbers of the files of a tree that `walk` has read from a folder."""
    root = os.fsencode(folder)
    files = {path: os.lstat(os.path.join(root, path)) for path, entry in tree.items() if entry[0] == "file"}
    return {path: (there.st_dev, there.st_ino) for path, there in files.items()}


def links_that_differ(real: Inodes, right: Inodes) -> list[str]:
    """Return the names of one file that should be of several, and the other way round, a line each."""
    lines = []
    for one, other, text in ((right, real, "are names of several files"), (real, right, "are names of one file")):
        names: dict[tuple[int, int], list[bytes]] = {}
        for path in sorted(one.keys() & other.keys()):
            names.setdefault(one[path], []).append(path)
        lines += [f"{paths} {text}" for paths in names.values() if len({other[path] for path in paths}) > 1]
    return lines


def parents(path: bytes) -> list[bytes]:
    """Return the paths of the folders above, the highest first, and the path itself."""
    parts = path.split(b"/")
    return [b"/".join(parts[:count]) for count in range(1, len(parts) + 1)]


def is_below(path: bytes, above: bytes) -> bool:
    """Return True if a path lies below another one."""
    return path.startswith(above + b"/")


@dataclass(frozen=True)
class Exclusion:
    """Entries that a job leaves out, by the words of the manual."""

    patterns: tuple[str, ...] = ()
    lead: bytes = b""
    """Path of the source in a copy, with a slash: patterns are of paths there."""

    def names(self, path: bytes, tree: Tree) -> bool:
        """Return True if a pattern names an entry of a tree, or a folder above."""
        excluded = Excluded(self.patterns)
        parts = path.split(b"/")
        return any(
            excluded.names(self.lead + b"/".join(parts[:count]), count < len(parts) or tree[path][0] == "folder")
            for count in range(1, len(parts) + 1)
        )


def unreadable(tree: Tree) -> set[bytes]:
    """Return the paths that the user cannot read, those below an unreadable folder apart."""
    found: set[bytes] = set()
    for path, entry in tree.items():
        if entry[0] != "link" and entry[1] == 0 and not any(is_below(path, above) for above in found):
            found.add(path)
    return found


@dataclass
class Source:
    """The source's folder, and the steps that change it."""

    root: Path
    time: int = 0
    states: list[Tree] = field(default_factory=list)
    """Trees since the version in progress was begun."""
    exclusion: Exclusion = Exclusion()

    def tree(self) -> Tree:
        """Return the entries that a copy has."""
        found = walk(self.root)
        return {path: entry for path, entry in found.items() if not self.exclusion.names(path, found)}

    def mounts(self) -> set[bytes]:
        """Return the mount points whose folders above a copy can list."""
        tree = self.tree()
        return {path for path in places.below(os.fsencode(self.root))
                if path in tree and all(tree[above][1] != 0 for above in parents(path)[:-1])}  # fmt: skip

    def lost(self, path: bytes) -> bool:
        """Return True if what was a mount point is a plain folder, which a run can look at."""
        full, found = self.path(path), walk(self.root)
        return (
            path in found
            and found[path][0] == "folder"
            and not os.path.ismount(full)
            and all(found[above][1] != 0 for above in parents(path))
        )

    def path(self, path: bytes) -> bytes:
        return os.path.join(os.fsencode(self.root), path)

    def _stamp(self, path: bytes) -> None:
        """Give an entry a time that none of its states has had: size and time show changes."""
        self.time += 1
        times = (BASE_NS + self.time * 1_000_003, BASE_NS + self.time * 1_000_003)
        os.utime(path, ns=times, follow_symlinks=False)
        parent = os.path.dirname(path)
        if parent != os.fsencode(self.root):
            os.utime(parent, ns=times)

    def apply(self, step: list[object]) -> None:
        """Change the tree; a step that does not fit does nothing."""
        if step[0] == "gone":
            for name in sorted(unreadable(walk(self.root))):
                self.apply(["remove", name.hex()])
            return
        what, path = str(step[0]), self.path(b"" if step[0] == "unmount" else bytes.fromhex(str(step[1])))
        try:
            if what == "write":
                if os.path.isdir(path) or os.path.islink(path):
                    return
                with open(path, "wb") as file:
                    file.write(hashlib.shake_128(f"{step[2]}".encode()).digest(int(str(step[3]))))
                os.chmod(path, 0o640)
            elif what == "folder":
                os.mkdir(path, 0o755)
            elif what == "link":
                os.symlink(b"target-%d" % int(str(step[2])), path)
            elif what == "hardlink":
                if os.path.islink(path):
                    return
                os.link(path, self.path(bytes.fromhex(str(step[2]))))
                path = self.path(bytes.fromhex(str(step[2])))
            elif what == "break":
                # Size, time and attributes show no change.
                break_link(path, 0, same_time=True)
                return
            elif what == "attribute":
                if os.path.islink(path):
                    return
                change_attribute(path, int(str(step[2])))
                return
            elif what == "mount":
                if not os.path.isdir(path) or os.path.islink(path) or os.path.ismount(path):
                    return
                if len(places.below(os.fsencode(self.root))) >= MOUNTS_MAX:
                    return
                places.mount_tmpfs(path, "size=2m,mode=755")
                with open(os.path.join(path, b"a"), "wb") as file:
                    file.write(hashlib.shake_128(f"{step[2]}".encode()).digest(3000))
            elif what == "unmount":
                there = places.below(os.fsencode(self.root))
                if not there:
                    return
                path = self.path(there[-1])
                places.unmount(path)
                if step[1]:
                    # Something writes to the folder below the mount point.
                    with open(os.path.join(path, b"b"), "wb") as file:
                        file.write(b"log")
            elif what == "hide":
                if os.path.islink(path):
                    return
                os.chmod(path, 0)
            elif what == "show":
                if os.path.islink(path):
                    return
                os.chmod(path, 0o755 if os.path.isdir(path) else 0o644)
            elif what == "remove":
                parent = os.path.dirname(path)
                shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
                if parent != os.fsencode(self.root):
                    self._stamp(parent)
                return
            elif what == "rename":
                os.rename(path, self.path(bytes.fromhex(str(step[2]))))
                path = self.path(bytes.fromhex(str(step[2])))
            self._stamp(path)
        except OSError:
            return


def change_attribute(path: bytes, seed: int) -> None:
    """Set or remove an extended attribute or an ACL; size and time show no change."""
    draw = random.Random(seed)
    there = attributes(path)
    if there and draw.random() < 0.4:
        os.removexattr(path, draw.choice(there)[0])
        return
    name = draw.choice(("user.m", "trusted.m", "system.posix_acl_access"))
    mode = stat.S_IMODE(os.lstat(path).st_mode)
    os.setxattr(path, name, acl(draw, mode) if name.startswith("system") else draw.randbytes(20))


def faults_expected(tree: Tree, hidden: set[bytes], before: list[Tree]) -> tuple[Tree, set[bytes]]:
    """Return what a version of `tree` has to hold, and the faults of which no older version has a copy.

    `before`: older versions, newest first.
    """
    expected = {path: entry for path, entry in tree.items()
                if path not in hidden and not any(is_below(path, above) for above in hidden)}  # fmt: skip
    missing: set[bytes] = set()
    for path in hidden:
        # A folder without rights in an older version could not be listed then either: it is no copy.
        older = next((one for one in before if path in one and one[path][:2] != ("folder", 0)), None)
        if older is None:
            missing.add(path)
            if tree[path][0] == "folder":
                expected[path] = tree[path]
            continue
        if tree[path][0] == "folder" and older[path][0] != "folder":
            # The copy makes the folder, and an entry of the new version is not replaced.
            expected[path] = tree[path]
            continue
        expected |= {name: entry for name, entry in older.items() if name == path or is_below(name, path)}
    return expected, missing


def differences(real: Tree, expected: Tree) -> list[str]:
    """Return what is not as expected, a line each."""
    lines = [f"missing: {path!r}" for path in expected if path not in real]
    lines += [f"nothing should be at {path!r}: {real[path]}" for path in real if path not in expected]
    lines += [f"{path!r} is {real[path]}, and not {expected[path]}" for path in expected
              if path in real and real[path] != expected[path]]  # fmt: skip
    return lines

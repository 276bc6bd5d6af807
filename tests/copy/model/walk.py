"""A tree as plain system calls show it. It shares no code with elephan: this is what every result is judged by."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from dataclasses import dataclass, replace

KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "symlink",
    stat.S_IFIFO: "fifo",
    stat.S_IFCHR: "character device",
    stat.S_IFBLK: "block device",
    stat.S_IFSOCK: "socket",
}
PIECE_BYTES = 1 << 20
XFS_ACL = "trusted.SGI_ACL_"
"""XFS shows root its ACLs a second time, as they are stored (fs/xfs/xfs_acl.c); `system.posix_acl_` has them, too."""


@dataclass(slots=True)
class Node:
    """One entry. Times of access and of the last change of the inode are left out."""

    kind: str
    mode: int
    uid: int
    gid: int
    modified_ns: int
    xattrs: dict[str, bytes]
    content: bytes
    """Hash of a file's bytes, target of a link, numbers of a device."""
    size: int
    inode: tuple[object, ...]
    """Entries with the same are names of the same file."""
    device: int
    links: int = 1
    extents: tuple[tuple[int, int], ...] = ()
    """Parts of a sparse file that hold data."""
    source_owners: tuple[int, int] | None = None
    """Of a prediction: owner and group of the source."""
    owners: frozenset[int] = frozenset()
    """Users of an expected entry, of which any is right; empty: `uid`."""
    unjudged: frozenset[str] = frozenset()
    """Fields of an expected entry that nothing is promised of."""

    def but(self, **changes: object) -> Node:
        """Return it with other fields."""
        return replace(self, **changes)  # type: ignore[arg-type]


Tree = dict[bytes, Node]


def walk(root: bytes, skip: frozenset[bytes] = frozenset()) -> Tree:
    """Return all below `root` by path, mounts too; `b""` is the root itself. Paths in `skip` are left out."""
    tree: Tree = {}
    pending = [b""]
    while pending:
        path = pending.pop()
        node = look(os.path.join(root, path) if path else root)
        if node is None:
            continue
        tree[path] = node
        if node.kind == "folder":
            for name in os.listdir(os.path.join(root, path) if path else root):
                below = path + b"/" + name if path else name
                if below not in skip:
                    pending.append(below)
    return tree


def look(path: bytes) -> Node | None:
    """Return what stands at a path; None: nothing."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    kind = KINDS[stat.S_IFMT(found.st_mode)]
    content = b""
    extents: tuple[tuple[int, int], ...] = ()
    if kind == "file":
        content, extents = _read(path, found)
    elif kind == "symlink":
        content = os.readlink(path)
    elif kind.endswith("device"):
        content = b"%d:%d" % (os.major(found.st_rdev), os.minor(found.st_rdev))
    return Node(
        kind,
        stat.S_IMODE(found.st_mode) if kind != "symlink" else 0o777,
        found.st_uid,
        found.st_gid,
        found.st_mtime_ns,
        _xattrs(path),
        content,
        found.st_size if kind == "file" else 0,
        (found.st_dev, found.st_ino),
        found.st_dev,
        found.st_nlink,
        extents,
    )


def _read(path: bytes, found: os.stat_result) -> tuple[bytes, tuple[tuple[int, int], ...]]:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NOATIME)
    try:
        digest = hashlib.sha256()
        size = 0
        while piece := os.read(handle, PIECE_BYTES):
            digest.update(piece)
            size += len(piece)
        digest.update(b"%d" % size)
        extents = _extents(handle, found.st_size) if found.st_blocks * 512 < found.st_size else ((0, found.st_size),)
        return digest.digest(), extents
    finally:
        os.close(handle)


def _extents(handle: int, size: int) -> tuple[tuple[int, int], ...]:
    found, at = [], 0
    while at < size:
        try:
            begin = os.lseek(handle, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                break
            raise
        end = min(os.lseek(handle, begin, os.SEEK_HOLE), size)
        if begin < end:
            found.append((begin, end))
        at = end
    return tuple(found)


def travels(name: str) -> bool:
    """Return True for attributes that belong to the file, not to its host (docs/design/copy-files.md)."""
    if name in ("system.posix_acl_access", "system.posix_acl_default", "security.capability"):
        return True
    return name.startswith("user.") or (
        name.startswith("trusted.") and not name.startswith(("trusted.overlay.", XFS_ACL))
    )


def _xattrs(path: bytes) -> dict[str, bytes]:
    found = {}
    for name in os.listxattr(path, follow_symlinks=False):
        if travels(name):
            found[name] = os.getxattr(path, name, follow_symlinks=False)
    return found


def children(tree: Tree, folder: bytes) -> list[bytes]:
    """Return the paths directly below a folder, sorted."""
    lead = folder + b"/" if folder else b""
    return sorted(path for path in tree if path and path.startswith(lead) and b"/" not in path[len(lead) :])


def below(tree: Tree, folder: bytes) -> list[bytes]:
    """Return all paths below a folder, sorted."""
    lead = folder + b"/" if folder else b""
    return sorted(path for path in tree if path and path.startswith(lead))


def parent(path: bytes) -> bytes:
    """Return the path of the folder above."""
    return path.rpartition(b"/")[0]

"""Steps that change trees as a user or a program does: by plain system calls, each repeatable from its numbers."""

from __future__ import annotations

import os
import random
import shutil
import stat
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tests.copy.model import places

BLOCK = 4096
CHUNK = 256 << 10
"""Chunks of files below 4 GiB."""
BOUNDARIES = (
    0,
    1,
    511,
    4095,
    4096,
    4097,
    65_536,
    CHUNK - 1,
    CHUNK,
    CHUNK + 1,
    2 * CHUNK - 1,
    2 * CHUNK,
    2 * CHUNK + 1,
    3 * CHUNK,
)
TIME_RANGE_S = (-2_000_000_000, 13_000_000_000)
"""Times that ext4 and XFS both can store: from 1906 to 2381."""
CAPABILITY = struct.pack("<IIIII", 0x02000001, 1 << 10, 0, 0, 0)
"""Version 2 of cap_net_bind_service (linux/capability.h)."""
INODES_MAX = 20_000
"""Most inodes of a new tmpfs that are used up for one of a certain number."""
STATE = b".elephan-copy"
"""Folder of the states of copies."""
Step = list[Any]


def content(seed: int, size: int) -> bytes:
    """Return bytes by seed: random ones, zeros, or one block again and again."""
    draw = random.Random(seed)
    kind = draw.randrange(8)
    if kind == 0:
        return bytes(size)
    if kind == 1:
        block = draw.randbytes(4096)
        return (block * (size // 4096 + 1))[:size]
    return draw.randbytes(size)


def time_of(seed: int) -> int:
    """Return a time by seed, ns: most are unlike any other."""
    draw = random.Random(seed * 7919 + 1)
    if draw.random() < 0.2:
        return draw.randrange(*TIME_RANGE_S) * 10**9 + draw.choice((0, 1, 999_999_999, draw.randrange(10**9)))
    return draw.randrange(1_000_000_000, 1_900_000_000) * 10**9 + draw.randrange(10**9)


def touch(path: bytes, seed: int) -> None:
    """Set the time of the last change by seed."""
    os.utime(path, ns=(10**18, time_of(seed)), follow_symlinks=False)


def acl(draw: random.Random, mode: int, *, default: bool = False) -> bytes:
    """Return a POSIX ACL as an attribute (linux/posix_acl_xattr.h) whose owner and others are those of `mode`."""
    none = 0xFFFFFFFF
    entries = [(0x01, mode >> 6 & 7, none), (0x02, draw.randrange(8), draw.randrange(1, 9000))]
    entries += [(0x04, draw.randrange(8), none)]
    if draw.random() < 0.5:
        entries.append((0x08, draw.randrange(8), draw.randrange(1, 9000)))
    entries += [(0x10, mode >> 3 & 7 if not default else 7, none), (0x20, mode & 7, none)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


# Each takes the path and the step's numbers. What is not there any more is left alone: a shrunk run lacks steps.


def create_file(path: bytes, seed: int, size: int, holes: str = "") -> None:
    """Make a file, replacing an existing entry. `holes`: "end", "begin", "middle", "all", "many"."""
    if os.path.lexists(path) and not is_file(path):
        # A FIFO would be waited for, and a device written to.
        raise FileExistsError(path)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644)
    try:
        data = content(seed, size)
        begin, end = {"": (0, size), "end": (0, size // 2), "begin": (size // 2, size), "all": (0, 0)}.get(
            holes, (size // 3, size // 2)
        )
        parts = [(at, at + BLOCK) for at in range(0, size, 2 * BLOCK)] if holes == "many" else [(begin, end)]
        for begin, end in parts:
            if begin < end:
                _write(handle, data[begin:end], begin)
        os.truncate(handle, size)
    finally:
        os.close(handle)
    touch(path, seed)


def is_file(path: bytes) -> bool:
    """Return True for a regular file, and not for a link to one."""
    return stat.S_ISREG(os.lstat(path).st_mode)


def _write(handle: int, data: bytes, at: int) -> None:
    while data:
        count = os.pwrite(handle, data, at)
        data, at = data[count:], at + count


def create(path: bytes, kind: str, seed: int) -> None:
    """Make an entry without content of its own."""
    draw = random.Random(seed)
    if kind == "folder":
        os.mkdir(path, 0o755)
    elif kind == "symlink":
        target = draw.choice(
            (
                b"a",
                b"../dst",
                b"/nowhere",
                b"../sib",
                b"../../sib",
                b"../src2",
                b".",
                b"x" * draw.randrange(1, 300),
                draw.randbytes(9).replace(b"\0", b"_"),
            )
        )
        os.symlink(target, path)
    elif kind == "fifo":
        os.mkfifo(path, 0o644)
    elif kind == "socket":
        os.mknod(path, 0o140644)
    else:
        what = 0o020600 if kind == "character device" else 0o060600
        os.mknod(path, what, os.makedev(draw.randrange(240, 255), draw.randrange(200)))
    touch(path, seed)


def resize(path: bytes, size: int, seed: int, stealth: bool = False) -> None:
    """Truncate or extend a file by a number drawn from the seed."""
    handle, before = _opened(path)
    try:
        size = max(0, size)
        if size > before.st_size and seed % 3:
            _write(handle, content(seed, size - before.st_size), before.st_size)
        else:
            os.truncate(handle, size)
    finally:
        os.close(handle)
    _timed(path, before, seed, stealth)


def rewrite(path: bytes, at: int, count: int, seed: int, stealth: bool = False) -> None:
    """Change bytes in the middle of a file, which keeps its size; `stealth`: and its time."""
    handle, before = _opened(path)
    try:
        at = min(at, max(0, before.st_size - 1))
        count = min(count, before.st_size - at)
        if count > 0:
            old = os.pread(handle, count, at)
            _write(handle, bytes(byte ^ (seed % 255 + 1) for byte in old), at)
    finally:
        os.close(handle)
    _timed(path, before, seed, stealth)


def punch(path: bytes, at: int, count: int, seed: int) -> None:
    """Make a hole in a file."""
    handle, before = _opened(path)
    try:
        at = min(at, before.st_size)
        places.punch(handle, at, max(1, min(count, max(1, before.st_size - at))))
    finally:
        os.close(handle)
    _timed(path, before, seed, False)


def preallocate(path: bytes, count: int, seed: int) -> None:
    """Reserve blocks beyond what is written: the file reads as zeros there."""
    handle, before = _opened(path)
    try:
        os.posix_fallocate(handle, before.st_size, max(1, count))
    finally:
        os.close(handle)
    _timed(path, before, seed, False)


def _opened(path: bytes) -> tuple[int, os.stat_result]:
    if not os.path.isfile(path) or os.path.islink(path):
        raise FileNotFoundError(path)
    handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    return handle, os.fstat(handle)


NEAR_NS = (1, -1, 1000, -999_999, 1_000_000, 10**9)
"""Differences of times that a comparison of less than ns does not see, and one of a whole second."""


def _timed(path: bytes, before: os.stat_result, seed: int, stealth: bool) -> None:
    draw = random.Random(seed * 31 + 7)
    if stealth:
        os.utime(path, ns=(10**18, before.st_mtime_ns))
    elif draw.random() < 0.2:
        os.utime(path, ns=(10**18, before.st_mtime_ns + draw.choice(NEAR_NS)))
    else:
        touch(path, seed)


def rewrite_all(path: bytes, seed: int) -> None:
    """Change a byte in each block of all files below a folder, which keep size and time."""
    for folder, _, names in os.walk(path):
        for name in sorted(names):
            file = folder + b"/" + name
            # A write takes capabilities and set-user-ID away.
            if is_file(file) and not os.lstat(file).st_mode & 0o6000 and os.lstat(file).st_nlink == 1:
                if "security.capability" not in os.listxattr(file):
                    rewrite(file, 0, os.lstat(file).st_size, seed, True)


def remove_files(path: bytes, _: int) -> None:
    """Remove all files below a folder, but for the states of copies."""
    for folder, folders, names in os.walk(path):
        folders[:] = [name for name in folders if name != STATE]
        for name in names:
            if is_file(folder + b"/" + name):
                os.unlink(folder + b"/" + name)


def cut_parts(path: bytes, seed: int) -> None:
    """Cut all parts of unfinished copies below a folder; most are extended again, with a hole.

    Empty ones lose their time, as in a power cut.
    """
    draw = random.Random(seed)
    for folder, _, names in os.walk(path):
        for name in sorted(names):
            file = folder + b"/" + name
            if STATE not in file or not name.endswith(b".part") or not is_file(file):
                continue
            if (size := os.lstat(file).st_size) == 0:
                os.utime(file)
            else:
                os.truncate(file, draw.randrange(size))
                if draw.random() < 0.75:
                    os.truncate(file, size)


def swap(path: bytes, other: bytes) -> None:
    """Let two entries change places, as an editor or a rotation of logs does."""
    for name in (path, other):
        os.lstat(name)
    if path.startswith(other + b"/") or other.startswith(path + b"/") or path == other:
        return
    between = path + b".swap"
    os.rename(path, between)
    os.rename(other, path)
    os.rename(between, other)


def move(path: bytes, other: bytes) -> None:
    """Rename."""
    if other.startswith(path + b"/") or os.path.lexists(other):
        return
    os.rename(path, other)


def create_twin(folder: bytes, beside: bytes, seed: int) -> None:
    """Make a file of two names in a new tmpfs, with the inode number that a file of several names has below `beside`.

    A tmpfs gives its numbers one after the other.
    """
    there = sorted(os.path.join(above, name) for above, _, names in os.walk(beside) for name in names)
    found = [one for one in map(os.lstat, there) if stat.S_ISREG(one.st_mode) and one.st_nlink > 1]
    device = os.lstat(folder).st_dev
    number = next((one.st_ino for one in found if one.st_dev != device and one.st_ino < INODES_MAX), 0)
    path = folder + b"/twin"
    os.mknod(path)
    while os.lstat(path).st_ino < number:
        os.unlink(path)
        os.mknod(path)
    create_file(path, seed, 2000)
    os.link(path, folder + b"/twin2")


def hard_link(path: bytes, other: bytes) -> None:
    """Give a file another name."""
    if os.path.isfile(path) and not os.path.islink(path) and not os.path.lexists(other):
        os.link(path, other, follow_symlinks=False)


def break_link(path: bytes, seed: int, same_time: bool) -> None:
    """Make a name of a file a file of its own, with the same content."""
    if os.path.islink(path) or not os.path.isfile(path):
        return
    before = os.lstat(path)
    between = path + b".own"
    shutil.copyfile(path, between)
    if same_time:
        # As it was, but for the links.
        os.chown(between, before.st_uid, before.st_gid)
        for name in os.listxattr(path):
            if not name.startswith("security.selinux"):
                os.setxattr(between, name, os.getxattr(path, name))
    os.chmod(between, before.st_mode & (0o7777 if same_time else 0o777))
    os.rename(between, path)
    if same_time:
        os.utime(path, ns=(10**18, before.st_mtime_ns))
    else:
        touch(path, seed)


def replace(path: bytes, seed: int, size: int) -> None:
    """Write a file beside and rename it, as programs do that save."""
    if os.path.isdir(path) and not os.path.islink(path):
        return
    between = path + b".new"
    create_file(between, seed, size)
    os.rename(between, path)


def change_type(path: bytes, kind: str, seed: int) -> None:
    """Replace an entry by one of another kind."""
    remove(path)
    if kind == "file":
        create_file(path, seed, seed % 5000)
    else:
        create(path, kind, seed)
        if kind == "folder" and seed % 2:
            create_file(path + b"/inside", seed, seed % 3000)


def remove(path: bytes) -> None:
    """Remove an entry with all below it."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def chmod(path: bytes, mode: int) -> None:
    """Set the mode."""
    if not os.path.islink(path):
        os.chmod(path, mode)


def chown(path: bytes, uid: int, gid: int, mode: int | None = None) -> None:
    """Set owner and group, then the mode: chown(2) clears set-user-ID."""
    os.lchown(path, uid, gid)
    if mode is not None and not os.path.islink(path):
        os.chmod(path, mode)


def set_attribute(path: bytes, seed: int) -> None:
    """Set or remove an extended attribute, an ACL or a capability."""
    draw = random.Random(seed)
    found = os.lstat(path)
    is_regular, is_folder = stat.S_ISREG(found.st_mode), stat.S_ISDIR(found.st_mode)
    there = os.listxattr(path, follow_symlinks=False)
    if there and draw.random() < 0.3:
        name = draw.choice(sorted(there))
        if not name.startswith("security.selinux"):
            os.removexattr(path, name, follow_symlinks=False)
        return
    choices = ["trusted.m" + draw.choice("abc")]
    if is_regular or is_folder:
        choices += ["user.m" + draw.choice("abc"), "user.m" + draw.choice("abc"), "system.posix_acl_access"]
    if is_folder:
        choices.append("system.posix_acl_default")
    if is_regular:
        choices.append("security.capability")
    name = draw.choice(choices)
    if name.startswith("system"):
        value = acl(draw, found.st_mode, default=name.endswith("default"))
    elif name.startswith("security"):
        value = CAPABILITY
    else:
        value = draw.randbytes(draw.choice((0, 1, 20, 300)))
    os.setxattr(path, name, value, follow_symlinks=False)


def socket_name(path: bytes, seed: int) -> None:
    """Make a socket's name."""
    create(path, "socket", seed)


CHANGES: dict[str, Callable[..., None]] = {
    "file": create_file,
    "create": create,
    "resize": resize,
    "rewrite": rewrite,
    "rewrite all": rewrite_all,
    "remove files": remove_files,
    "cut parts": cut_parts,
    "punch": punch,
    "preallocate": preallocate,
    "swap": swap,
    "move": move,
    "link": hard_link,
    "break": break_link,
    "replace": replace,
    "type": change_type,
    "remove": remove,
    "chmod": chmod,
    "chown": chown,
    "attribute": set_attribute,
    "touch": touch,
}
"""Kinds of change by the first word of a step. A step is `[kind, path, ...]`, with bytes as latin-1."""

OTHER_PATHS = {"swap", "move", "link"}
"""Changes whose second argument is a path."""


def apply(root: bytes, step: Step) -> None:
    """Make a change. What it needs may be missing: then it does nothing."""
    kind, path, *rest = step
    full = root + b"/" + str(path).encode("latin-1")
    if kind in OTHER_PATHS:
        rest = [root + b"/" + str(rest[0]).encode("latin-1"), *rest[1:]]
    with suppress(FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError, OSError):
        CHANGES[str(kind)](full, *rest)

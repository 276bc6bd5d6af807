"""Files that a user names, read with bounds: a regular file of a size that its kind can have, or a clear refusal.

A path may lead to a device that never ends, to a FIFO that no process writes, or to a sparse file larger than the
memory. Neither may a command read such a file whole, nor wait for it where a signal does not end it. `tests/tidy`
holds that other modules read a user's files by these functions.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from elephan.units import binary_size

BLOCK_BYTES = 1 << 20
"""Read at once."""


@dataclass(frozen=True)
class Kind:
    """A kind of file, as messages name it, and the largest size that it can have."""

    name: str
    bytes_max: int


TOML = Kind("a TOML file", 4 << 20)
"""Scenario, configuration, book of hosts, claims: 10,000 flows with 10 keys each have 2 MB."""

KEY = Kind("a file with a key or secret", 64 << 10)
"""The largest in use, an RSA key of 16,384 bits in PEM, has 13 kB."""

CERTIFICATE = Kind("a PEM file", 4 << 20)
"""A bundle of authorities: Debian's has 220 kB."""

TEXT = Kind("a text file", 1 << 20)
"""Lists of URLs and tokens: 10,000 entries of 100 bytes."""

SOURCE = Kind("a C file", 1 << 20)
"""A congestion control: Linux's largest, BBR, has 43 kB. The core has the same bound (crates/user-files)."""

DISK_MODEL = Kind("a description of a disk", 16 << 20)
"""DiskSim's seek tables have a line per distance measured, some 100 kB. The core has the same bound."""

STATE = Kind("a JSON file", 64 << 20)
"""Receipts and settings of a copy: at most some thousand faults, each with a path of up to 4 KiB."""


class UnfitFile(OSError):
    """A path that cannot be read as a user's file, for its type or its size. `strerror` says why."""


def read_bytes(path: Path | str, kind: Kind) -> bytes:
    """Return a file's content. Raises `UnfitFile` for what is no regular file or too large, `OSError`."""
    return read_with_status(path, kind)[0]


def read_with_status(path: Path | str, kind: Kind) -> tuple[bytes, os.stat_result]:
    """Return a file's content and its status, both of one opened file. Raises `UnfitFile`, `OSError`."""
    handle = open_regular(path)
    try:
        status = os.fstat(handle)
        _must_fit(status.st_size, kind, path)
        content = bytearray()
        # Once more than the bound at most: a file may grow, and one of /proc has no size.
        while block := os.read(handle, min(BLOCK_BYTES, kind.bytes_max + 1 - len(content))):
            content += block
            _must_fit(len(content), kind, path)
        return bytes(content), status
    finally:
        os.close(handle)


def read_text(path: Path | str, kind: Kind, encoding: str = "utf-8") -> str:
    """Return a file's text with line ends as "\\n". Raises `UnfitFile`, `OSError`, `UnicodeDecodeError`."""
    return read_bytes(path, kind).decode(encoding).replace("\r\n", "\n").replace("\r", "\n")


def sha256_of(path: Path | str) -> tuple[str, int]:
    """Return the SHA-256 of a regular file, in hexadecimal, and its bytes. Raises `UnfitFile`, `OSError`."""
    handle = open_regular(path)
    try:
        digest, size = hashlib.sha256(), 0
        while block := os.read(handle, BLOCK_BYTES):
            digest.update(block)
            size += len(block)
        return digest.hexdigest(), size
    finally:
        os.close(handle)


def must_be_regular(path: Path | str, kind: Kind) -> None:
    """Check a file that a library opens by its path. Raises `UnfitFile`, `OSError`."""
    handle = open_regular(path)
    try:
        _must_fit(os.fstat(handle).st_size, kind, path)
    finally:
        os.close(handle)


def open_regular(path: Path | str) -> int:
    """Open a regular file, or a link to one, to be read. Raises `UnfitFile`, `OSError`."""
    # Before it is opened: to open a device may change it, such as a tape's position.
    _must_be_regular(os.stat(path), path)
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _must_be_regular(os.fstat(handle), path)
    except OSError:
        os.close(handle)
        raise
    return handle


def _must_be_regular(status: os.stat_result, path: Path | str) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    types = {stat.S_IFIFO: "a FIFO or pipe", stat.S_IFSOCK: "a socket"}
    found = types.get(stat.S_IFMT(status.st_mode), "a device")
    raise UnfitFile(errno.EINVAL, f"it is {found}; a regular file is needed", str(path))


def _must_fit(size: int, kind: Kind, path: Path | str) -> None:
    if size > kind.bytes_max:
        most = binary_size(kind.bytes_max)
        raise UnfitFile(errno.EFBIG, f"it has {binary_size(size)}; {kind.name} has at most {most}", str(path))

"""Data acknowledged as durable is on the drive when the answer comes, and still there after kill -9."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.iscsi.conftest import Target

BLOCK = 512
CACHESTAT = 451
"""Number of cachestat(2) on every architecture (Linux 6.5)."""


class Range(ctypes.Structure):
    """struct cachestat_range."""

    _fields_ = [("off", ctypes.c_uint64), ("len", ctypes.c_uint64)]


class Cached(ctypes.Structure):
    """struct cachestat: pages."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("cache", "dirty", "writeback", "evicted", "recently_evicted")]


def unwritten(path: Path, at: int, length: int) -> int:
    """Return how many pages of a file's range the kernel still has to write. Skips where it cannot tell."""
    libc = ctypes.CDLL(None, use_errno=True)
    cached = Cached()
    handle = os.open(path, os.O_RDONLY)
    try:
        failed = libc.syscall(CACHESTAT, handle, ctypes.byref(Range(at, length)), ctypes.byref(cached), 0)
    finally:
        os.close(handle)
    if failed:
        pytest.skip(f"needs cachestat(2), Linux 6.5: {os.strerror(ctypes.get_errno())}")
    return int(cached.dirty + cached.writeback)


def library() -> ctypes.CDLL:
    """Return libiscsi."""
    name = ctypes.util.find_library("iscsi")
    if name is None:
        pytest.skip("needs libiscsi (Debian package libiscsi7)")
    iscsi = ctypes.CDLL(name)
    iscsi.iscsi_create_context.restype = ctypes.c_void_p
    iscsi.iscsi_get_error.restype = ctypes.c_char_p
    for call in ("iscsi_write10_sync", "iscsi_synchronizecache10_sync"):
        getattr(iscsi, call).restype = ctypes.POINTER(ctypes.c_int)
    return iscsi


class Session:
    """A session of libiscsi's."""

    def __init__(self, iscsi: ctypes.CDLL, url: str) -> None:
        """Log in."""
        match = re.fullmatch(r"iscsi://([^/]+)/([^/]+)/(\d+)", url)
        assert match is not None
        self.iscsi, self.lun = iscsi, int(match[3])
        self.context = ctypes.c_void_p(iscsi.iscsi_create_context(b"iqn.2026-01.example:durable"))
        iscsi.iscsi_set_targetname(self.context, match[2].encode())
        # ISCSI_SESSION_NORMAL.
        iscsi.iscsi_set_session_type(self.context, 2)
        assert iscsi.iscsi_full_connect_sync(self.context, match[1].encode(), self.lun) == 0, self.error()

    def error(self) -> str:
        """Return libiscsi's error."""
        return str(self.iscsi.iscsi_get_error(self.context))

    def write(self, lba: int, data: bytes, *, fua: bool) -> None:
        """WRITE(10); returns when it was acknowledged."""
        # wrprotect, dpo, fua, fua_nv, group.
        task = self.iscsi.iscsi_write10_sync(self.context, self.lun, lba, data, len(data), BLOCK, 0, 0, int(fua), 0, 0)
        # The first field of a task is its status.
        assert task, self.error()
        assert task[0] == 0, self.error()

    def flush(self) -> None:
        """SYNCHRONIZE CACHE(10) of all blocks."""
        task = self.iscsi.iscsi_synchronizecache10_sync(self.context, self.lun, 0, 0, 0, 0)
        assert task, self.error()
        assert task[0] == 0, self.error()


@contextmanager
def session(url: str) -> Iterator[Session]:
    """Log in; at the end free the context without a logout, since the target may be gone."""
    one = Session(library(), url)
    yield one
    one.iscsi.iscsi_destroy_context(one.context)


def pattern(number: int, blocks: int) -> bytes:
    """Return blocks that differ from one another and from those of another number."""
    return b"".join(bytes([number, at % 251]) * (BLOCK // 2) for at in range(blocks))


def held(image: Path) -> None:
    """Skip where files are in memory: there is no drive behind, and pages stay to be written."""
    probe = image.with_suffix(".probe")
    probe.write_bytes(bytes(4096))
    handle = os.open(probe, os.O_RDWR)
    os.fsync(handle)
    os.close(handle)
    if unwritten(probe, 0, 4096):
        pytest.skip("needs a temporary directory on a drive")


def test_a_write_with_fua_is_on_the_drive_when_it_is_acknowledged_and_there_after_kill_9(
    image: Path, target: Target
) -> None:
    held(image)
    data = pattern(1, 256)
    with session(target.url) as host:
        for at in range(4):
            host.write(at * 1024, data, fua=True)
            assert unwritten(image, at * 1024 * BLOCK, len(data)) == 0
        target.kill()
    with image.open("rb") as file:
        for at in range(4):
            file.seek(at * 1024 * BLOCK)
            assert file.read(len(data)) == data


def test_synchronize_cache_puts_all_that_was_acknowledged_on_the_drive(image: Path, target: Target) -> None:
    held(image)
    data = pattern(2, 256)
    with session(target.url) as host:
        waited = 0
        for at in range(16):
            host.write(at * 1024, data, fua=False)
            waited += unwritten(image, at * 1024 * BLOCK, len(data))
        # Without FUA they are in the page cache, which is the write cache that WCE tells of.
        assert waited > 0
        host.flush()
        assert unwritten(image, 0, 16 * 1024 * BLOCK) == 0
        target.kill()
    with image.open("rb") as file:
        for at in range(16):
            file.seek(at * 1024 * BLOCK)
            assert file.read(len(data)) == data


def test_what_was_acknowledged_without_either_survives_kill_9_of_the_target(image: Path, target: Target) -> None:
    data = pattern(3, 64)
    with session(target.url) as host:
        host.write(5000, data, fua=False)
        target.kill()
    with image.open("rb") as file:
        file.seek(5000 * BLOCK)
        assert file.read(len(data)) == data

"""Logs of dm-log-writes are read as the kernel documents them; a cut is a disk that a power cut may leave."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.power_cut.write_log import DISCARD, FLUSH, FUA, MARK, Cut, Disk, cuts, read

SECTOR = 512
DISK_BYTES = 1 << 20


def log_of(*entries: tuple[int, bytes, int]) -> bytes:
    """Return a log of (first sector, data, flags): Documentation/admin-guide/device-mapper/log-writes.rst."""
    content = struct.pack("<QQQI", 0x6A736677736872, 1, len(entries), SECTOR).ljust(SECTOR, b"\0")
    for sector, data, flags in entries:
        if flags & MARK:
            content += (struct.pack("<QQQQ", 0, 0, flags, len(data)) + data).ljust(SECTOR, b"\0")
        elif flags & DISCARD:
            content += struct.pack("<QQQQ", sector, len(data) // SECTOR, flags, 0).ljust(SECTOR, b"\0")
        else:
            head = struct.pack("<QQQQ", sector, len(data) // SECTOR, flags, 0)
            content += head.ljust(SECTOR, b"\0") + data
    return content


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    """Return a disk: A, B flushed; C volatile, D with FUA, a mark, E volatile and large; then a flush."""
    log = log_of(
        (0, b"A" * 4096, 0),
        (8, b"B" * 4096, 0),
        (0, b"", FLUSH),
        (0, b"C" * 4096, 0),
        (16, b"D" * 4096, FUA),
        (0, b"acknowledged", MARK),
        (64, b"E" * 65_536, 0),
        (8, bytes(4096), DISCARD),
        (0, b"", FLUSH),
    )
    (tmp_path / "log").write_bytes(log)
    (tmp_path / "image").write_bytes(b"-" * DISK_BYTES)
    return Disk(tmp_path / "image", tmp_path / "log")


def state(disk: Disk, cut: Cut, folder: Path) -> bytes:
    disk.cut(cut, folder / "cut")
    return (folder / "cut").read_bytes()


def test_a_cut_behind_a_flush_has_all_that_was_logged_before(disk: Disk, tmp_path: Path) -> None:
    found = state(disk, Cut(2, 3, "flush"), tmp_path)
    assert found == b"A" * 4096 + b"B" * 4096 + b"-" * (DISK_BYTES - 8192)
    found = state(disk, Cut(8, 9, "flush"), tmp_path)
    expected = b"C" * 4096 + bytes(4096) + b"D" * 4096
    expected = expected.ljust(64 * SECTOR, b"-") + b"E" * 65_536
    assert found == expected.ljust(DISK_BYTES, b"-")
    assert disk.marks(Cut(2, 3, "flush")) == [] and disk.marks(Cut(8, 9, "flush")) == ["acknowledged"]


def test_without_a_flush_any_part_of_the_writes_may_be_there_but_fua_is(disk: Disk, tmp_path: Path) -> None:
    first: set[bytes] = set()
    large: set[int] = set()
    whole_large: set[int] = set()
    for seed in range(40):
        for kind in ("writes", "blocks"):
            found = state(disk, Cut(2, 7, kind, seed), tmp_path)
            assert found[4096:8192] == b"B" * 4096 and found[8192:12_288] == b"D" * 4096
            first.add(found[:4096])
            blocks = {found[at : at + 4096] for at in range(64 * SECTOR, 64 * SECTOR + 65_536, 4096)}
            assert blocks <= {b"E" * 4096, b"-" * 4096}
            (large if kind == "blocks" else whole_large).add(len(blocks))
    assert first == {b"A" * 4096, b"C" * 4096}
    assert whole_large == {1} and 2 in large


def test_cuts_come_in_the_order_of_the_log_and_keep_what_the_last_flush_has_made_durable(disk: Disk) -> None:
    found = cuts(disk.entries, 500, seed=1)
    assert sum(cut.kind == "flush" for cut in found) == 2 and len(found) == 2 + 1 + 500
    assert [cut.flushed for cut in found] == sorted(cut.flushed for cut in found)
    for cut in found:
        assert cut.flushed == (8 if cut.end == 9 else 2 if cut.end >= 3 else 0)


def test_another_file_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(bytes(4096))
    with pytest.raises(ValueError, match="is no log of dm-log-writes"):
        read(tmp_path / "log")

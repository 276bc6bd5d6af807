"""The log of dm-log-writes, and the disks that a power cut may leave at any point of it.

The format is that of Documentation/admin-guide/device-mapper/log-writes.rst and drivers/md/dm-log-writes.c: a super
block, then for each bio an entry of one sector and its data. Writes are logged in the order in which they completed,
before the flush that made them durable.
"""

from __future__ import annotations

import os
import random
import struct
from dataclasses import dataclass
from pathlib import Path

MAGIC = 0x6A736677736872
FLUSH, FUA, DISCARD, MARK = 1, 2, 4, 8
SECTOR_BYTES = 512
BLOCK_BYTES = 4096
"""The smallest piece of a write that a power cut leaves out."""

_SUPER = struct.Struct("<QQQI")
_ENTRY = struct.Struct("<QQQQ")


@dataclass(frozen=True, slots=True)
class Entry:
    """A bio of the logged device, or a mark."""

    at: int
    """First byte on the device."""
    size: int
    """Bytes."""
    flags: int
    data_at: int
    """Position of the data in the log, bytes."""
    mark: str | None = None

    @property
    def is_flush(self) -> bool:
        """Return True if writes before it are durable when it is complete."""
        return bool(self.flags & FLUSH)

    @property
    def is_durable(self) -> bool:
        """Return True if the write itself is durable when it is complete."""
        return bool(self.flags & FUA)


def read(log: Path) -> list[Entry]:
    """Return the entries of a log. Raises ValueError if the file is not one."""
    entries = []
    with log.open("rb") as file:
        magic, version, count, sector = _SUPER.unpack(file.read(_SUPER.size))
        if magic != MAGIC or version != 1:
            raise ValueError(f"{log}: is no log of dm-log-writes, version 1")
        at = sector
        for _ in range(count):
            file.seek(at)
            first, sectors, flags, length = _ENTRY.unpack(file.read(_ENTRY.size))
            mark = file.read(length).decode() if flags & MARK else None
            # The kernel's own, when the device is removed.
            mark = None if mark == "dm-log-writes-end" else mark
            size = sectors * sector
            entries.append(Entry(first * sector, size, flags, at + sector, mark))
            at += sector + (0 if flags & DISCARD else size)
    return entries


@dataclass(frozen=True, slots=True)
class Cut:
    """A power cut: the disk has all entries before `flushed`, and of those from there to `end` what `seed` leaves."""

    flushed: int
    end: int
    kind: str
    """"flush": all that was logged; "prefix": all before `end`; "writes" and "blocks": a random part of what no flush
    made durable, by whole writes or by blocks."""
    seed: int = 0


def cuts(entries: list[Entry], between: int, seed: int) -> list[Cut]:
    """Return a cut behind every flush and every mark, and `between` random ones, in the order of the log."""
    durable = [0]
    """By the number of entries: those that the last flush among them has made durable."""
    for at, entry in enumerate(entries):
        durable.append(at if entry.is_flush else durable[-1])
    found = [Cut(at, at + 1, "flush") for at, entry in enumerate(entries) if entry.is_flush]
    found += [Cut(durable[at + 1], at + 1, "prefix") for at, entry in enumerate(entries) if entry.mark is not None]
    draw = random.Random(seed)
    for number in range(between):
        end = draw.randrange(1, len(entries) + 1)
        found.append(Cut(durable[end], end, ("prefix", "writes", "blocks")[number % 3], draw.randrange(1 << 30)))
    return sorted(found, key=lambda cut: (cut.end, cut.flushed))


class Disk:
    """The image of a disk that follows a log; `cut` makes copies of it as a power cut leaves them."""

    def __init__(self, image: Path, log: Path) -> None:
        """`image`: the disk before the first entry. It is changed."""
        self.image, self.entries = image, read(log)
        self.applied = 0
        self._image = os.open(image, os.O_RDWR)
        self._log = os.open(log, os.O_RDONLY)

    def close(self) -> None:
        """Close both files."""
        os.close(self._image)
        os.close(self._log)

    def marks(self, cut: Cut) -> list[str]:
        """Return the marks that were made before a cut."""
        return [entry.mark.replace("_", " ") for entry in self.entries[: cut.end] if entry.mark is not None]

    def cut(self, cut: Cut, target: Path) -> None:
        """Write the disk of a cut to `target`. Cuts have to come in the order of the log."""
        while self.applied < cut.flushed:
            self._apply(self._image, self.entries[self.applied], None)
            self.applied += 1
        _copy(self._image, target)
        draw = random.Random(cut.seed)
        handle = os.open(target, os.O_RDWR)
        try:
            for entry in self.entries[cut.flushed : cut.end]:
                if entry.is_durable or cut.kind in ("flush", "prefix"):
                    self._apply(handle, entry, None)
                elif cut.kind == "blocks":
                    self._apply(handle, entry, draw)
                elif draw.random() < 0.5:
                    self._apply(handle, entry, None)
        finally:
            os.close(handle)

    def _apply(self, handle: int, entry: Entry, draw: random.Random | None) -> None:
        if not entry.size:
            return
        data = bytes(entry.size) if entry.flags & DISCARD else os.pread(self._log, entry.size, entry.data_at)
        step = BLOCK_BYTES if draw is not None else entry.size
        for at in range(0, entry.size, step):
            if draw is None or draw.random() < 0.5:
                os.pwrite(handle, data[at : at + step], entry.at + at)


def _copy(source: int, target: Path) -> None:
    """Copy a sparse file: only what holds data."""
    size = os.fstat(source).st_size
    handle = os.open(target, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.truncate(handle, size)
        at = 0
        while at < size:
            try:
                begin = os.lseek(source, at, os.SEEK_DATA)
            except OSError:
                break
            at = os.lseek(source, begin, os.SEEK_HOLE)
            os.lseek(handle, begin, os.SEEK_SET)
            while begin < at:
                begin += os.sendfile(handle, source, begin, at - begin)
    finally:
        os.close(handle)

"""Block devices as source and destination of a copy: loop devices on files."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

from tests.copy.model.changes import CHUNK

SIZES = (4096, CHUNK - 512, CHUNK, 2 * CHUNK + 512, 5 * CHUNK)
"""Of a source, bytes; a device has whole sectors."""
RUN_MAX = 300_000


class Devices:
    """A source and a destination, one of them or both a block device, and the bytes that have to be there."""

    def __init__(self, folder: Path, which: str, seed: int) -> None:
        """`which`: "to" a device, "from" one, "both"."""
        self.folder, self.which, self.random = folder, which, random.Random(seed)
        self.size = self.random.choice(SIZES)
        self.more = b"" if which == "from" else self.random.randbytes(self.random.choice((0, 4096, CHUNK)))
        """Bytes of the destination behind the source's: they stay."""
        self.loops: list[str] = []

    def __enter__(self) -> Devices:
        """Make them."""
        source, target = self.folder / "source", self.folder / "target"
        self.content = b"".join(self._runs(self.size))
        with source.open("wb") as file:
            file.truncate(self.size)
            self._write(file.fileno())
        # The destination has some of the source's bytes already, and others where the source has zeros.
        old = bytearray(self.random.randbytes(self.size))
        if self.random.random() < 0.5:
            end = self.random.randrange(self.size)
            old[:end] = self.content[:end]
        if self.which != "from":
            target.write_bytes(bytes(old) + self.more)
        try:
            self.source = self._loop(source) if self.which != "to" else os.fsencode(source)
            self.target = self._loop(target) if self.which != "from" else os.fsencode(target)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Detach them."""
        for loop in self.loops:
            subprocess.run(["losetup", "--detach", loop], check=False, capture_output=True)

    def _loop(self, file: Path) -> bytes:
        done = subprocess.run(["losetup", "--find", "--show", str(file)], check=True, capture_output=True, text=True)
        self.loops.append(done.stdout.strip())
        return self.loops[-1].encode()

    def _runs(self, size: int) -> list[bytes]:
        """Return runs of zeros and of other bytes."""
        found: list[bytes] = []
        while size > 0:
            count = min(size, self.random.randrange(1, RUN_MAX))
            found.append(bytes(count) if self.random.random() < 0.5 else self.random.randbytes(count))
            size -= count
        return found

    def _write(self, handle: int) -> None:
        """Write the content; blocks of zeros stay holes in a new file."""
        for at in range(0, self.size, 4096):
            block = self.content[at : at + 4096]
            if any(block):
                os.pwrite(handle, block, at)

    def change(self) -> None:
        """Write other bytes to a part of the source; its size and time stay."""
        begin = self.random.randrange(self.size)
        count = min(self.size - begin, self.random.randrange(1, RUN_MAX))
        there = os.stat(self.source)
        other = self.random.choice((bytes(count), self.random.randbytes(count)))
        self.content = self.content[:begin] + other + self.content[begin + count :]
        with open(self.source, "r+b") as file:
            file.seek(begin)
            file.write(other)
            file.flush()
            os.fsync(file.fileno())
        if self.which == "to":
            os.utime(self.source, ns=(there.st_atime_ns, there.st_mtime_ns))

    def wrong(self) -> str:
        """Return what is wrong at the destination; empty: nothing."""
        with open(self.target, "rb") as file:
            found = file.read()
        right = self.content + self.more
        if found == right:
            return ""
        if len(found) != len(right):
            return f"{len(found)} bytes, should be {len(right)}"
        at = next(at for at in range(len(right)) if found[at] != right[at])
        return f"byte {at} of {len(right)} is {found[at]}, should be {right[at]}"

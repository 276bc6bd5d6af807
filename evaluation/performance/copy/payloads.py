"""Payloads and destinations, on a disk, in a folder that goes with the measurement."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from elephan.errors import RunError
from evaluation.performance.copy.cells import CHANGED_SHARE, FILE_BYTES, Payload

BLOCK = 1 << 20
PIECE = 64 << 10
"""Bytes of a changed piece of a device."""
FOLDER_FILES = 1000
"""Small files of a folder."""


@dataclass
class Laid:
    """A payload that lies on the disk, and the place where it goes."""

    payload: Payload
    source: Path
    """File, folder or device."""
    folder: Path
    """Parent of everything that a program makes at the destination."""
    old: Path | None = None
    """Of a device: the destination, which has the older version before each run."""
    changed: tuple[int, ...] = ()
    """Offsets of its pieces that differ."""

    @property
    def target(self) -> Path:
        """Return where the copy is to be: the same name in the destination's folder, or the device."""
        return self.old if self.old is not None else self.folder / self.source.name

    @property
    def into(self) -> Path:
        """Return the destination as rsync and elephan take it: of a folder the one that it goes into."""
        return self.folder if self.payload.kind == "small" else self.target

    def reset(self) -> None:
        """Make the destination as before a copy: empty, or the older version."""
        if self.old is None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir()
        else:
            restore(self)
        os.sync()

    def arrived(self) -> int:
        """Return the bytes of a part of a copy: what the destination's files hold. 0 for a device, which tells not."""
        if self.old is not None:
            return 0
        held = 0
        for folder, _, names in os.walk(self.folder):
            for name in names:
                # lstat: a program may rename it meanwhile.
                try:
                    status = os.lstat(os.path.join(folder, name))
                except FileNotFoundError:
                    continue
                held += min(status.st_blocks * 512, status.st_size)
        return min(held, self.payload.bytes)

    def check(self) -> None:
        """Compare the copy with its source. Raises `RunError`."""
        words = ["diff", "-rq"] if self.payload.kind == "small" else ["cmp"]
        said = subprocess.run([*words, str(self.source), str(self.target)], capture_output=True, text=True, check=False)
        if said.returncode:
            raise RunError(f"the copy differs from its source: {(said.stdout + said.stderr).strip()[:200]}")


@contextmanager
def laid(payload: Payload, parent: Path) -> Iterator[Laid]:
    """Make a payload below a folder; it goes with the context. Raises `RunError`."""
    folder = parent / "payload"
    folder.mkdir()
    there = parent / "there"
    there.mkdir()
    loops: list[str] = []
    try:
        rng = random.Random(f"elephan copy {payload.name}")
        if payload.kind == "small":
            yield Laid(payload, small(payload, folder / "images", rng), there)
        elif payload.kind == "file":
            yield Laid(payload, filled(folder / "file", payload.bytes, rng), there)
        else:
            new, old = filled(folder / "new", payload.bytes, rng), parent / "old"
            shutil.copyfile(new, old)
            pieces = range(payload.bytes // PIECE)
            changed = sorted(rng.sample(pieces, int(len(pieces) * CHANGED_SHARE)))
            for file in (new, old):
                loops.append(attached(file))
            made = Laid(payload, Path(loops[0]), there, Path(loops[1]), tuple(PIECE * number for number in changed))
            restore(made)
            yield made
    finally:
        for loop in loops:
            if loop.startswith("/dev/loop"):
                subprocess.run(["losetup", "-d", loop], check=False)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(there, ignore_errors=True)
        (parent / "old").unlink(missing_ok=True)


def attached(file: Path) -> str:
    """Return a block device over a file; the file itself where there are no loop devices."""
    done = subprocess.run(["losetup", "-f", "--show", str(file)], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else str(file)


def filled(path: Path, size: int, rng: random.Random) -> Path:
    """Make a file of bytes that nothing compresses."""
    with path.open("wb") as out:
        for begin in range(0, size, BLOCK):
            out.write(rng.randbytes(min(BLOCK, size - begin)))
    path.chmod(0o644)
    return path


def small(payload: Payload, folder: Path, rng: random.Random) -> Path:
    """Make a tree of small files; their sizes add up to the payload's."""
    folder.mkdir()
    low, high = FILE_BYTES
    size = low
    for number in range(payload.files):
        at = folder / f"{number // FOLDER_FILES:03d}"
        if number % FOLDER_FILES == 0:
            at.mkdir()
        # In pairs, so that the sum is the mean times the number.
        size = low + high - size if number % 2 else rng.randint(low, high)
        (at / f"{number:06d}.jpg").write_bytes(rng.randbytes(size))
    return folder


def restore(made: Laid) -> None:
    """Write the older version's pieces to the destination's device."""
    assert made.old is not None
    old = random.Random("elephan copy, the older version")
    # Only what a copy may have changed.
    with made.old.open("r+b") as out:
        for at in made.changed:
            out.seek(at)
            out.write(old.randbytes(PIECE))
        out.flush()
        os.fsync(out.fileno())

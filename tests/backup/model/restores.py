"""Restores into a place that has entries already: which of them are replaced, which stay, and which are removed."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from tests.backup.model.world import Exclusion, Inodes, Tree, differences, is_below, walk

CHANGED_SHARE = 0.4
"""Share of a place's files that are damaged before a restore."""
REMOVED_SHARE = 0.2
"""Share of its other entries that are removed."""


@dataclass(frozen=True)
class How:
    """Options and circumstances of a restore."""

    place: str = "new"
    """"new": where nothing is; "other": `--to` a folder with the source's entries; "own": the source's place."""
    exact: bool = False
    seed: int = 0
    kill: object = None
    """Call before which a first attempt is killed (`tracer.Counter.before`)."""
    at: float | None = None
    """Restore as of a time instead of a version by name: 0 is that of the version, 1 just before the next one."""


def fill(place: Path, source: Path, seed: int) -> None:
    """Give a place the source's entries as a user and a bad disk have left them: with further entries, without some,
    and with bytes that size and time do not show to be changed.
    """
    draw = random.Random(seed)
    subprocess.run(["cp", "-a", os.fsencode(source), os.fsencode(place)], check=True)
    for path, entry in sorted(walk(place).items()):
        full = os.path.join(os.fsencode(place), path)
        if not os.path.lexists(full):
            # Its folder was removed.
            continue
        if entry[0] != "link" and entry[1] == 0:
            os.chmod(full, 0o700 if entry[0] == "folder" else 0o600)
        if entry[0] == "file" and draw.random() < CHANGED_SHARE:
            damage(full)
        elif draw.random() < REMOVED_SHARE:
            shutil.rmtree(full, ignore_errors=True) if entry[0] == "folder" else os.unlink(full)
    for name in (b"a", b"b", b"later"):
        if draw.random() < 0.3 and not os.path.lexists(full := os.path.join(os.fsencode(place), name)):
            with open(full, "wb") as file:
                file.write(hashlib.shake_128(name).digest(draw.randrange(9000)))


def damage(path: bytes) -> None:
    """Change a byte of a file, which keeps size and time."""
    there = os.lstat(path)
    if there.st_size == 0:
        return
    with open(path, "r+b") as file:
        file.seek(there.st_size // 2)
        byte = file.read(1)[0]
        file.seek(there.st_size // 2)
        file.write(bytes([byte ^ 1]))
    os.utime(path, ns=(there.st_atime_ns, there.st_mtime_ns))


@dataclass
class Restored:
    """Required content of a place after a restore of `version`."""

    version: Tree
    before: Tree
    """The place before it."""
    exact: bool
    exclusion: Exclusion
    """Entries that the job leaves out, which `--exact` does not remove."""
    inodes: Inodes = field(default_factory=dict)
    """Of the version's files."""

    @property
    def blocked(self) -> set[bytes]:
        """Return the paths where a folder that stays has the name of another entry."""
        return {
            path
            for path, entry in self.version.items()
            if entry[0] != "folder"
            and self.before.get(path, entry)[0] == "folder"
            and any(self._stays(one) for one in self.before if one == path or is_below(one, path))
            and any(is_below(one, path) for one in self.before)
        }

    def _stays(self, path: bytes) -> bool:
        return not self.exact or self.exclusion.names(path, self.before)

    def wrong(self, real: Tree) -> list[str]:
        """Return what is not as required, a line each."""
        blocked = self.blocked
        expected = {path: entry for path, entry in self.version.items() if path not in blocked}
        # A removal is all or nothing.
        removes = self.exact and not blocked
        for path, entry in self.before.items():
            if path in expected or any(self.version.get(above, ("folder",))[0] != "folder" and above not in blocked
                                       for above in parents(path)):  # fmt: skip
                continue
            if not removes or self.exclusion.names(path, self.before):
                expected[path] = entry
            elif entry[0] == "folder" and any(
                is_below(one, path) and self.exclusion.names(one, self.before) for one in self.before
            ):
                expected[path] = entry
        for path, entry in expected.items():
            # The time of a folder that the version does not have is that of the last removal in it.
            if removes and path not in self.version and entry[0] == "folder" and path in real:
                expected[path] = real[path]
        return differences(real, expected)


def parents(path: bytes) -> list[bytes]:
    """Return the paths of the folders above."""
    parts = path.split(b"/")
    return [b"/".join(parts[:count]) for count in range(1, len(parts))]

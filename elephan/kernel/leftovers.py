"""Folders in which a compiler worked when it was killed: crates/congestion makes them, and names them by process."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from pathlib import Path

NAME = re.compile(r"elephan-cc-(\d+)-\d+")


def remove() -> list[Path]:
    """Remove those of this user whose process has gone; return them."""
    removed = []
    for folder in sorted(Path(tempfile.gettempdir()).glob("elephan-cc-*")):
        match = NAME.fullmatch(folder.name)
        if match is None or Path("/proc", match[1]).exists():
            continue
        try:
            status = folder.lstat()
        except OSError:
            continue
        # The folder is anyone's to write in: only what is ours, and no link that somebody has laid there.
        if status.st_uid != os.geteuid() or not stat.S_ISDIR(status.st_mode):
            continue
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            removed.append(folder)
    return removed

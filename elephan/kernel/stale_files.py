"""Folders in which a command worked when it was killed.

Those of a compiler are crates/congestion's, which names them by process. Others have names of tempfile's and tell
nothing of their process: parity's, and those in which versions before 0.1 compiled.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
import time
from pathlib import Path

NAME = re.compile(r"elephan-cc-(\d+)-\d+")
UNNAMED = re.compile(r"elephan-(bpf|parity)-[a-z0-9_]{8}")

OLD_S = 86_400.0
"""Age from which a folder without a process' number has been left, s: what works in one takes minutes."""


def remove() -> list[Path]:
    """Remove those of this user whose process has gone; return them."""
    removed = []
    for folder in sorted(Path(tempfile.gettempdir()).glob("elephan-*")):
        try:
            status = folder.lstat()
        except OSError:
            continue
        # Any user may write in the folder: take only our own files, and no links.
        if status.st_uid != os.geteuid() or not stat.S_ISDIR(status.st_mode) or _is_used(folder, status.st_mtime):
            continue
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            removed.append(folder)
    return removed


def _is_used(folder: Path, changed_s: float) -> bool:
    """Return True if a process may use the folder, or if it is none of these folders."""
    match = NAME.fullmatch(folder.name)
    if match is not None:
        return Path("/proc", match[1]).exists()
    return UNNAMED.fullmatch(folder.name) is None or time.time() - changed_s < OLD_S

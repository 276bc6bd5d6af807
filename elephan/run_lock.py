"""Ids of the runs that live on this machine: each is the name of a file in /run/elephan that its run holds locked.

The lock tells a living run from one that was killed: the kernel lets go of it with the process. The file holds what the
run says of itself, as JSON.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elephan.errors import RunError

LOCKS = Path("/run/elephan")
TRIES = 100
"""Ids that are tried before giving up: of 2^16 beginnings a few are in use."""


def acquire() -> tuple[str, int]:
    """Return a new id and its locked file.

    The names of a run's congestion controls have room for the id's first four digits, which no other run has. Raises
    `RunError`.
    """
    try:
        LOCKS.mkdir(mode=0o755, exist_ok=True)
        return _acquired()
    except OSError as error:
        raise RunError(f"{LOCKS}: {error.strerror}: no lock, no path") from error


def _acquired() -> tuple[str, int]:
    for _ in range(TRIES):
        run = secrets.token_hex(3)
        if any(path.name[:4] == run[:4] for path in LOCKS.iterdir()):
            continue
        try:
            lock = os.open(LOCKS / run, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            continue
        # A process that tests whether the run lives holds the lock for a moment.
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            # A `clean` that came between the two calls took it for what a killed run has left.
            if os.path.samestat(os.stat(LOCKS / run), os.fstat(lock)):
                return run, lock
        except FileNotFoundError:
            pass
        os.close(lock)
    raise RunError(f"no free id under {LOCKS}: elephan path clean removes what killed runs have left")


def write(run: str, lock: int, facts: Mapping[str, Any]) -> None:
    """Replace what the file of a run says. Raises `RunError`."""
    text = json.dumps(facts).encode()
    try:
        written = os.pwrite(lock, text, 0)
        os.ftruncate(lock, written)
    except OSError as error:
        raise RunError(f"{LOCKS / run}: {error.strerror}") from error
    if written < len(text):
        raise RunError(f"{LOCKS / run}: {os.strerror(errno.ENOSPC)}")


def remove(run: str) -> None:
    """Remove the file of a run, if there is one."""
    (LOCKS / run).unlink(missing_ok=True)


def known() -> set[str]:
    """Return the ids that have a file: of runs that live, and of those that were killed."""
    return {path.name for path in LOCKS.glob("*")} if LOCKS.is_dir() else set()


def living() -> dict[str, dict[str, Any]]:
    """Return the runs that live, by id, with what each says of itself."""
    found = {}
    for run in sorted(known()):
        if lives(run):
            try:
                found[run] = json.loads((LOCKS / run).read_text())
            except (OSError, ValueError):  # it has just gone, or has not said anything yet
                continue
    return found


def lives(run: str) -> bool:
    """Return True if a run's process is there: it holds the lock."""
    try:
        lock = os.open(LOCKS / run, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        # Shared: two that ask at once must not take each other for the run.
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False

"""Units of systemd that elephan writes: their text, their check, the manager that is told of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from elephan.errors import InputError, RunError

UNITS = Path("etc/systemd/system")
WANTED_BY = "multi-user.target"
CODE = "from elephan.cli import main; main()"
"""The command where it is installed without a script."""

BOOTED = Path("/run/systemd/system")
"""Is there where systemd is the machine's manager (sd_booted(3))."""


def command_line() -> list[str]:
    """Return the absolute command that runs this elephan: the script that was called, or the one beside Python."""
    for script in (Path(sys.argv[0]).absolute(), Path(sys.executable).parent / "elephan"):
        if script.name == "elephan" and script.is_file() and os.access(script, os.X_OK):
            return [str(script)]
    return [sys.executable, "-c", CODE]


def quoted(words: Sequence[str]) -> str:
    """Return words as one line of a unit (systemd.service(5), COMMAND LINES)."""
    return " ".join(_word(word) for word in words)


def _word(word: str) -> str:
    text = word.replace("%", "%%").replace("$", "$$").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"' if not word or set(text) & set(" \t'\";\\()") else text


def plain(text: str) -> str:
    """Return text that a unit takes as it is."""
    return text.replace("%", "%%").replace("\n", " ")


def link_of(place: Path, wanted_by: str = WANTED_BY) -> Path:
    """Return the link that enables the unit at `place`."""
    return place.parent / f"{wanted_by}.wants" / place.name


def write_enabled(place: Path, text: str, wanted_by: str | None = WANTED_BY) -> None:
    """Write a unit, whole or not at all, and enable it; None: something else starts it. Raises `InputError`."""
    link = None if wanted_by is None else link_of(place, wanted_by)
    try:
        (place if link is None else link).parent.mkdir(parents=True, exist_ok=True)
        new = place.with_suffix(f".{os.getpid()}")
        new.write_text(text)
        new.chmod(0o644)
        new.replace(place)
        if link is not None:
            link.unlink(missing_ok=True)
            # As systemctl(1) does: absolute, and in the system that it is of.
            link.symlink_to(Path("/") / UNITS / place.name)
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be written: {error.strerror}") from error


def verify(name: str, text: str) -> None:
    """Let systemd-analyze, if it is there, check a unit before it is written. Raises `InputError` with its words."""
    program = shutil.which("systemd-analyze")
    if program is None:
        return
    with tempfile.TemporaryDirectory(prefix="elephan-unit-") as folder:
        unit = Path(folder) / name
        unit.write_text(text)
        words = [program, "verify", "--man=no", "--recursive-errors=no", str(unit)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise InputError(f"systemd-analyze refuses {name}: {' '.join(done.stderr.split())}")


def systemctl(*words: str) -> None:
    """Call systemctl(1). Raises `RunError` with its words."""
    command = ["systemctl", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, start_new_session=True)
    if done.returncode != 0:
        raise RunError(f"systemctl {' '.join(words)}: {' '.join(done.stderr.split())}")

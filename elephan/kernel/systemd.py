"""Units of systemd that elephan writes: their text, their check, the manager that is told of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from elephan.errors import InputError, RunError
from elephan.python_process import python_command

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
    return python_command("-c", CODE)


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


def wanted_by(text: str) -> str | None:
    """Return the target that a unit's text names to be started by; None: something else starts it."""
    return next((line.partition("=")[2] for line in text.splitlines() if line.startswith("WantedBy=")), None)


def write_enabled(place: Path, text: str) -> None:
    """Write a unit, whole or not at all, and enable it where it names a target. Raises `InputError`."""
    target = wanted_by(text)
    link = None if target is None else link_of(place, target)
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


def need_root(what: str, root: Path | None) -> None:
    """Raise `InputError` unless units may be written: below another system's `root` by all, here by root."""
    if root is None and os.geteuid() != 0:
        raise InputError(f"{what} needs root to write below /{UNITS}; without --install it prints")


def be_own(place: Path, first_line: str) -> None:
    """Raise `InputError` if a unit is there that does not begin with elephan's line."""
    if place.is_file() and not place.read_text().startswith(first_line):
        raise InputError(f"{place} is not elephan's: it stays")


def install_units(texts: Mapping[str, str], first_line: str, root: Path | None) -> tuple[list[Path], bool]:
    """Write and enable units by their names, and start them where systemd runs; return their files, and whether they
    were started.

    `root` is a folder that holds another system's files, in which nothing is started. Only units that begin with
    `first_line` are written over. Raises `InputError`, `RunError`.
    """
    if root is not None and not root.is_dir():
        raise InputError(f"--root {root}: a folder that holds a system's files")
    places = {(root or Path("/")) / UNITS / name: text for name, text in texts.items()}
    for place in places:
        be_own(place, first_line)
    for place, text in places.items():
        # A timer needs its service to be there.
        if place.suffix != ".timer":
            verify(place.name, text)
    for place, text in places.items():
        write_enabled(place, text)
    if root is not None or not BOOTED.is_dir():
        return list(places), False
    systemctl("daemon-reload")
    for place, text in places.items():
        if wanted_by(text) is not None:
            systemctl("restart", place.name)
    return list(places), True


def remove_units(places: Sequence[Path], first_line: str, root: Path | None) -> None:
    """Stop and remove units that are there. Raises `InputError`, also where one does not begin with `first_line`."""
    for place in places:
        be_own(place, first_line)
    running = root is None and BOOTED.is_dir()
    for place in places:
        if running:
            systemctl("stop", place.name)
        try:
            for target in place.parent.glob("*.wants"):
                (target / place.name).unlink(missing_ok=True)
            place.unlink()
        except OSError as error:
            raise InputError(f"{error.filename}: cannot be removed: {error.strerror}") from error
    if running and places:
        systemctl("daemon-reload")

"""The wall clock that commands see, set by a file: the clock of this machine is unchanged."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_name("clock.c")
FILE = "ELEPHAN_MODEL_CLOCK"


def library(folder: Path) -> Path | None:
    """Compile the library that moves the clock, into a folder; None: there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    made = folder / "clock.so"
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", str(made), str(SOURCE)], check=True)
    return made


def environment(folder: Path) -> dict[str, str] | None:
    """Return the variables under which a process has such a clock, in a folder of its own."""
    made = library(folder)
    if made is None:
        return None
    file = folder / "offset"
    file.write_bytes(struct.pack("q", 0))
    folder.chmod(0o755)
    return {"LD_PRELOAD": str(made), FILE: str(file)}


def own(module: str) -> Path | None:
    """Begin this program, a module, again under such a clock, and return its file; None: it cannot be made."""
    if FILE in os.environ:
        return Path(os.environ[FILE])
    found = environment(Path(tempfile.mkdtemp(prefix="elephan-clock-")))
    if found is None:
        return None
    os.execve(sys.executable, [sys.executable, "-m", module, *sys.argv[1:]], os.environ | found)


def set_offset(file: Path, seconds: int) -> None:
    """Move the clock of all processes under it."""
    with file.open("r+b") as there:
        there.write(struct.pack("q", seconds))


def offset(file: Path) -> int:
    """Return by how many seconds the clock is moved."""
    return int(struct.unpack("q", file.read_bytes())[0])

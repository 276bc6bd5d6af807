"""Programs that are built where they run: udt, a sender and a receiver on libudt, from udt.cc beside this file.

No distribution has a program that moves data by libudt.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from elephan.errors import RunError

SOURCE = Path(__file__).with_name("udt.cc")

HEADER = "udt/udt.h"
"""libudt's; libudt-dev has no command by which to tell that it is there."""

INCLUDES = ("/usr/local/include", "/usr/include")
"""Folders of headers."""

OPTIONS = ("-O2", *(word for folder in INCLUDES for word in ("-isystem", f"{folder}/udt")))
LIBRARIES = ("-ludt", "-lpthread")


def header(name: str) -> str | None:
    """Return the full path of a header, None when it is not installed."""
    paths = (Path(folder, name) for folder in INCLUDES)
    return next((str(path) for path in paths if path.is_file()), None)


@cache
def udt() -> str:
    """Return the path of the program, in the user's cache folder; build it where its source or its options are new.

    Raises `RunError`.
    """
    from platformdirs import user_cache_path

    words = hashlib.sha256(SOURCE.read_bytes())
    words.update(" ".join((*OPTIONS, *LIBRARIES)).encode())
    target = user_cache_path("elephan") / "programs" / f"udt-{words.hexdigest()[:16]}"
    if target.is_file():
        return str(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Another command may build it at the same time.
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            fresh = Path(folder, "udt")
            command = ["g++", *OPTIONS, str(SOURCE), "-o", str(fresh), *LIBRARIES]
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                said = done.stderr.strip().splitlines() or ["no reason given"]
                raise RunError(f"udt.cc cannot be built (Debian packages g++ and libudt-dev): {said[0]}")
            os.replace(fresh, target)
    except FileNotFoundError as error:
        raise RunError("udt needs g++, which is not installed: apt-get install g++ libudt-dev") from error
    except OSError as error:
        raise RunError(f"udt cannot be built in {target.parent}: {error.strerror or error}") from error
    return str(target)

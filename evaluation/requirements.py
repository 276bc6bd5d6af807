"""Requirements of a program that measures: looked for before it begins, and named in one line where they lack."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping

from elephan.errors import ElephanError, InputError
from elephan.path import testbed

SBIN = ":/usr/sbin:/sbin"
"""Folders of programs for root, which a user's PATH may lack."""


def require(tools: Mapping[str, str], *, root: bool = False, path: bool = False) -> None:
    """Raise `InputError` that names all that lacks: root, an emulated path, tools by their Debian packages."""
    problem = testbed.missing() if path else None
    lacking = [problem] if problem else []
    if root and not problem and os.geteuid() != 0:
        lacking.append("needs root")
    for tool, package in tools.items():
        if shutil.which(tool, path=os.environ.get("PATH", "") + SBIN) is None:
            lacking.append(f"needs {tool} (Debian package {package})")
    if lacking:
        raise InputError("; ".join(lacking))


def exit_code(program: str, main: Callable[[], int | None]) -> int:
    """Run `main`; return the exit code, that of an error after one line about what a user can mend."""
    try:
        return main() or 0
    except ElephanError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return error.exit_code

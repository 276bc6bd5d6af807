"""Commands that run a part of elephan in a Python process of its own."""

from __future__ import annotations

import sys


def python_command(*arguments: str) -> list[str]:
    """Return the command of this interpreter with `arguments`, which imports nothing from the current folder.

    `python -c` and `python -m` look there first, so that a user's own `random.py`, or a folder called `elephan`, would
    be run in place of the module of that name (`-P`: docs.python.org/3/using/cmdline.html#cmdoption-P).
    """
    return [sys.executable, "-P", *arguments]

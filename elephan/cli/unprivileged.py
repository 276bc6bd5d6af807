"""`elephan path shell` of a user without root, from its user namespace on: a fresh process whose entry is `main`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from elephan.cli.main import call
from elephan.errors import InputError
from elephan.path import unprivileged


def main(arguments: Sequence[str]) -> int:
    """Enter the namespace, and be the command. Nothing before that may start a thread."""
    try:
        unprivileged.enter()
    except OSError as error:
        words = f"elephan path needs root, since this user gets no user namespace: {error.strerror}"
        print(f"error: {words}", file=sys.stderr)
        return InputError.exit_code
    return call(["path", "shell", *arguments])

"""One path test of the monitor, by the core."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from elephan.core import native
from elephan.errors import InputError, RunError

STAMP_PACKETS = 20
"""Packets of `stamp` by hand, 100 ms apart."""


def measure(asked: dict[str, Any]) -> dict[str, Any]:
    """Run the test `asked["test"]` against the reflector `asked["towards"]`; return its outcome.

    Raises `InputError` for a test that this build does not have, `RunError` when it cannot be run.
    """
    test = asked["test"]
    known = native.path_test_names()
    if test not in known:
        raise InputError(f'test "{test}": this build has none; it has {", ".join(known)}')
    wanted: dict[str, Any] = {"test": test, "towards": asked["towards"]}
    if asked.get("key_file"):
        wanted["key"] = Path(asked["key_file"]).read_bytes().strip().hex()
    if test == "stamp":
        wanted["count"] = STAMP_PACKETS
    try:
        return dict(json.loads(native.path_test(json.dumps(wanted), lambda _: False)))
    except ValueError as error:
        raise InputError(str(error)) from error
    except OSError as error:
        raise RunError(str(error)) from error

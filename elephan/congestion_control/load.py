"""Put a BPF object through the running kernel's verifier: `python -m elephan.congestion_control.load <OBJECT`, one line
of JSON out.

A process of its own: programs and maps belong to it, nothing is pinned, registered or written to a file, so that the
machine is as it was when the process ends, however it ends. Settings of a control (`native.ControlSettings`) are
taken as JSON behind `--settings`. With `--register`, what passes is registered, and stays (elephan/kernel says why that
needs no pin).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from elephan.core import native


def tried(compiled: bytes, settings: Mapping[str, Any] | None = None, register: bool = False) -> dict[str, Any]:
    """Return what the kernel says of the object: how much it went through, or the log of the program it refuses."""
    try:
        wanted = None if settings is None else native.ControlSettings(**settings)
        programs, steps = native.check_object(compiled, wanted, register)
    except native.BpfError as error:
        return {
            "passed": False,
            "kind": error.kind,
            "error": error.reason,
            "program": error.program,
            "log": error.log,
            "messages": error.messages,
        }
    return {"passed": True, "programs": programs, "steps": steps}


if __name__ == "__main__":
    arguments = sys.argv[1:]
    given = json.loads(arguments[arguments.index("--settings") + 1]) if "--settings" in arguments else None
    print(json.dumps(tried(sys.stdin.buffer.read(), given, register="--register" in arguments)))

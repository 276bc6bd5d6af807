"""The paths over which calls are recorded: together they make a connection go through what TCP can meet."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from elephan.errors import RunError
from elephan.parity.traffic import COMMAND, namespace
from elephan.path import shell


@dataclass(frozen=True)
class Case:
    """A path and how long to fill it."""

    name: str
    path: str
    """The scenario's [path] table, and events."""
    seconds: float = 2.0
    """Of bulk data; a pause, a second burst and small writes follow."""
    ecn: bool = False
    """Negotiate ECN, in the path's own namespaces."""
    buffer_bytes: int = 0
    """Of the sender, fixed, so that it has data even when the program waits for the processor; 0: the kernel's own."""


CASES = (
    Case("loss", 'bandwidth = "50Mbit/s"\nrtt = "20ms"\nloss = 3e-3'),
    Case(
        "queue, ECN",
        'bandwidth = "20Mbit/s"\nrtt = "30ms"\nqueue = { discipline = "codel", ecn = true }',
        ecn=True,
    ),
    Case(
        "reordering, blackout",
        'bandwidth = "20Mbit/s"\nrtt = "20ms"\nloss = 1e-2\njitter = { scale = "6ms", reordering = true }\n\n'
        '[[event]]\nat = "1s"\nlink_down = "path"\n\n[[event]]\nat = "1.7s"\nlink_up = "path"',
    ),
)
"""Loss alone; a queue that marks; time-outs, reductions undone and new starts."""

SCENARIO = '[run]\nduration = "60s"\n\n[path]\n{path}\n\n[[flow]]\ncongestion_control = "reno"\n'


def run_flows(case: Case, names: Sequence[str]) -> dict[str, bytes]:
    """Carry a connection under each congestion control of `names`, all at once; return what TCP_INFO said of each when
    all had arrived and nothing moved any more (struct tcp_info; absent where data was given up).

    Raises `RunError` when a connection failed.
    """
    path, _, events = case.path.partition("\n\n")
    text = SCENARIO.format(path=path) + (f"\n{events}\n" if events else "")
    before = os.environ.get("PYTHONPATH")
    with tempfile.TemporaryDirectory(prefix="elephan-parity-") as folder:
        file, tcp_info = Path(folder) / "path.toml", Path(folder) / "tcp_info.json"
        file.write_text(text, encoding="utf-8")
        wanted = {
            "names": list(names),
            "seconds": case.seconds,
            "ecn": case.ecn,
            "buffer_bytes": case.buffer_bytes,
            "outside": namespace(),
            "tcp_info": str(tcp_info),
        }
        # The program in the namespace is this package, from where this process has it.
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        try:
            code, _ = shell.run(file, [*COMMAND, json.dumps(wanted)])
        finally:
            if before is None:
                del os.environ["PYTHONPATH"]
            else:
                os.environ["PYTHONPATH"] = before
        if code:
            raise RunError(f"the connections over the path {case.name!r} failed (exit code {code})")
        return {name: bytes.fromhex(info) for name, info in json.loads(tcp_info.read_text(encoding="utf-8")).items()}

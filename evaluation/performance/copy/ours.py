"""elephan as one of the programs: the command `elephan copy` at the left host, which reaches the right one over ssh."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from elephan.core import build_digest
from elephan.errors import RunError
from evaluation.performance.copy.bench import Bench, timed
from evaluation.performance.copy.cells import Row
from evaluation.performance.copy.payloads import Laid
from evaluation.runner import ROOT

CLI = [sys.executable, "-c", "from elephan.cli import main; main()"]
FOLDERS = ("elephan/copy", "elephan/cli", "elephan/hosts", "elephan/advise")
"""Python that has a part in how long a copy takes."""


def build() -> str:
    """Return a digest of what copies: the native core, the agent, the front."""
    digest = hashlib.sha256(build_digest().encode())
    agent = ROOT / "target" / "agent"
    for file in [*sorted(agent.glob("elephan-agent-*")), *(
        file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*.py"))
    )]:  # fmt: skip
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def words_of(laid: Laid, options: Mapping[str, str], flags: Sequence[str], where: str = "right:") -> list[str]:
    """Return the command line of a copy with options, `name=value` as `--name value`, and flags."""
    given = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
    there = f"{where}{laid.target}"
    return [*CLI, "copy", "--json", *given, *(f"--{flag}" for flag in flags), str(laid.source), there]


def environment(made: Bench) -> dict[str, str]:
    """Return the environment of the command: the interpreter finds this tree's package."""
    return {**made.environment, "PYTHONPATH": str(ROOT)}


def prepare(made: Bench) -> None:
    """Have the agent at the right host, as after a first use: its upload is no part of a copy."""
    made.environment = environment(made)
    made.carry(1)
    try:
        done = subprocess.run(
            made.words(0, [*CLI, "hosts", "check", "right"]),
            env=made.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode not in (0, 1):
            raise RunError(f"elephan hosts check right: {done.stderr.strip()[-300:]}")
    finally:
        made.carried()
        made.clear()


def events_in(output: str) -> list[dict[str, Any]]:
    """Return the events of a command's output."""
    found = []
    for line in output.splitlines():
        if line.startswith("{"):
            try:
                found.append(json.loads(line))
            except json.JSONDecodeError:
                continue
    return found


def command(
    made: Bench, laid: Laid, limit_s: float, row: Row, options: Mapping[str, str], flags: Sequence[str]
) -> None:
    """Run a copy, and take its own time and retries from its receipt."""
    row.build = build()
    where = "right:" if row.line.rate_mbps else ""
    output = timed(made, laid, 0, words_of(laid, options, flags, where), limit_s, row)
    receipts = [event["receipt"] for event in events_in(output) if event.get("event") == "done"]
    if receipts:
        receipt = receipts[-1]
        row.own_s = float(receipt["seconds"])
        row.extra = {name: receipt[name] for name in ("retries", "settings") if name in receipt}


def state_of(folder: Path) -> list[Path]:
    """Return the folders of unfinished copies below a folder."""
    return sorted(folder.glob("**/.elephan-copy"))

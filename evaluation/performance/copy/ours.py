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
from evaluation.performance.copy.bench import Bench, kill_session, timed
from evaluation.performance.copy.cells import Row
from evaluation.performance.copy.payloads import Laid
from evaluation.runner import ROOT
from tests.hosts import testbed as hosts

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
    there = f"{where}{laid.into}"
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


ENDS = ROOT / "target" / "release" / "examples" / "copy_ends"
"""cargo build --release -p copy-net --example copy_ends"""


def ends(made: Bench, laid: Laid, limit_s: float, row: Row, options: Mapping[str, str], flags: Sequence[str]) -> None:
    """Run both ends without the front: the right one listens, the left one sends. The time has no ssh in it."""
    row.build = hashlib.sha256(ENDS.read_bytes()).hexdigest()[:12]
    said = subprocess.run([ENDS, "--keys"], capture_output=True, text=True, check=True, env=made.environment)
    keys = json.loads(said.stdout)
    transport: dict[str, Any] = {"kind": options.get("transport", "tcp")}
    if "cc" in options:
        transport["congestion_control"] = options["cc"]
    plain = "plaintext" in flags
    both = {
        "transport": transport,
        "streams": int(options.get("streams", "4")),
        "token": keys["token"],
        "copy": keys["token"][:32],
    }
    tls = {"certificate": keys["certificate"]}
    receiver = both | {"role": "receive", "side": "listen", "destination": str(laid.into), "local": made.address(1)}
    receiver |= {} if plain else {"tls": tls | {"key": keys["key"]}}
    sender = both | {"role": "send", "side": "connect", "sources": [str(laid.source)], "peer": made.address(1)}
    sender |= {} if plain else {"tls": tls}
    file, log = made.folder / "receive.json", made.folder / "receive.log"
    file.write_text(json.dumps(receiver))
    process = made.start(1, [str(ENDS), str(file)], stdout=log.open("wb"), stderr=subprocess.STDOUT)
    try:
        hosts.waited(lambda: '"listening"' in log.read_text(), lambda: log.read_text())
        sender["port"] = next(event["port"] for event in events_in(log.read_text()) if event["event"] == "listening")
        file = made.folder / "send.json"
        file.write_text(json.dumps(sender))
        output = timed(made, laid, 0, [str(ENDS), str(file)], limit_s, row)
    except RunError as error:
        raise RunError(f"{error}; receiver: {log.read_text()[-300:]}") from error
    finally:
        kill_session(process)
    reports = [event for event in events_in(output) if "root" in event]
    if reports:
        row.own_s = float(reports[-1]["seconds"])

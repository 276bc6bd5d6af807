"""The commands of documents: found, run, and what they print put there (`python tests/docs/guide.py --write [PAGE]`).

A block marked `console` holds commands after "$ " and what they printed, in full. What differs from machine to machine
or from day to day (ids, dates, versions of the kernel and of clang, and what these make of a program) is passed over
when it is compared. A block marked `console long` takes minutes: its commands are those of a make target that a test
looks for. Blocks marked `python` share one interpreter.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guide" / "first-half-hour.md"
FENCE = re.compile(r"^```(console|python)(?: (long))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
KERNEL = ROOT / "docs" / "howto" / "load-into-kernel.md"
"""Its commands load into the kernel, and run in a network namespace: tests/kernel/test_page.py."""

PAGES = sorted(
    page
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    if "```console" in page.read_text() and page != KERNEL
)
"""Documents whose commands are run, each in a folder of its own."""

CHANGING = [
    (re.compile(pattern, re.MULTILINE), stands_for)
    for pattern, stands_for in (
        (r"\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\dZ?", "DATE"),
        (r"\b(?=[0-9]*[a-f])(?=[a-f]*[0-9])(?:[0-9a-f]{16}|[0-9a-f]{10})\b", "ID"),
        (r"Linux \d+\.\d+\.\d+[^\s:,]*", "LINUX"),
        (r"Debian clang version [^\n]*|clang-\d+", "CLANG"),
        (r"by CLANG, [\d,]+ bytes$", "by CLANG"),
        (r"[\d,]+ bytes of record", "BYTES of record"),
        (r"\d+ steps of its verifier", "STEPS"),
        (r"detected at insn \d+", "INSN"),
    )
]
"""Patterns that differ between machines and days, each with its replacement when outputs are compared."""

NOISE = re.compile(r"Running as user|\d+ of \d+ runs, \d+%|a repetition took ")
"""Lines that depend on the user and on the speed: tshark's warning for root, progress without a terminal, plans."""

ID = re.compile(r"(?<= )[0-9a-f]{10}\b")
"""A run's id in a command: stands for the run of `LISTED`, since ids change with the version."""

LISTED = "elephan results list --where path.loss=0 --where flow.congestion_control=reno"
"""The listing of the page that shows the run whose id its commands name."""


@dataclass
class Step:
    """A command and its output in the guide."""

    command: str
    output: str


def steps(block: str) -> list[Step]:
    """Return the commands of a block; a line after one that ends with a backslash belongs to it."""
    found: list[Step] = []
    continued = False
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(Step(line[2:], ""))
        elif continued:
            found[-1].command += "\n" + line
        else:
            found[-1].output += line + "\n"
        continued = (line.startswith("$ ") or continued) and line.endswith("\\")
    return found


def environment(folder: Path) -> dict[str, str]:
    """Return an environment whose results lie in `folder`, and whose `elephan` is that of this interpreter."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    changed = {"PATH": path, "ELEPHAN_STORE": str(folder / "results.sqlite"), "PYTHONPATH": str(ROOT)}
    return {name: value for name, value in os.environ.items() if name != "COLUMNS"} | changed


def prepare(folder: Path) -> None:
    """Make `folder` look like a clone, as far as the guide needs it."""
    for name in ("examples", "evaluation", "docs", "congestion"):
        (folder / name).symlink_to(ROOT / name)
    (folder / ".venv").symlink_to(sys.prefix)


def run(command: str, folder: Path) -> tuple[int, str]:
    """Run a command of the guide in `folder`; return exit code and output."""
    if ID.search(command):
        # The run that the page lists before it. The newest ones would not do: runs of one second have no order.
        listed = json.loads(run(f"{LISTED} --json", folder)[1])
        command = ID.sub(listed[0]["id"], command)
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    lines = [line.rstrip() for line in done.stdout.splitlines() if not NOISE.match(line)]
    if command.startswith("elephan results list --newest"):
        lines = lines[:1] + sorted(lines[1:], key=lambda line: "reno" in line)
    return done.returncode, "".join(line + "\n" for line in lines)


def comparable(output: str) -> str:
    """Return an output without what differs between machines and days."""
    for pattern, stands_for in CHANGING:
        output = pattern.sub(stands_for, output)
    return output


def write(page: Path) -> None:
    """Put the present output of the commands into a page; equal output stays as it is."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)

        def fresh(match: re.Match[str]) -> str:
            language, kind, block = match.groups()
            if language == "python" or kind == "long":
                return match.group(0)
            lines = []
            for step in steps(block):
                code, output = run(step.command, folder)
                print(f"{code}: {step.command}", file=sys.stderr)
                same = comparable(output) == comparable(step.output)
                lines.append(f"$ {step.command}\n{step.output if same else output}")
            return f"```{language}{f' {kind}' if kind else ''}\n{''.join(lines)}```"

        page.write_text(FENCE.sub(fresh, page.read_text()))


if __name__ == "__main__":
    if sys.argv[1:2] != ["--write"]:
        sys.exit("usage: python tests/docs/guide.py --write [PAGE ...]")
    for page in [Path(name).resolve() for name in sys.argv[2:]] or PAGES:
        write(page)

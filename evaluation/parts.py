"""Parts of the pages in docs/results that a program measures and writes. A person writes the text around them.

A part lies between two comments. The first has the part's name, which is its own on the page, and the command:

    <!-- part "knee": python -m evaluation.performance.iscsi_path -->
    ...
    <!-- end -->

A part begins with a line of command, date and machine, so that no table is older than it says.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import elephan
from elephan.backends.host import cpu_model
from elephan.store.files import write_atomically
from evaluation.markdown import fill
from evaluation.runner import ROOT

RESULTS = ROOT / "docs" / "results"
PART = re.compile(r'<!-- part "(?P<name>[^"]+)": (?P<command>.+?) -->\n(?P<text>.*?)<!-- end -->', re.DOTALL)


@dataclass(frozen=True)
class Part:
    """A part of a page."""

    name: str
    command: str
    """The command that writes it, from the repository's root."""
    text: str


def parts_of(page: str) -> list[Part]:
    """Return the parts of a page's text, in order."""
    return [Part(found["name"], found["command"], found["text"].strip()) for found in PART.finditer(page)]


def replaced(page: str, command: str, texts: Mapping[str, str]) -> str:
    """Return a page with the parts of one command replaced; `texts` has what stands below the first line, by name.

    Raises ValueError unless `texts` has a text for every part of that command, and the page a part for every text.
    """
    there = {part.name for part in parts_of(page) if part.command == command}
    if there != set(texts):
        raise ValueError(f"the page has {sorted(there)} of `{command}`, and there are {sorted(texts)}")

    def part(found: re.Match[str]) -> str:
        if found["command"] != command:
            return found[0]
        head = found[0][: found.start("text") - found.start()]
        return f"{head}{circumstances(command)}\n\n{texts[found['name']].strip()}\n<!-- end -->"

    return PART.sub(part, page)


def circumstances(command: str) -> str:
    """Return the line of command, date, version and machine."""
    day = datetime.now(UTC).strftime("%Y-%m-%d")
    kernel = platform.release().partition("-")[0]
    machine = f"{cpu_model()}, {os.cpu_count()} cores, Linux {kernel}"
    return fill(f"`{command}`, {day}, elephan {elephan.__version__}; {machine}:")


def write_parts(page: str, command: str, texts: Mapping[str, str]) -> None:
    """Replace the parts of one command in a page of docs/results, all or none. Raises ValueError as `replaced` does."""
    path = RESULTS / page
    write_atomically(path, replaced(path.read_text(encoding="utf-8"), command, texts).encode())
    print(f"{path.relative_to(ROOT)}: {', '.join(texts)}")

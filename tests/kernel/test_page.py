"""docs/howto/load-into-kernel.md: every command prints the page's output, in a network namespace of its own."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from elephan.kernel import loaded, machine, namespaces, runs

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "howto" / "load-into-kernel.md"
NAMESPACE = "elephan-page"


def load_guide() -> ModuleType:
    """Load the tool that finds and runs the commands of pages."""
    spec = importlib.util.spec_from_file_location("guide", ROOT / "tests" / "docs" / "guide.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["guide"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_every_command_of_the_page_does_what_it_shows(kernel_alone: set[int], tmp_path: Path) -> None:
    has = {step.name for step in machine.check() if step.state == "passed"}
    if missing := sorted({"objects", "clang", "cong_control"} - has):
        pytest.skip(f"the page was written on a machine that has {', '.join(missing)}, as `elephan kernel check` says")
    guide = load_guide()
    guide.prepare(tmp_path)
    outside = namespaces.current()
    subprocess.run(["ip", "netns", "add", NAMESPACE], check=True)
    inside = f"nsenter --net=/run/netns/{NAMESPACE} bash -o pipefail -c "
    ran = 0
    try:
        guide.run(inside + shlex.quote("echo reno >/proc/sys/net/ipv4/tcp_congestion_control"), tmp_path)
        for language, _, text in guide.FENCE.findall(PAGE.read_text()):
            assert language == "console"
            for step in guide.steps(text):
                if step.command == "elephan kernel clean" and kernel_alone:
                    continue
                code, output = guide.run(inside + shlex.quote(step.command), tmp_path)
                assert code == 0, f"{step.command}\n{output}"
                if step.command == "elephan kernel list":
                    # This machine's other controls are listed as well, and make columns wider.
                    names = {line.split()[0] for line in step.output.splitlines()}
                    output = "".join(line for line in output.splitlines(True) if line.split()[0] in names)
                    output, step.output = re.sub(" +", " ", output), re.sub(" +", " ", step.output)
                assert guide.comparable(output) == guide.comparable(step.output), step.command
                ran += 1
    finally:
        subprocess.run(["ip", "netns", "delete", NAMESPACE], check=True)
    assert ran >= 10
    assert kernel_alone or not [one for one in loaded() if one.registered and not runs.lives(one.name)]
    assert namespaces.current() == outside

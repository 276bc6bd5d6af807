"""Test that a congestion control can run in this machine's kernel: clang compiles it for BPF, and the kernel's verifier
reads it.

Nothing is registered and nothing stays. What this machine lacks is said, and is no fault of the congestion control's.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from elephan.congestion_control.catalogue import CongestionControl
from elephan.congestion_control.verifier_messages import explained
from elephan.core import native
from elephan.python_process import python_command
from elephan.units import count, pluralize

State = Literal["passed", "failed", "not tried"]

BTF = Path("/sys/kernel/btf/vmlinux")

CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}
"""Numbers of the capabilities that the kernel asks for before it loads a congestion control (linux/capability.h)."""

USER_NAMESPACE = Path("/proc/self/ns/user")
FIRST_USER_NAMESPACE = 0xEFFFFFFD
"""Its inode (PROC_USER_INIT_INO, linux/proc_ns.h): capabilities of any other one are not the machine's."""

LONGEST_S = 120
"""After so long a verifier that has not answered is given up, s."""


@dataclass(frozen=True)
class Step:
    """One step of the check and its result."""

    name: str
    state: State
    text: str
    problems: tuple[Mapping[str, Any], ...] = field(default=())
    """Each with `line`, `what`, `code`, `hint`; of a verifier also `said`, its own words."""


def check(cc: CongestionControl) -> list[Step]:
    """Return the steps for a congestion control that compiles natively: simulator, BPF, kernel."""
    hooks = ", ".join(cc.hooks)
    steps = [Step("simulator", "passed", f"{pluralize(len(cc.parameters), 'parameter')}; hooks {hooks}", cc.warnings)]
    file = cc.path or f"{cc.name}.c"
    try:
        compiled, clang, warnings = native.compile_bpf(file, cc.code)
    except native.NoClang as error:
        made = None if cc.path else native.builtin_object(cc.name)
        if made is None:
            return [*steps, Step("BPF", "not tried", str(error)), Step("kernel", "not tried", "nothing to load")]
        compiled, clang, warnings = made, f"{native.builtin_objects_compiler()} when elephan was built", []
    except native.CompileError as error:
        # Its first line names the file, which stands above already.
        text = str(error).partition("\n")[2] or str(error)
        return [
            *steps,
            Step("BPF", "failed", text, tuple(error.problems)),
            Step("kernel", "not tried", "nothing to load"),
        ]
    steps.append(Step("BPF", "passed", f"compiled by {clang}, {count(len(compiled))} bytes", tuple(warnings)))
    lacking = lacks()
    steps.append(Step("kernel", "not tried", lacking) if lacking else verified(compiled, Path(file).name, cc.code))
    return steps


def lacks() -> str:
    """Return what this machine lacks to load BPF, in plain words; "" when nothing."""
    if not BTF.exists():
        return "this kernel has no BTF (CONFIG_DEBUG_INFO_BTF): nothing can be loaded"
    missing = [name for name, number in CAPABILITIES.items() if not effective_capabilities() >> number & 1]
    if missing:
        return f"needs root ({', '.join(missing)}): run it with sudo to put it through the kernel's verifier"
    if USER_NAMESPACE.stat().st_ino != FIRST_USER_NAMESPACE:
        return "needs root outside of a user namespace (a rootless container has one): root of it can load nothing"
    return ""


def effective_capabilities(status: Path = Path("/proc/self/status")) -> int:
    """Return this process's effective capabilities as bits."""
    try:
        found = re.search(r"^CapEff:\s*([0-9a-f]+)", status.read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1], 16) if found else 0


def verified(
    compiled: bytes, file: str, code: str, settings: Mapping[str, Any] | None = None, register: bool = False
) -> Step:
    """Put an object through the verifier in a process of its own, to which all of it belongs unless it registers it.

    `settings`: what makes a variant of it (`native.ControlSettings`).
    """
    command = python_command("-m", "elephan.congestion_control.load", *(["--register"] if register else []))
    if settings is not None:
        command += ["--settings", json.dumps(settings)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        # In a session of its own: a terminal's Ctrl-C is for elephan, which ends this or waits for it.
        done = subprocess.run(
            command,
            input=compiled,
            capture_output=True,
            timeout=LONGEST_S,
            check=False,
            env=environment,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        return Step("kernel", "failed", f"the verifier has not answered within {LONGEST_S} s")
    kernel = f"{os.uname().sysname} {os.uname().release}"
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        errors = done.stderr.decode(errors="replace")
        return Step("kernel", "failed", (errors.strip().splitlines() or ["no answer"])[-1])
    if answer["passed"]:
        programs = pluralize(answer["programs"], "program")
        return Step("kernel", "passed", f"{kernel}: {programs}, {count(answer['steps'])} steps of its verifier")
    if answer["kind"] == "object":
        return Step("kernel", "failed", answer["error"])
    if answer["kind"] == "call":
        return Step("kernel", "failed", f"{kernel} does not register it: {answer['error']}")
    return Step("kernel", "failed", f"{kernel} refuses it", (explained(answer, file, code),))

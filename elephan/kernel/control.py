"""What `elephan kernel` does."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from elephan.core import native
from elephan.errors import InputError
from elephan.kernel.maps import Loaded, library, loaded, remove
from elephan.kernel.prepare import prepared
from elephan.stack import find, verify

MARK = "elephan_"
LONGEST = 15
"""Characters of a congestion control's name (TCP_CA_NAME_MAX less its end)."""

SYSCTL = Path("/proc/sys/net/ipv4")


def kernel_name(name: str) -> str:
    """Return the name in the kernel: elephan's mark and 7 characters."""
    bare = name.removeprefix(MARK)
    if not re.fullmatch(r"[a-z0-9_]+", bare):
        raise InputError(f"a name has a-z, 0-9 and _: {name!r}")
    return (MARK + bare)[:LONGEST]


def load(what: str, settings: Sequence[str] = ()) -> tuple[str, str]:
    """Load `NAME`, `NAME=variant` or a .c file; return its name in the kernel and what the verifier said."""
    algorithm, _, variant = what.partition("=")
    stack = find(algorithm)
    name = kernel_name(variant or stack.name)
    values = values_of(algorithm, settings)
    lacking = verify.lacks()
    if lacking:
        raise InputError(lacking)
    if any(one.name == name and one.registered for one in loaded()):
        raise InputError(
            f"{name} is loaded already (the kernel keeps {LONGEST - len(MARK)} characters behind {MARK}): "
            f"unload it, or give another name: {algorithm}=other"
        )
    file = stack.path or f"{stack.name}.c"
    core = native()
    try:
        compiled, _, _ = core.compile_bpf(file, stack.code, name)
    except (core.NoClang, core.CompileError) as error:
        raise InputError(str(error)) from error
    step = verify.verified(prepared(compiled, name, values), Path(file).name, stack.code, register=True)
    if step.state != "passed":
        places = [f"line {p['line']}: {p['what']}" if p["line"] else str(p["what"]) for p in step.problems]
        raise InputError("; ".join([f"{file}: {step.text}", *places]))
    return name, step.text


def unload(name: str) -> str:
    """Unregister one of ours; return its name in the kernel."""
    full = kernel_name(name)
    found = [one for one in loaded() if one.name == full and one.registered]
    if not found:
        names = ", ".join(one.name for one in loaded() if one.registered) or "nothing"
        raise InputError(f"{full} is not loaded; loaded is {names}")
    if current() == full:
        raise InputError(f"{full} is the default here: first `elephan kernel default cubic`, or another")
    remove(found[0])
    return full


def clean() -> list[Loaded]:
    """Unregister all of ours; a default that is ours goes back to what the kernel always has."""
    if current().startswith(MARK):
        _set("cubic" if "cubic" in available() else "reno")
    found = [one for one in loaded() if one.registered]
    for one in found:
        remove(one)
    return found


def default(name: str) -> tuple[str, str]:
    """Make it the default of this network namespace; return what was and what is."""
    before = current()
    full = name if name in available() else kernel_name(name)
    if full not in available():
        raise InputError(f"{full} is not in the kernel; there is {', '.join(available())}")
    _set(full)
    return before, full


def current() -> str:
    """Return this namespace's default."""
    return (SYSCTL / "tcp_congestion_control").read_text().strip()


def available() -> list[str]:
    """Return what the kernel has, ours and its own."""
    return (SYSCTL / "tcp_available_congestion_control").read_text().split()


def check() -> list[verify.Step]:
    """Return what this machine has and lacks."""
    steps = []
    btf = verify.BTF.exists()
    steps.append(_step("BTF", btf, "the kernel describes its types", "no BTF (CONFIG_DEBUG_INFO_BTF): nothing loads"))
    ops = btf and b"\0bpf_struct_ops_tcp_congestion_ops\0" in verify.BTF.read_bytes()
    steps.append(
        _step("struct_ops", ops, "takes congestion controls", "takes no congestion control by BPF (Linux 5.6, BPF_JIT)")
    )
    numbers = re.match(r"(\d+)\.(\d+)", os.uname().release)
    newer = numbers is not None and (int(numbers[1]), int(numbers[2])) >= (6, 10)
    steps.append(
        _step(
            "cong_control",
            newer,
            f"Linux {os.uname().release}",
            f"Linux {os.uname().release} is older than 6.10: no bbr; those without the hook cong_control work",
        )
    )
    lacking = verify.lacks()
    steps.append(_step("rights", not lacking, "may load", lacking))
    try:
        library()
        steps.append(verify.Step("libbpf", "passed", "is installed"))
    except InputError as error:
        steps.append(verify.Step("libbpf", "failed", str(error)))
    try:
        reno = find("reno")
        _, clang, _ = native().compile_bpf("reno.c", reno.code, None)
        steps.append(verify.Step("clang", "passed", clang))
    except native().NoClang as error:
        steps.append(verify.Step("clang", "failed", str(error)))
    return steps


def _step(name: str, good: bool, has: str, misses: str) -> verify.Step:
    return verify.Step(name, "passed" if good else "failed", has if good else misses)


def values_of(algorithm: str, settings: Sequence[str]) -> dict[str, int]:
    """Return the parameters `NAME=VALUE` of a stack as integers. Raises `InputError`."""
    from elephan.scenario.problem import Problem
    from elephan.scenario.spec.stack import resolve

    table: dict[str, object] = {"name": algorithm}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or key.strip() == "name":
            raise InputError(f"--set {setting}: write NAME=VALUE")
        table[key.strip()] = int(value) if re.fullmatch(r"-?\d+", value.strip()) else value.strip()
    try:
        return resolve(table, Path.cwd(), ())[1]
    except Problem as error:
        where = ".".join(str(part) for part in error.location)
        raise InputError(f"--set {where}: {error.expected}") from error


def _set(name: str) -> None:
    try:
        (SYSCTL / "tcp_congestion_control").write_text(name)
    except OSError as error:
        raise InputError(f"cannot set net.ipv4.tcp_congestion_control: {error.strerror} (needs root)") from error

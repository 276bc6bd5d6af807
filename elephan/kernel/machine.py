"""Support of this machine's kernel for congestion controls."""

from __future__ import annotations

import os
import re

from elephan.congestion_control import congestion_controls, find, verify
from elephan.core import native
from elephan.units import pluralize


def check() -> list[verify.Step]:
    """Return what this machine has and lacks."""
    steps = []
    btf = verify.BTF.exists()
    steps.append(_step("BTF", btf, "the kernel describes its types", "no BTF (CONFIG_DEBUG_INFO_BTF): nothing loads"))
    ops = btf and _takes_controls()
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
    return [*steps, _objects(), _clang()]


def loads(steps: list[verify.Step]) -> bool:
    """Return whether anything can be loaded, by what `check` returns."""
    passed = {step.name for step in steps if step.state == "passed"}
    return passed >= {"BTF", "struct_ops", "rights"} and bool(passed & {"objects", "clang"})


def _takes_controls() -> bool:
    try:
        return bool(native.kernel_has_struct("bpf_struct_ops_tcp_congestion_ops"))
    except native.BpfError:
        # Types that libbpf cannot read are as good as none.
        return False


def _objects() -> verify.Step:
    made = [cc for cc in congestion_controls() if native.builtin_object(cc.name) is not None]
    if not made:
        text = (
            "none: there was no clang when elephan was built; its congestion controls are compiled when they are loaded"
        )
        return verify.Step("objects", "failed", text)
    which = "all" if len(made) == len(congestion_controls()) else str(len(made))
    controls = pluralize(len(congestion_controls()), "congestion control")
    text = f"{which} of {controls} in the package, made by {native.builtin_objects_compiler()}"
    return verify.Step("objects", "passed", text)


def _clang() -> verify.Step:
    try:
        _, clang, _ = native.compile_bpf("reno.c", find("reno").code)
    except native.NoClang as error:
        return verify.Step("clang", "failed", f"{error}: no file of your own can be loaded")
    except native.CompileError as error:
        return verify.Step("clang", "failed", str(error))
    return verify.Step("clang", "passed", f"{clang}, for files of your own")


def _step(name: str, good: bool, has: str, misses: str) -> verify.Step:
    return verify.Step(name, "passed" if good else "failed", has if good else misses)

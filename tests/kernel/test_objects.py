"""The objects in the package, and the settings in a copy before it is loaded."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from elephan.congestion_control import congestion_controls, find, verify
from elephan.core import native
from elephan.errors import InputError
from elephan.kernel import loaded, machine, names

Elephan = Callable[..., subprocess.CompletedProcess[str]]


def compiled(cc: str) -> bytes:
    """Return the object of the package, or one compiled now."""
    made: bytes | None = native.builtin_object(cc)
    if made is not None:
        return made
    try:
        return bytes(native.compile_bpf(f"{cc}.c", find(cc).code)[0])
    except native.NoClang as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("cc", [cc.name for cc in congestion_controls()])
def test_the_verifier_takes_every_cc_that_listens(cc: str) -> None:
    lacking = verify.lacks()
    if lacking:
        pytest.skip(lacking)
    before = compiled(cc)
    settings = [{"name": "elephan_ql", "listens": listens} for listens in (True, False)]
    steps = [verify.verified(before, f"{cc}.c", find(cc).code, one) for one in settings]
    assert [step.state for step in steps] == ["passed", "passed"], steps[0].problems
    # Of one that does not listen the kernel has none of it.
    if "cong_avoid" in find(cc).hooks:
        counted = [int(re.search(r"([\d,]+) steps", step.text)[1].replace(",", "")) for step in steps]
        assert counted[0] > counted[1] + 100


def test_a_setting_that_an_object_cannot_take_is_one_line_and_nothing_is_loaded() -> None:
    if lacking := verify.lacks():
        pytest.skip(lacking)
    for settings, said in (
        ({"name": "elephan_qa", "parameters": {"nonsense": 1}}, "has no parameter 'nonsense': the algorithm never"),
        ({"name": "elephan_too_long"}, "the name elephan_too_long has 16 bytes, and there is room for 15"),
    ):
        step = verify.verified(compiled("reno"), "reno.c", find("reno").code, settings, register=True)
        assert step.state == "failed" and said in step.text and not step.problems


def test_the_module_brings_libbpf_along() -> None:
    # Of the machine it takes libelf and zlib at the most; a wheel brings those along as well (tests/wheel).
    needed = subprocess.run(["ldd", native.__file__], capture_output=True, text=True, check=True).stdout
    assert "libc." in needed and "libbpf." not in needed, needed


def test_names_fit_and_can_be_told_apart() -> None:
    own = [names.kernel_name(cc.name) for cc in congestion_controls()]
    assert len(set(own)) == len(own) and all(len(name) <= names.LONGEST for name in own)
    assert names.kernel_name("storage_friendly") == "elephan_storage"
    assert names.kernel_name("k3f0a01") == names.kernel_name("elephan_k3f0a01") == "elephan_k3f0a01"
    variants = [f"sf_reduction_{number}" for number in range(200)]
    made = {names.kernel_name(variant) for variant in variants}
    assert len(made) >= 198 and all(len(name) == names.LONGEST and name.startswith("elephan_sf_r") for name in made)
    # Written into configurations: it must not change.
    assert names.kernel_name("sf_quarter") == "elephan_sf_q303"
    with pytest.raises(InputError, match="a-z"):
        names.kernel_name("Upper")


def test_built_in_ccs_load_without_clang_and_a_file_does_not(kernel: None, elephan: Elephan, tmp_path: Path) -> None:
    if native.builtin_objects_compiler() is None:
        pytest.skip("there was no clang when elephan was built: the package has no objects")
    hidden = {"CLANG": "", "PATH": str(_tools(tmp_path / "bin"))}
    said = elephan("check", **hidden)
    assert said.returncode == 0, said.stderr
    lines = {line.split()[0]: line.split()[1] for line in said.stdout.splitlines()}
    assert (lines["objects"], lines["clang"]) == ("yes", "no")
    done = elephan("load", "reno=qo_none", **hidden)
    assert done.returncode == 0 and done.stdout.startswith("elephan_qo_none: "), done.stderr
    (one,) = [one for one in loaded() if one.name == "elephan_qo_none"]
    assert (one.label, one.registered) == ("reno=qo_none", True)
    file = tmp_path / "mine.c"
    file.write_text(find("reno").code)
    done = elephan("load", f"{file}=qo_file", **hidden)
    assert done.returncode == 2
    assert done.stderr.startswith("error: clang 11 or later is not installed: apt-get install clang-16 ")


def test_check_says_which_of_both_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    has = {step.name: verify.Step(step.name, "passed", "") for step in machine.check()}

    def without(*missing: str) -> list[verify.Step]:
        return [verify.Step(name, "failed" if name in missing else "passed", "") for name in has]

    assert machine.loads(without()) and machine.loads(without("objects")) and machine.loads(without("clang"))
    assert machine.loads(without("cong_control"))
    for missing in (("objects", "clang"), ("BTF",), ("rights",), ("struct_ops",)):
        assert not machine.loads(without(*missing)), missing


def test_list_tells_cc_parameters_and_users(kernel: None, elephan: Elephan) -> None:
    settings = ("--set", "reduction=1/4", "--set", "cap=100")
    assert elephan("load", "storage_friendly=qo_long_name", *settings).returncode == 0
    assert elephan("load", "cubic=qo_plain", "--restricted").returncode == 0
    (one,) = [one for one in loaded() if one.label == "storage_friendly=qo_long_name"]
    assert one.name == names.kernel_name("qo_long_name")
    assert one.parameters == {"reduction": "1/4", "congestion_avoidance": "on", "cap": "100"}
    assert one.changed == ("reduction", "cap")
    (plain,) = [one for one in loaded() if one.name == "elephan_qo_plai"] or [
        one for one in loaded() if one.label == "cubic=qo_plain"
    ]
    declared = {item.name: item.default for item in find("cubic").parameters}
    assert plain.values == declared and plain.changed == ()
    lines = elephan("list").stdout.splitlines()
    (line,) = [line for line in lines if one.name in line]
    assert "storage_friendly=qo_long_name  reduction=1/4, cap=100" in line and "0 connections here" in line
    (line,) = [line for line in lines if "cubic=qo_plain" in line]
    assert "as its file says" in line and "restricted" in line
    # Each form of its name finds it.
    assert elephan("unload", "qo_long_name").stdout == f"unloaded {one.name}\n"
    assert elephan("load", "storage_friendly=qo_long_name").returncode == 0
    assert elephan("unload", "storage_friendly=qo_long_name").stdout == f"unloaded {one.name}\n"
    assert elephan("unload", plain.name.removeprefix("elephan_")).returncode == 0


def _tools(folder: Path) -> Path:
    """Return a PATH with all needed tools but clang."""
    import shutil

    folder.mkdir()
    for name in ("cc", "as", "ld", "ss", "ip", "env"):
        if found := shutil.which(name):
            (folder / name).symlink_to(found)
    return folder

"""A namespace's default: of one namespace alone, not the host's by mistake, and restored.

The setting of the namespace in which the tests run is never changed: what is tried there is to set what it is already.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from elephan.errors import InputError
from elephan.kernel import MARK, control, load, namespaces, saved_default, unload

Run = Callable[..., str]
Elephan = Callable[..., subprocess.CompletedProcess[str]]

THERE_AND_BACK = """
import sys
from elephan.kernel import saved_default, control, namespaces
one, two = sys.argv[1:]
namespaces.make_default("reno")
print(*control.default(one), *control.default(two), namespaces.current())
print(control.unload(two).default, namespaces.current(), saved_default.noted(two))
"""

STALE = """
import sys
from elephan.kernel import saved_default, control, namespaces
one, two, other = sys.argv[1:]
namespaces.make_default("reno")
control.default(one)
# By hand, as sysctl(8) does it: first another of ours, then one of the kernel's own.
namespaces.make_default(two)
print(saved_default.noted(two), control.default(one)[0], saved_default.noted(one))
namespaces.make_default(other)
print(saved_default.noted(other), control.default(one)[0], *control.unload(one).default)
"""

UNKNOWN = """
import sys
from elephan.kernel import saved_default, control, namespaces
namespaces.make_default(sys.argv[1])
print(saved_default.noted(sys.argv[1]), *control.unload(sys.argv[1]).default)
"""

CONTAINER = """
import sys
from elephan.kernel import control, namespaces
print(namespaces.FIRST_ONLY.exists(), namespaces.why_hosts())
was = namespaces.current()
try:
    control.default(sys.argv[1])
except Exception as error:
    print(error)
print(namespaces.current() == was)
print(control.default(sys.argv[1], host=True)[1], namespaces.current())
control.default("reno", host=True)
"""


def test_the_hosts_namespace_is_refused_and_left_as_it_is(elephan: Elephan) -> None:
    if not namespaces.why_hosts():
        pytest.skip("the tests run in a network namespace of their own")
    was = namespaces.current()
    with pytest.raises(InputError, match="--host") as error:
        control.default(was)
    assert "first network namespace" in str(error.value) or "process 1" in str(error.value)
    done = elephan("default", was)
    assert done.returncode == 2 and done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert namespaces.current() == was


def test_process_1_of_a_container_is_the_host(kernel: None, in_namespace: Run) -> None:
    outside = namespaces.current()
    name, _ = load("reno=qd_host")
    first, refused, left, done = in_namespace(CONTAINER, name, options=("--pid", "--fork", "--mount-proc")).splitlines()
    assert first == "False the network namespace of process 1"
    assert "--host" in refused and name in refused
    assert left == "True" and done == f"{name} {name}"
    assert namespaces.current() == outside


def test_what_was_before_the_first_of_ours_comes_back(kernel: None, in_namespace: Run) -> None:
    outside, noted = namespaces.current(), _entries()
    one, two = load("reno=qd_one")[0], load("cubic=qd_two")[0]
    said, back = in_namespace(THERE_AND_BACK, one, two).splitlines()
    assert said.split() == ["reno", one, one, two, two]
    assert back == f"('{two}', 'reno') reno None"
    assert namespaces.current() == outside
    assert _entries() == noted


def test_another_default_set_since_then_counts(kernel: None, in_namespace: Run) -> None:
    one, two = load("reno=qd_old")[0], load("reno=qd_new")[0]
    own = [name for name in namespaces.allowed() if not name.startswith(MARK)]
    other = own[-1]
    assert in_namespace(STALE, one, two, other).splitlines() == [f"None {two} None", f"None {other} {one} {other}"]


def test_without_a_note_the_kernels_own_comes(kernel: None, in_namespace: Run) -> None:
    name, _ = load("reno=qd_unk")
    noted, was, now = in_namespace(UNKNOWN, name).split()
    assert (noted, was) == ("None", name)
    assert now == ("cubic" if "cubic" in namespaces.allowed() else "reno")


def test_a_note_of_another_start_or_of_another_default_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved_default, "FOLDER", tmp_path / "defaults")
    saved_default.note("bbr", "elephan_qd")
    assert saved_default.noted("elephan_qd") == "bbr"
    assert saved_default.noted("elephan_other") is None
    boot = tmp_path / "boot"
    boot.write_text("another\n")
    monkeypatch.setattr(saved_default, "BOOT", boot)
    assert saved_default.noted("elephan_qd") is None
    (entry,) = (tmp_path / "defaults").iterdir()
    entry.write_text("no JSON")
    assert saved_default.noted("elephan_qd") is None
    saved_default.forget()
    assert not (tmp_path / "defaults").exists()


def test_other_namespaces_that_keep_it_are_named(kernel: None, elephan: Elephan) -> None:
    name, _ = load("reno=qd_els")
    other = "elephan-qd-els"
    subprocess.run(["ip", "netns", "add", other], check=True)
    try:
        inside = ("nsenter", f"--net=/run/netns/{other}")
        was = elephan("default", "qd_els", prefix=inside)
        assert was.returncode == 0, was.stderr
        assert f"default of {other}" in elephan("list").stdout
        said = [entry for entry in unload(name).elsewhere if entry.namespace == other]
        assert [entry.default for entry in said] == [name]
        # Unloaded, it can still be replaced by the former one in a namespace that has it as its default.
        assert elephan("default", "reno", prefix=inside).returncode == 0
    finally:
        subprocess.run(["ip", "netns", "delete", other], check=True)


def _entries() -> set[str]:
    return {path.name for path in saved_default.FOLDER.glob("*")}

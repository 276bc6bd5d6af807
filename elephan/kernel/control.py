"""Load, unload, clean, and a namespace's default."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from elephan.congestion_control import CongestionControl, find, verify
from elephan.core import native
from elephan.errors import InputError
from elephan.kernel import namespaces, runs, saved_default, stale_files
from elephan.kernel.maps import MARK, Loaded, loaded, remove
from elephan.kernel.names import kernel_name, named


@dataclass(frozen=True)
class Removed:
    """Result of `unload` and `clean`."""

    unloaded: list[Loaded]
    default: tuple[str, str] | None
    """This namespace's default before and now; None if it was none of those."""
    elsewhere: list[namespaces.Elsewhere]
    """Namespaces that have one of those as their default, and keep it."""
    folders: list[Path]
    """Of compilers that were killed, removed."""


def load(what: str, settings: Sequence[str] = (), restricted: bool = False) -> tuple[str, str]:
    """Load `NAME`, `NAME=variant` or a .c file; return its name in the kernel and what the verifier said.

    `restricted`: only programs with CAP_NET_ADMIN may choose it. Raises `InputError` with the reason in words.
    """
    cc, variant, name = chosen(what)
    algorithm = what.partition("=")[0]
    label = f"{cc.name}={variant}" if variant else cc.name
    values = values_of(algorithm, settings)
    lacking = verify.lacks()
    if lacking:
        raise InputError(lacking)
    for one in loaded():
        if one.name == name and one.registered:
            known = f" as {one.label}" if one.label not in ("", label) else ""
            raise InputError(f"{name} is loaded already{known}: unload it, or give another name: {algorithm}=other")
    return name, register(cc, name, label, values, restricted)


def chosen(what: str) -> tuple[CongestionControl, str, str]:
    """Return the congestion control, the variant ("": none) and the name in the kernel of `NAME`, `NAME=variant` or a
    .c file.

    Raises `InputError`.
    """
    algorithm, equals, variant = what.partition("=")
    cc = find(algorithm)
    if equals and not variant:
        raise InputError(f"{what}: the variant's name follows the =: write {algorithm}, or {algorithm}=mine")
    name = kernel_name(variant or cc.name)
    if runs.is_of_run(name):
        # `path clean` would take it for the remains of a killed run.
        raise InputError(
            f"{name}: elephan_k, four hex digits and two more is how runs name theirs: take another variant"
        )
    return cc, variant, name


def register(
    cc: CongestionControl,
    name: str,
    label: str,
    values: Mapping[str, int],
    restricted: bool = False,
    listens: bool = False,
) -> str:
    """Register a congestion control as `name`, for people `label`, with these values; return what the verifier said.

    Also what a run of the backend kernel loads with; `listens` when its senders will be told something. Raises
    `InputError` with the compiler's or the verifier's reason.
    """
    file = cc.path or f"{cc.name}.c"
    settings = {
        "name": name,
        "parameters": dict(values),
        "label": label,
        "restricted": restricted,
        "listens": listens,
    }
    step = verify.verified(object_of(cc, file), Path(file).name, cc.code, settings, register=True)
    if step.state != "passed":
        raise InputError("\n".join([f"{file}: {step.text}", *(line for p in step.problems for line in _lines(p))]))
    return step.text


def unload(name: str) -> Removed:
    """Unregister one of ours; if it is the default here, the former default comes back."""
    everything = loaded()
    one = named(name, everything)
    if one is None:
        names = ", ".join(one.name for one in everything if one.registered) or "nothing"
        raise InputError(f"{name or repr(name)} is not loaded; loaded is {names}")
    changed = _put_back() if namespaces.current() == one.name else None
    remove(one)
    return Removed([one], changed, namespaces.elsewhere(lambda default: default == one.name), [])


def clean() -> Removed:
    """Unregister all of ours but those of runs that go on; if one is the default here, the former default comes back.
    """
    changed = _put_back() if namespaces.current().startswith(MARK) else None
    found = [one for one in loaded() if one.registered and not runs.lives(one.name)]
    for one in found:
        remove(one)
    return Removed(found, changed, namespaces.elsewhere(lambda default: default.startswith(MARK)), stale_files.remove())


def default(name: str, host: bool = False) -> tuple[str, str]:
    """Make it the default of this network namespace; return the former and the present one. The host's only if `host`
    is set.
    """
    was = namespaces.current()
    there = namespaces.available()
    one = None if name in there else named(name, loaded())
    full = one.name if one else name
    if full not in there:
        raise InputError(f"{name or repr(name)} is not in the kernel; there is {', '.join(there)}")
    why = namespaces.why_hosts()
    if why and not host:
        raise InputError(
            f"this is {why}: every connection of this host that begins from now on would use {full}; "
            "if that is wanted, say --host, else go into a namespace of your own (ip netns exec NAME ...)"
        )
    if not full.startswith(MARK):
        namespaces.make_default(full)
        saved_default.forget()
        return was, full
    # The first that was not ours counts, through however many of ours; nothing is known of what others have set.
    earlier = saved_default.noted(was) if was.startswith(MARK) else was
    if earlier is None:
        saved_default.forget()
    else:
        saved_default.note(earlier, full)
    try:
        namespaces.make_default(full)
    except InputError:
        # The default and the note of it are unchanged.
        if earlier is not None and was.startswith(MARK):
            saved_default.note(earlier, was)
        else:
            saved_default.forget()
        raise
    return was, full


def _put_back() -> tuple[str, str]:
    was = namespaces.current()
    there = namespaces.available()
    earlier = saved_default.noted(was)
    if earlier is None or earlier not in there:
        # Linux has reno always, and cubic as it comes; a namespace takes only what every program may choose.
        earlier = "cubic" if "cubic" in namespaces.allowed() else "reno"
    namespaces.make_default(earlier)
    saved_default.forget()
    return was, earlier


def object_of(cc: CongestionControl, file: str) -> bytes:
    made: bytes | None = None if cc.path else native.builtin_object(cc.name)
    if made is not None:
        return made
    try:
        compiled: bytes = native.compile_bpf(file, cc.code)[0]
    except (native.NoClang, native.CompileError) as error:
        raise InputError(str(error)) from error
    return compiled


def _lines(problem: Mapping[str, object]) -> list[str]:
    where = f"line {problem['line']}: " if problem["line"] else ""
    shown = f"    {problem['code']}" if problem["code"] else ""
    hint = f"  {problem['hint']}" if problem["hint"] else ""
    return [line for line in (f"{where}{problem['what']}", shown, hint) if line]


def values_of(algorithm: str, settings: Sequence[str]) -> dict[str, int]:
    """Return the parameters `NAME=VALUE` of a congestion control as integers. Raises `InputError`."""
    from elephan.scenario.problem import Problem
    from elephan.scenario.spec.transport import resolve

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

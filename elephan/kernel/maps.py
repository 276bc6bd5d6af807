"""The congestion controls in the kernel that are elephan's, as crates/bpf finds them among its struct_ops maps."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from elephan.congestion_control import Parameter
from elephan.core import native
from elephan.errors import InputError

if TYPE_CHECKING:
    from elephan._native import BpfMap, _RegisteredControl

MARK = "elephan_"
NAME = re.compile(rf"{MARK}[a-z0-9_]{{1,7}}")


@dataclass(frozen=True)
class Loaded:
    """One of ours in the kernel."""

    name: str
    map_id: int
    registered: bool
    """False when it is unregistered and something that began before still uses it."""
    label: str = ""
    """Its congestion control, and behind "=" its variant; "" if the kernel does not tell (before Linux 5.10)."""
    values: dict[str, int] = field(default_factory=dict)
    """Its parameters, as the object has them."""
    parameters: dict[str, str] = field(default_factory=dict)
    """The same, as a scenario writes them."""
    changed: tuple[str, ...] = ()
    """Parameters that differ from the algorithm's file."""

    @property
    def variant(self) -> str:
        """Return its variant's name, or its congestion control's where it has none."""
        return self.label.partition("=")[2] or self.label


def loaded() -> list[Loaded]:
    """Return all of ours, by name. Raises `InputError` when the kernel does not let us look."""
    return [_described(one) for one in _registered()]


@contextmanager
def hashes(names: Collection[str]) -> Iterator[dict[str, dict[str, BpfMap]]]:
    """Give the hash maps that lie beside registered controls, by the control's and the map's name.

    They stay for as long as the context lasts, whatever becomes of the controls. Raises `InputError` as `loaded` does.
    """
    found: dict[str, dict[str, BpfMap]] = {name: {} for name in names}
    try:
        for one in _registered():
            if one["in_use"] and one["name"] in found:
                found[one["name"]] = {name: native.BpfMap(number) for name, number in one["hashes"].items()}
    except native.BpfError as error:
        raise InputError(str(error)) from error
    yield found


def remove(one: Loaded) -> None:
    """Unregister it. One that has gone meanwhile is no error."""
    try:
        native.unregister_control(one.map_id)
    except native.BpfError as error:
        raise InputError(f"{one.name}: {error}") from error


def _registered() -> list[_RegisteredControl]:
    try:
        found: list[_RegisteredControl] = native.registered_controls(MARK)
    except native.BpfError as error:
        raise InputError(f"{error} (needs root)") from error
    return [one for one in found if NAME.fullmatch(one["name"])]


def _described(one: _RegisteredControl) -> Loaded:
    """Return it with its parameters as a scenario writes them, as far as the kernel tells."""
    values, written, changed = {}, {}, []
    for key, (value, declared) in one["parameters"].items():
        parameter = _parameter(key, declared)
        values[key] = value
        written[key] = parameter.text(value) if parameter else str(value)
        if parameter and parameter.default != value:
            changed.append(key)
    return Loaded(one["name"], one["map_id"], one["in_use"], one["label"], values, written, tuple(changed))


def _parameter(name: str, declared: Mapping[str, str]) -> Parameter | None:
    try:
        default, minimum, maximum, scale = (int(declared[key], 0) for key in ("default", "min", "max", "scale"))
    except (KeyError, ValueError):
        # No tags, or one with an expression of C in it.
        return None
    return Parameter(name, declared.get("unit", "1"), default, minimum, maximum, scale, declared.get("doc", ""))

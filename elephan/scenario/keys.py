"""Dotted keys: how sweeps and `--set` name a place in a scenario.

`path.loss`; `flow.congestion_control` (all flows), `flow.backup.congestion_control` (by name),
`flow.0.congestion_control` (by place), `flow.*.congestion_control` (all).
"""

from __future__ import annotations

import copy
from typing import Any

from elephan.scenario.document import Document
from elephan.scenario.flow import Flow
from elephan.scenario.gateway import Gateway
from elephan.scenario.hybrid import Lightpath
from elephan.scenario.path import Link, Node
from elephan.scenario.problem import Location, Problem, unknown
from elephan.scenario.run import Background, Event
from elephan.scenario.table import Table

_ARRAYS: dict[str, type[Table]] = {
    "flow": Flow,
    "link": Link,
    "node": Gateway,
    "background": Background,
    "event": Event,
    "lightpath": Lightpath,
}

#: The key of the table that a short form stands for, so that `flow.congestion_control.reduction` reaches into
#: `congestion_control = "..."`.
_SHORT = {
    "congestion_control": "name",
    "workload": "kind",
    "source": "kind",
    "queue": "limit",
    "loss": "probability",
    "jitter": "scale",
    "send_overhead": "scale",
    "line": "type",
}


def entry_name(array: str, index: int, entry: Any) -> str:
    """The name an entry of an array of tables goes by; events have none but their place."""
    if array == "event":
        return str(index)
    if isinstance(entry, dict):
        if isinstance(entry.get("name"), str):
            return str(entry["name"])
        if array == "link" and "from" in entry and "to" in entry:
            return f"{entry['from']}-{entry['to']}"
    return f"{array}{index + 1}"


def assign(raw: dict[str, Any], key: str, value: Any) -> list[Location]:
    """Put `value` at `key` in the parsed file `raw`; return the places it went to. Raises `Problem` on unknown keys."""
    parts = key.split(".")
    head, rest = parts[0], parts[1:]
    if head not in Document.keys() or head == "sweep":
        raise Problem(parts, unknown("key", head, Document.keys()))
    if head not in _ARRAYS:
        _assign(raw, parts, value, ())
        return [tuple(parts)]
    places: list[Location] = []
    for index, remaining in _select(raw, head, rest, parts):
        entry = raw[head][index]
        if head == "flow" and len(remaining) > 1 and remaining[0] not in entry:
            _take_over_default(raw, entry, remaining[0])
        _assign(entry, remaining, value, (head, index))
        places.append((head, index, *remaining))
    return places


def _select(raw: dict[str, Any], head: str, rest: list[str], parts: list[str]) -> list[tuple[int, list[str]]]:
    entries = raw.get(head, [])
    entries = entries if isinstance(entries, list) else []
    # Of either kind of node.
    keys = [*_ARRAYS[head].keys(), *(Node.keys() if head == "node" else [])]
    names = [entry_name(head, index, entry) for index, entry in enumerate(entries)]
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise Problem((head, index), f"a table: [[{head}]]")
    if not entries:
        raise Problem(parts, f"a key of this scenario; it has no [[{head}]]")
    if not rest:
        raise Problem(parts, f'a key of a {head}, such as "{head}.{keys[0]}"')
    first = rest[0]
    if first in names:
        chosen, rest = [names.index(first)], rest[1:]
    elif first.isdigit():
        if int(first) >= len(entries):
            raise Problem(parts, f"a {head} from 0 to {len(entries) - 1}")
        chosen, rest = [int(first)], rest[1:]
    else:
        chosen = list(range(len(entries)))
        if first == "*":
            rest = rest[1:]
        elif first not in keys:
            instead = _ARRAYS[head].renamed_key(first)
            raise Problem(parts, instead or unknown(f"{head} or key of a {head}", first, [*names, *keys]))
    if not rest:
        raise Problem(parts, f'a key of this {head}, such as "{".".join(parts)}.{keys[0]}"')
    return [(index, rest) for index in chosen]


def _take_over_default(raw: dict[str, Any], entry: dict[str, Any], key: str) -> None:
    """A key below one that comes from elsewhere: `flow.congestion_control.reduction` where `[defaults]` names the
    congestion control."""
    defaults = raw.get("defaults", {})
    if isinstance(defaults, dict) and key in defaults:
        entry[key] = copy.deepcopy(defaults[key])
    elif key in Flow.model_fields and isinstance(Flow.model_fields[key].default, str | dict):
        entry[key] = copy.deepcopy(Flow.model_fields[key].default)


def _assign(table: dict[str, Any], parts: list[str], value: Any, prefix: Location) -> None:
    for part in parts[:-1]:
        inner = table.get(part)
        if inner is None:
            inner = {}
        elif not isinstance(inner, dict):
            if part not in _SHORT or isinstance(inner, list):
                raise Problem((*prefix, *parts), f'a key that exists; "{part}" is not a table')
            inner = {_SHORT[part]: inner}
        table[part] = inner
        table = inner
    table[parts[-1]] = copy.deepcopy(value)


def dotted(location: Location, raw: Any) -> str:
    """A place as a dotted key, entries of arrays by their names."""
    parts: list[str] = []
    for position, step in enumerate(location):
        if isinstance(step, int) and position == 1 and location[0] in _ARRAYS:
            entries = raw.get(str(location[0])) if isinstance(raw, dict) else None
            if isinstance(entries, list) and step < len(entries):
                parts.append(entry_name(str(location[0]), step, entries[step]))
                continue
        parts.append(str(step))
    return ".".join(parts)


def flatten(raw: dict[str, Any]) -> dict[Location, Any]:
    """Every leaf of a parsed file by its place. A congestion control's table is one leaf."""
    leaves: dict[Location, Any] = {}

    def visit(location: Location, value: Any) -> None:
        if isinstance(value, dict) and location[-1:] != ("congestion_control",):
            for key, inner in value.items():
                visit((*location, key), inner)
        elif isinstance(value, list) and value and all(isinstance(inner, dict) for inner in value):
            for index, inner in enumerate(value):
                visit((*location, index), inner)
        else:
            leaves[location] = value

    visit((), raw)
    return leaves

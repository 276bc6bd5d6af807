"""Loaded congestion controls, as lines and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

from elephan.kernel import MARK, Loaded, namespaces, sockets
from elephan.units import pluralize


def as_lines(everything: Sequence[Loaded]) -> list[str]:
    """Return a line for each: name, congestion control and variant, parameters that are not the file's, who uses it."""
    rows = [(one.name, one.label or "?", _changed(one), ", ".join(notes)) for one, notes in _noted(everything)]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    return ["  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]) for row in rows]


def as_json(everything: Sequence[Loaded]) -> str:
    """Return all that is known of each."""
    users = sockets.users(MARK)
    rows = [
        {
            "name": one.name,
            "congestion_control": one.label.partition("=")[0] or None,
            "variant": one.label.partition("=")[2] or None,
            "parameters": one.parameters,
            "changed": list(one.changed),
            "registered": one.registered,
            "notes": notes,
        }
        | ({} if users is None else {"connections_here": users[one.name]})
        for one, notes in _noted(everything)
    ]
    return json.dumps(rows, indent=1)


def _changed(one: Loaded) -> str:
    if not one.label:
        return "?"
    return ", ".join(f"{name}={one.parameters[name]}" for name in one.changed) or "as its file says"


def _noted(everything: Sequence[Loaded]) -> list[tuple[Loaded, list[str]]]:
    users = sockets.users(MARK) if everything else None
    here, allowed = namespaces.current(), namespaces.allowed()
    elsewhere = namespaces.elsewhere(lambda default: default.startswith(MARK)) if everything else []
    result = []
    for one in everything:
        notes = [] if users is None else [f"{pluralize(users[one.name], 'connection')} here"]
        if not one.registered:
            notes = ["unloaded; what began before still uses it"]
        elif one.name not in allowed:
            notes.append("restricted")
        if one.name == here:
            notes.append("default here")
        notes += [f"default of {other.namespace}" for other in elsewhere if other.default == one.name]
        result.append((one, notes))
    return result

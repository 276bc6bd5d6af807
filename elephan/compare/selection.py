"""The congestion controls of a comparison: parse the text after --cc."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from elephan.congestion_control import congestion_controls, find
from elephan.errors import InputError
from elephan.scenario.toml import format_value, parse_value

ALL = "all"

ITEM = re.compile(r"\s*(?P<name>[^\s(),]+)\s*(?:\((?P<values>[^()]*)\))?\s*")


@dataclass(frozen=True)
class Choice:
    """A congestion control to be compared."""

    label: str
    """As the user wrote it, a file without its folder."""
    value: str
    """As `--set flow.congestion_control=` takes it."""
    max_pacing_bps: tuple[int, ...] | None = None
    """Per flow, the most payload of each of its connections, paced; None: as the scenario has it."""
    streams: int | None = None
    """Connections of the only flow; None: as the scenario has it."""

    def changes(self, flows: int) -> list[str]:
        """Return the changes to a scenario of so many flows."""
        found = [f"flow.{index}.congestion_control={self.value}" for index in range(flows)]
        if self.max_pacing_bps is not None:
            found += [
                f'flow.{index}.max_pacing_rate="{bound_bps}bit/s"'
                for index, bound_bps in enumerate(self.max_pacing_bps)
            ]
        if self.streams is not None:
            found.append(f"flow.0.connections={self.streams}")
        return found


def chosen(text: str, folder: Path) -> list[Choice]:
    """Return the congestion controls of "all" or of "reno, cubic(beta=1/2), ./mine.c", each once. Raises `InputError`.

    A file is looked for where the user is, then in `folder`, where the scenario lies.
    """
    if text.strip() == ALL:
        return [Choice(cc.name, cc.name) for cc in congestion_controls()]
    found: dict[str, Choice] = {}
    at = 0
    while at < len(text):
        match = ITEM.match(text, at)
        end = match.end() if match else at
        if match is None or (end < len(text) and text[end] != ","):
            raise InputError(f'--cc {text}: expected "{ALL}", or names such as reno,cubic(beta=1/2),./mine.c')
        choice = _choice(match["name"], match["values"], folder)
        found.setdefault(choice.value, choice)
        at = end + 1
    if not found:
        raise InputError(f'--cc: expected "{ALL}", or names such as reno,cubic')
    return list(found.values())


def _choice(name: str, values: str | None, folder: Path) -> Choice:
    label = name
    if name.endswith(".c"):
        place = Path(name) if Path(name).exists() else folder / name
        if not place.is_file():
            raise InputError(f"--cc {name}: no such file")
        name, label = str(place.resolve()), place.name
    else:
        find(name)
    if not (values or "").strip():
        return Choice(label, format_value(name))
    table = {"name": name}
    for pair in (values or "").split(","):
        key, equals, value = pair.partition("=")
        if not equals:
            raise InputError(f"--cc {name}({values}): expected parameters such as reduction=1/4")
        table[key.strip()] = parse_value(value.strip())
    shown = ", ".join(f"{key}={value}" for key, value in list(table.items())[1:])
    return Choice(f"{label}({shown})", format_value(table))

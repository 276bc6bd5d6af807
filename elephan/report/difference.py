"""Two records beside each other: what differs, and by how much."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from elephan.record import Record, canonical_json
from elephan.report.metrics import metric
from elephan.report.points import cc_of, number, shown
from elephan.units import NOTHING, digits

Show = Callable[[Any], str]
ValueOf = Callable[[Any], float | None]

SPEC_LINES = 12
"""Keys of the specification that are listed if parameters do not tell the difference."""


@dataclass(frozen=True)
class Change:
    """A key whose values are not equal."""

    name: str
    old: Any
    new: Any
    old_text: str
    new_text: str
    relative: float | None = None
    """(new - old) / |old|; None where that has no meaning."""

    @property
    def relative_text(self) -> str:
        """Return the relative difference as a text."""
        if self.relative is None:
            return ""
        sign = "-" if self.relative < 0 else "+"
        return f"{sign}{digits(abs(self.relative) * 100)} %"


@dataclass(frozen=True)
class Section:
    """The changes of one part of a record, and how many of its keys are equal."""

    title: str
    changes: tuple[Change, ...]
    equal: int


@dataclass(frozen=True)
class Difference:
    """All that differs between two runs."""

    old: Record
    new: Record
    sections: tuple[Section, ...]
    text: tuple[str, ...]
    """The scenario files' difference, as `diff -u` writes it, without context."""

    def as_data(self) -> dict[str, Any]:
        """Return it for JSON: each section's keys with both values, and the relative difference where there is one."""
        sections = {
            section.title: {
                change.name: {"old": change.old, "new": change.new}
                | ({} if change.relative is None else {"relative": change.relative})
                for change in section.changes
            }
            for section in self.sections
        }
        return {"old": self.old.id, "new": self.new.id, **sections, "scenario text": list(self.text)}


def difference(old: Record, new: Record) -> Difference:
    """Compare two records, of any scenarios and backends."""
    parameters = _section("parameters", old.parameters, new.parameters, shown, number)
    sections = [
        _section("run", _run(old), _run(new)),
        _section("scenario", _scenario(old), _scenario(new)),
        parameters,
        _section("versions", _versions(old), _versions(new)),
        _section("host", _host(old), _host(new)),
    ]
    if not parameters.changes:
        changed = list(_leaves_that_differ(_spec(old), _spec(new)))
        sections.append(Section("specification", tuple(changed[:SPEC_LINES]), 0))
    sections.append(_metrics(old.metrics, new.metrics))
    sections.append(_section("notes", dict.fromkeys(old.notes, "yes"), dict.fromkeys(new.notes, "yes")))
    text = difflib.unified_diff(old.scenario.text.splitlines(), new.scenario.text.splitlines(), n=0, lineterm="")
    return Difference(old, new, tuple(sections), tuple(text)[2:])


def _run(record: Record) -> dict[str, Any]:
    return {
        "date": record.created,
        "backend": record.backend,
        "congestion control": cc_of(record),
        "seed": record.seed,
        "series": record.series.sha256[:16] if record.series else None,
    }


def _scenario(record: Record) -> dict[str, Any]:
    scenario = record.scenario
    return {
        "name": scenario.name,
        "title": scenario.title,
        "file": scenario.file,
        "--set": ", ".join(scenario.overrides) or None,
        **{item.path: f"{item.bytes} B, sha256 {item.sha256[:16]}" for item in record.inputs},
    }


def _versions(record: Record) -> dict[str, Any]:
    return {"elephan": record.version, "core": record.host.get("build"), "record": record.format}


def _host(record: Record) -> dict[str, Any]:
    return {name: value for name, value in record.host.items() if name != "build"}


def _spec(record: Record) -> dict[str, Any]:
    # The seed is listed already, and a capture changes no result.
    return {key: value for key, value in record.spec.items() if key not in ("seed", "format", "measure")}


def _section(
    title: str,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    show: Show | None = None,
    value_of: ValueOf | None = None,
) -> Section:
    changes = []
    names = list(dict.fromkeys([*old, *new]))
    for name in names:
        one, two = old.get(name), new.get(name)
        if not _same(one, two):
            relative = None if value_of is None else _relative(value_of(one), value_of(two))
            changes.append(Change(name, one, two, _text(one, show), _text(two, show), relative))
    return Section(title, tuple(changes), len(names) - len(changes))


def _metrics(old: Mapping[str, Any], new: Mapping[str, Any]) -> Section:
    names = list(dict.fromkeys([*old, *new]))
    changes = []
    for name in names:
        one, two = old.get(name), new.get(name)
        if not _same(one, two):
            item = metric(name)
            changes.append(Change(name, one, two, item.show(one), item.show(two), _relative(one, two)))
    return Section("metrics", tuple(changes), len(names) - len(changes))


def _leaves_that_differ(old: Any, new: Any, place: str = "") -> Iterable[Change]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _leaves_that_differ(old.get(key), new.get(key), f"{place}.{key}" if place else key)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _leaves_that_differ(one, other, f"{place}[{index}]")
    elif not _same(old, new):
        yield Change(place, old, new, _text(old), _text(new), _relative(old, new))


def _same(old: Any, new: Any) -> bool:
    return canonical_json(old) == canonical_json(new)


def _relative(old: Any, new: Any) -> float | None:
    if any(isinstance(value, bool) or not isinstance(value, (int, float)) for value in (old, new)) or old == 0:
        return None
    return float((new - old) / abs(old))


def _text(value: Any, show: Show | None = None) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, (dict, list)):
        text = canonical_json(value)
        return text if len(text) <= 60 else text[:57] + "..."
    return show(value) if show is not None else str(value)

"""Records as points: combine repetitions, separate varied from fixed parameters, and name each point."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

from elephan.record import Record, canonical_json
from elephan.report.connections import combined, is_bound
from elephan.report.statistics import Estimate, estimate
from elephan.report.windows import flows_of, metrics_of
from elephan.scenario.toml import format_value
from elephan.units import parse_share

MOST_ENTRIES = 100
"""Flow entries of a run that tables list: a reader looks at no more, and each costs a row of every table."""

REPETITION_KEYS = frozenset({"seed", "repetition", "repeat"})
"""Parameters that tell repetitions of one point apart, not points."""


@dataclass(frozen=True)
class Entity:
    """The subject of a row: a whole run, or one flow entry of it with all its connections."""

    name: str
    """The flow's name; "" for the run."""
    cc: str
    workload: str


@dataclass(frozen=True)
class Point:
    """One point of a sweep with all its repetitions."""

    records: tuple[Record, ...]
    varied: dict[str, Any]
    """Parameters in which points differ, with this point's values; without those that the congestion control's name
    tells."""
    cc: str
    """Congestion controls of the run; "reno + cubic" when flows differ."""
    names_cc: bool
    """True if points differ in the congestion control."""
    backend: str = ""
    """Backend, if points differ in it; else ""."""

    @property
    def first(self) -> Record:
        """The repetition that is drawn over time."""
        return self.records[0]

    @property
    def label(self) -> str:
        """Name of the point among the others: congestion control, varied parameters and backend."""
        return ", ".join([self.setting, *([self.backend] if self.backend else [])])

    @property
    def setting(self) -> str:
        """Its name without the backend."""
        parts = [self.cc] if self.names_cc or not self.varied else []
        parts += [f"{short(key)} {shown(value)}" for key, value in self.varied.items()]
        return ", ".join(parts)

    @property
    def curve(self) -> str:
        """Name of its curve in a figure of all congestion controls, or all backends, at one setting of the other
        parameters."""
        name = self.cc if self.names_cc else self.setting
        return f"{name}, {self.backend}" if self.backend else name

    def metric(self, name: str) -> Estimate | None:
        """Return a metric of the run over the repetitions; of a single one with the band of the extrapolation."""
        found = estimate([metrics_of(record).get(name) for record in self.records])
        if found is None or len(self.records) > 1:
            return found
        return replace(found, half_width=_band(self.first, name))

    def entities(self) -> list[Entity]:
        """Return the flow entries of the run, in order."""
        return list(self.by_group.values())

    @cached_property
    def by_group(self) -> dict[object, Entity]:
        """Flow entries of the run by the group of their connections, in order."""
        members = Counter(flow.get("group") for flow in self.first.flows)
        found: dict[object, Entity] = {}
        for flow in self.first.flows:
            group, name = flow.get("group"), str(flow["name"])
            if group not in found:
                name = re.sub(r"\.\d+$", "", name) if members[group] > 1 else name
                found[group] = Entity(name, str(flow["congestion_control"]), str(flow.get("workload", "")))
        return found

    @property
    def listed(self) -> list[tuple[object, Entity]]:
        """The flow entries that a table lists with their groups: none of a run that has one alone."""
        return list(islice(self.by_group.items(), MOST_ENTRIES)) if len(self.by_group) > 1 else []

    @cached_property
    def _by_group(self) -> list[tuple[dict[object, list[dict[str, Any]]], dict[object, list[dict[str, Any]]]]]:
        """Per repetition the shared workloads and the connections of each group: looked up, not searched for."""
        return [(_grouped(record.flow_groups), _grouped(flows_of(record))) for record in self.records]

    def flow_metric(self, group: object, name: str) -> Estimate | None:
        """Return a metric of a flow entry over the repetitions: where its connections share a workload the entry's own,
        else that of its connections together."""
        values: list[float | None] = []
        for record, (entries, flows) in zip(self.records, self._by_group, strict=True):
            own = [entry[name] for entry in entries.get(group, ()) if name in entry]
            values.append(own[0] if own else combined(record, group, flows.get(group, ()), name))
        return estimate(values)

    def is_bound(self, group: object, name: str) -> bool:
        """Return True if a metric of a flow entry is the highest of its connections' percentiles, and so a bound."""
        return any(
            is_bound(record, group, flows.get(group, ()), name)
            for record, (entries, flows) in zip(self.records, self._by_group, strict=True)
            if not any(name in entry for entry in entries.get(group, ()))
        )


def points_of(records: Sequence[Record]) -> list[Point]:
    """Put records together into points, in order of their first record."""
    varied = varied_keys(records)
    congestion_controls = [cc_of(record) for record in records]
    names_cc = len(set(congestion_controls)) > 1
    in_name = keys_in_cc_name(records) if names_cc else frozenset()
    keys = [key for key in varied if key not in in_name]
    several_backends = len({record.backend for record in records}) > 1
    groups: dict[str, list[Record]] = {}
    for record, cc in zip(records, congestion_controls, strict=True):
        identity = [record.backend, cc, *(record.parameters.get(key) for key in varied)]
        groups.setdefault(canonical_json(identity), []).append(record)
    columns = [distinct_texts([group[0].parameters.get(key) for group in groups.values()]) for key in keys]
    return [
        Point(
            records=tuple(group),
            varied={key: column[number] for key, column in zip(keys, columns, strict=True)},
            cc=cc_of(group[0]),
            names_cc=names_cc,
            backend=group[0].backend if several_backends else "",
        )
        for number, group in enumerate(groups.values())
    ]


def distinct_texts(values: Sequence[Any]) -> list[Any]:
    """Return inline tables in words, without the entries that all of them have, and other values as they are."""
    if not all(isinstance(value, str) and value.startswith("{") for value in values):
        return list(values)
    tables = [tomllib.loads(f"value = {value}")["value"] for value in values]
    first = tables[0] if tables else {}
    common = {key for key, value in first.items() if all(table.get(key) == value for table in tables)}
    own = [{key: value for key, value in table.items() if key not in common} for table in tables]
    short_texts = [", ".join(_in_words(key, value) for key, value in table.items()) or shown(None) for table in own]
    if len(set(short_texts)) == len({canonical_json(table) for table in own}):
        return short_texts
    # A word alone may stand for two keys.
    return [", ".join(f"{key} {format_value(value)}" for key, value in table.items()) or shown(None) for table in own]


def _in_words(key: str, value: Any) -> str:
    """Return an entry of an inline table: a word by itself, a switch by its name, a quantity with its name."""
    name = key.replace("_", " ")
    if isinstance(value, bool):
        return name if value else f"no {name}"
    if isinstance(value, str) and value[:1].isalpha():
        return value
    return f"{name} {value if isinstance(value, str) else format_value(value)}"


def varied_keys(records: Sequence[Record]) -> list[str]:
    """Return the parameters whose value is not the same in all records, in order of their first appearance."""
    keys = dict.fromkeys(key for record in records for key in record.parameters)
    return [
        key
        for key in keys
        if key.rsplit(".", 1)[-1] not in REPETITION_KEYS
        and len({canonical_json(record.parameters.get(key)) for record in records}) > 1
    ]


def cc_of(record: Record) -> str:
    """Return the run's congestion controls as one name."""
    return " + ".join(dict.fromkeys(str(flow["congestion_control"]) for flow in record.flows)) or "no flow"


def keys_in_cc_name(records: Sequence[Record]) -> frozenset[str]:
    """Return the parameters that a congestion control's label contains already: its name and its algorithm's own
    parameters.
    """
    own = {
        name for record in records for flow in record.spec.get("flows", []) for name in flow["transport"]["parameters"]
    } | {"congestion_control", "name"}
    keys = dict.fromkeys(key for record in records for key in record.parameters)
    return frozenset(key for key in keys if "congestion_control" in key.split(".") and key.rsplit(".", 1)[-1] in own)


def _band(record: Record, name: str) -> float | None:
    """Return half the 95 % interval of a metric that was extrapolated."""
    how = record.extrapolation or {}
    if "refused" in how or "bounds_agree" in how:
        # Bounds are no interval of chance; of a refusal the value is that of the simulated part.
        return None
    stem, line = ("goodput", 1.0) if name == "line_share" else (name.rpartition("_")[0], None)
    low, high = (how.get(f"{stem}_{end}_{'bps' if stem == 'goodput' else 's'}") for end in ("low", "high"))
    if stem not in ("goodput", "completion") or low is None or high is None:
        return None
    half = (float(high) - float(low)) / 2
    if line is None:
        return half
    share, goodput = record.metrics.get("line_share"), record.metrics.get("goodput_bps")
    return half * share / goodput if share and goodput else None


def _grouped(parts: Sequence[dict[str, Any]]) -> dict[object, list[dict[str, Any]]]:
    found: dict[object, list[dict[str, Any]]] = {}
    for part in parts:
        found.setdefault(part.get("group"), []).append(part)
    return found


def short(key: str) -> str:
    """Return the last part of a dotted key: "path.loss" as "loss"."""
    return key.rsplit(".", 1)[-1].replace("_", " ")


def shown(value: Any) -> str:
    """Return a parameter's value as the scenario writes it."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "on" if value else "off"
    # C writes 1e-05; people, and scenarios, write 1e-5.
    return re.sub(r"e([+-])0+", r"e\1", f"{value:g}") if isinstance(value, float) else str(value)


def number(value: Any) -> float | None:
    """Return a parameter's value as a number for an axis; None for a word.

    0.001 is itself, "25ms" 0.025, "1Gbit/s" 1e9, "90%" 0.9.
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return float(value)
    from elephan.core import native

    text = str(value).strip()
    if (number := parse_share(text)) is not None:
        return number
    for parse, factor in ((native.parse_span, 1e-9), (native.parse_rate, 1.0), (native.parse_size, 1.0)):
        try:
            return float(parse(text)) * factor
        except ValueError:
            continue
    return None

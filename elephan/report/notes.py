"""Notes of records and points, to judge the numbers by."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from elephan import units
from elephan.record import Record
from elephan.report.chance import FEW, few_by_chance, few_losses
from elephan.report.flow_limits import flow_limits
from elephan.report.limits import limits

MOST_NAMES = 6
"""Limit of the points whose names a note lists; of more it gives the number."""

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def derived(records: Sequence[Record]) -> list[str]:
    """Return what follows from the records of one point, its repetitions: chance in its numbers, limits of its own."""
    notes = list(dict.fromkeys([*(note for record in records for note in limits(record)), *flow_limits(records)]))
    chance = few_losses(records) or few_by_chance(records)
    return [*notes, *few_events(records), *([chance] if chance else [])]


def few_events(records: Sequence[Record]) -> list[str]:
    """Return a note where percentiles are of fewer than `FEW` messages or requests over all repetitions."""
    notes = []
    for name, of in (("messages", "messages"), ("requests", "requests")):
        counted = [record.metrics[name] for record in records if record.metrics.get(name) is not None]
        total = sum(value for value in counted if value is not None)
        ranked = any(
            "_p99_s" in key and value is not None for record in records for key, value in record.metrics.items()
        )
        if counted and ranked and 0 < total < FEW:
            noun = of[:-1] if total == 1 else of
            notes.append(f"only {units.count(total)} {noun}: percentiles say little, and p99 is the longest")
    return notes


def grouped_notes(notes: Iterable[tuple[str, str]]) -> list[str]:
    """Return (point, note) pairs as lines: one for notes that differ in one number alone, with its range."""
    groups: dict[str, dict[str, list[str]]] = {}
    for label, note in notes:
        groups.setdefault(_NUMBER.sub("#", note), {}).setdefault(note, []).append(label)
    lines = []
    for texts in groups.values():
        one = _with_range(list(texts))
        labels_of = texts if one is None else {one: [label for labels in texts.values() for label in labels]}
        lines += [f"{_listed(labels)}{text}" for text, labels in labels_of.items()]
    return lines


def _with_range(texts: Sequence[str]) -> str | None:
    """Return texts that differ in one number at most as one, with the least and the largest; None for others."""
    places = list(zip(*(_NUMBER.findall(text) for text in texts), strict=True))
    varied = [index for index, numbers in enumerate(places) if len(set(numbers)) > 1]
    if not varied:
        return texts[0]
    if len(varied) > 1:
        return None
    (place,) = varied
    numbers = sorted(places[place], key=_value)
    # The last in order: its words fit many.
    longest = next(text for text in texts if _NUMBER.findall(text)[place] == numbers[-1])
    match = list(_NUMBER.finditer(longest))[place]
    return f"{longest[: match.start()]}{numbers[0]} to {longest[match.start() :]}"


def _listed(labels: Sequence[str]) -> str:
    names = [label for label in dict.fromkeys(labels) if label]
    if len(names) > MOST_NAMES:
        names = [*names[:MOST_NAMES], f"{len(names) - MOST_NAMES} others"]
    return f"{' | '.join(names)}: " if names else ""


def _value(text: str) -> float:
    return float(text.replace(",", ""))


def extrapolated(spec: Mapping[str, Any], how: Mapping[str, Any] | None) -> list[str]:
    """Return notes on a long copy of which a part was simulated; nothing for any other run."""
    if how is None:
        return []
    name = re.sub(r"\.1$", "", str(spec["flows"][0]["name"])) if len(spec["flows"]) > 1 else spec["flows"][0]["name"]
    part = f"flow {name}: {units.size(how['simulated_bytes'])} of {units.size(how['bytes'])} were simulated"
    if "refused" in how:
        bound = ""
        if "completion_low_s" in how:
            low, high = (how[f"completion_{end}_s"] for end in ("low", "high"))
            rates = "{} to {}".format(*(units.rate(how[f"goodput_{end}_bps"]) for end in ("high", "low")))
            bound = f"; completion is between {units.duration_range(low, high, ' and ')} ({rates})"
            bound += " by what the line lets through and by the control's response to as many losses as were seen"
            bound += ", too wide to plan by" if units.is_useless(low, high) else ""
        return [
            f"{part}, and the rest cannot be extrapolated: {how['refused']}{bound}; --exact (run.exact) simulates all "
            "of it"
        ]
    whole = "the run ends before the copy"
    if "bounds_agree" in how:
        if "completion_s" in how:
            whole = f"completion {units.duration(how['completion_s'])}"
        return [
            f"{part}, the rest follows at {units.rate(how['goodput_bps'])}: what the line and the copy's own settings "
            "let through, and the control's response to as many losses as were seen, agree within 1 %: "
            f"{whole}; counters are of the part; --exact (run.exact) simulates all of it"
        ]
    if "completion_s" in how:
        expected, low, high = (how[f"completion_{key}s"] for key in ("", "low_", "high_"))
        whole = f"completion {units.duration(expected)}, 95 % from {units.duration_range(low, high)}"
    steady = f"steady from {units.duration(how['steady_from_s'])} on by MSER"
    batches = f"{how['batches']} batch means of {units.duration(how['batch_s'])}"
    return [
        f"{part}, the rest extrapolated ({steady}, {batches}): {whole}; counters are of the part; --exact (run.exact) "
        "simulates all of it"
    ]

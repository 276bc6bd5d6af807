"""Harm of congestion controls to the background traffic of a scenario, and the most that an operator allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from elephan import units
from elephan.errors import InputError
from elephan.record import Record
from elephan.report.other_traffic import of_source


@dataclass(frozen=True)
class HarmLimit:
    """Most packets that a source of background traffic may lose."""

    source: str
    share: float


def harm_limit(text: str) -> HarmLimit:
    """Return the limit of NAME=SHARE, such as "calls=0.1%". Raises `InputError`."""
    name, _, share = text.rpartition("=")
    value = units.parse_share(share)
    if not name.strip() or value is None or not 0 <= value <= 1:
        raise InputError(
            f"--harm {text}: NAME=SHARE is needed: a [[background]] and the most of its packets that may be lost, such "
            "as calls=0.1%"
        )
    return HarmLimit(name.strip(), value)


def require_source(limit: HarmLimit, names: Sequence[str], file: object) -> None:
    """Raise `InputError` if a scenario with sources of these names has none of the limit's."""
    if limit.source not in names:
        known = f"one of {', '.join(names)}" if names else "there is none"
        raise InputError(f"--harm {limit.source}: a [[background]] of {file} is needed: {known}")


def above(limit: HarmLimit, records: Sequence[Record]) -> str | None:
    """Return the words for runs in which the limit is exceeded on average; None where it is kept."""
    lost = of_source(records, limit.source, "loss_share")
    if lost is None or lost.mean <= limit.share:
        return None
    return f"{limit.source}: {units.share(lost.mean)} lost, above {units.share(limit.share)}"


def columns_of(record: Record, limit: HarmLimit | None) -> list[tuple[str, str]]:
    """Return a source and its metrics that a table shows: loss, and the score of a call or the delay. It is that of the
    limit, without one the first: each more would take its place from the reasons."""
    sources = [item for item in record.background if limit is None or item["name"] == limit.source]
    if not sources:
        return []
    quality = "voice_mos" if sources[0].get("voice_mos") is not None else "delay_p99_s"
    return [(str(sources[0]["name"]), name) for name in ("loss_share", quality) if sources[0].get(name) is not None]


def as_numbers(records: Sequence[Record]) -> Mapping[str, Mapping[str, float]]:
    """Return the means of all numbers of each source, for JSON."""
    found: dict[str, dict[str, float]] = {}
    for source in records[0].background:
        name = str(source["name"])
        means = {key: of_source(records, name, key) for key, value in source.items() if not isinstance(value, str)}
        found[name] = {key: value.mean for key, value in means.items() if value is not None}
    return found

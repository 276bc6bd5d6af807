"""The table of background traffic: loss, delay, jitter and call quality of each source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from elephan.record import Record
from elephan.report.metrics import BACKGROUND
from elephan.report.point_table import cell
from elephan.report.points import MOST_ENTRIES, points_of, short, shown
from elephan.report.statistics import Estimate, estimate
from elephan.report.table import Row, Table

COLUMNS = ("loss_share", "delay_p50_s", "delay_p99_s", "jitter_s", "voice_r", "voice_mos")
"""Columns of the table; those that no source has are left out."""

CODECS = {
    "g711": "G.711 with loss concealment",
    "g711_without_plc": "G.711 without loss concealment",
    "g729a": "G.729A",
}


def other_traffic_of(records: Sequence[Record]) -> Table | None:
    """Return the table of the background sources of records, a row for each source of each point; None without any."""
    points = points_of(records)
    if not any(record.background for record in records):
        return None
    columns = [
        BACKGROUND[name]
        for name in COLUMNS
        if any(source.get(name) is not None for record in records for source in record.background)
    ]
    keys = list(points[0].varied)
    with_cc = points[0].names_cc
    with_backend = any(point.backend for point in points)
    rows = []
    for point in points:
        head = [shown(value) for value in point.varied.values()]
        head += [point.cc] if with_cc else []
        head += [point.backend] if with_backend else []
        for source in point.first.background[:MOST_ENTRIES]:
            name = str(source["name"])
            cells = tuple(cell(column, of_source(point.records, name, column.name), None) for column in columns)
            rows.append(Row((*head, name), cells, False))
    heads = [short(key) for key in keys]
    heads += ["congestion control"] if with_cc else []
    heads += ["backend"] if with_backend else []
    return Table(
        heads=(*heads, "other traffic"),
        columns=tuple(columns),
        rows=tuple(rows),
        repetitions=max(len(point.records) for point in points),
        notes=tuple(_voice(records)),
        beside="what the runs did to other traffic",
    )


def of_source(records: Sequence[Record], source: str, name: str) -> Estimate | None:
    """Return a metric of a source over repetitions; None where one of them lacks it."""
    return estimate([item.get(name) for record in records for item in record.background if item["name"] == source])


def _voice(records: Sequence[Record]) -> list[str]:
    """Return a note on the assumptions behind R and MOS, where a source has them."""
    names: dict[str, dict[str, None]] = {}
    for record in records:
        for spec, source in zip(record.spec["background"], record.background, strict=True):
            if source.get("voice_mos") is not None:
                names.setdefault(_codec(spec), {})[str(source["name"])] = None
    return [
        f"R and MOS of {', '.join(of)}: calls over {codec} by the E-model (ITU-T G.107, R 93.2 and MOS 4.41 at best), "
        "random losses, the playout buffer that suits best; background.codec names another codec. It judges no video"
        for codec, of in names.items()
    ]


def _codec(spec: Mapping[str, Any]) -> str:
    return CODECS[str(spec["codec"])]

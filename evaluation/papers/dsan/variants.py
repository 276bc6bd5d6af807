"""Figure 10's four congestion controls: which a record is of, what each is called, and its colour."""

from __future__ import annotations

from elephan.record import Record

VARIANTS = {
    "standard": "standard",
    "avoidance_off": "congestion avoidance off",
    "eighth": "1/8 reduction",
    "both": "both",
}
"""By the key of their quantity in claims.toml, in the paper's order of throughput."""

COLOURS = {name: index for index, name in enumerate(VARIANTS)}
"""Number of each one's curve colour."""

_PARAMETERS = {(500_000, 1): "standard", (500_000, 0): "avoidance_off", (125_000, 1): "eighth", (125_000, 0): "both"}
"""`reduction` in millionths and `congestion_avoidance`, as congestion/storage_friendly.c takes them."""


def variant(record: Record) -> str:
    """Return which of the four congestion controls a record is of."""
    parameters = record.spec["flows"][0]["transport"]["parameters"]
    return _PARAMETERS[parameters["reduction"], parameters["congestion_avoidance"]]

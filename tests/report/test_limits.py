"""Notes on the effects of a scenario's own settings, and not of the path, on its numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import elephan
from elephan.errors import InputError
from elephan.report.figures import Colours
from elephan.report.headline import headline_of
from elephan.report.limits import limits
from elephan.report.notes import derived, grouped_notes
from elephan.report.point_table import table_of
from elephan.report.points import points_of

Notes = Callable[..., list[str]]

BULK = """
[run]
duration = "3s"
[path]
bandwidth = "100Mbit/s"
rtt = "50ms"
[[flow]]
name = "copy"
"""


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    """Return the limits of a run of the scenario above with changes: `__` in a name stands for a dot."""

    def run(**changes: object) -> list[str]:
        file = tmp_path / "limits.toml"
        file.write_text(BULK)
        (record,) = elephan.run(file, {key.replace("__", "."): value for key, value in changes.items()}, store="none")
        assert set(derived([record])) <= set(table_of([record]).notes), "what follows is in the table"
        return limits(record)

    return run


def test_a_run_within_its_limits_has_no_note(notes: Notes) -> None:
    assert notes() == []


def test_a_policer_that_drops_is_named_with_its_rate(notes: Notes) -> None:
    policer = {"rate": "20Mbit/s", "burst": "30kB"}
    (note,) = notes(path__policer=policer)
    assert note.startswith("link path.forward: its policer (20.0 Mbit/s, burst 30.0 kB) dropped packets")
    assert notes(path__policer=policer, flow__0__max_pacing_rate="18Mbit/s") == []


def test_nothing_delivered_is_said(notes: Notes) -> None:
    assert "flow copy: nothing was delivered within the run" in notes(path__loss=1)


def test_a_run_shorter_than_ten_round_trips_is_said(notes: Notes) -> None:
    assert notes(run__duration="400ms") == [
        "flow copy: measured for 8 round trips, which is mostly its start; run.duration makes it longer"
    ]
    assert notes(run__duration="510ms") == []
    assert notes(run__duration="2s", measure__warmup="1.6s")[0].startswith("flow copy: measured for 8 round trips")
    # A short copy is no fault.
    assert notes(run__duration="10s", flow__copy__workload={"kind": "bulk", "bytes": "100kB"}) == []


def test_a_window_that_holds_the_line_is_said_with_its_share(notes: Notes) -> None:
    """64 KiB per 50 ms are 10.5 of 96.5 Mbit/s of payload (1448 of 1500 bytes)."""
    assert notes(flow__copy__window="64KiB") == [
        "flow copy: its window of 65.5 kB holds it to 10.9 % of the line (flow.window)"
    ]
    assert notes(flow__copy__window="64KiB", flow__copy__connections=2) == [
        "flow copy: 2 windows of 65.5 kB hold it to 21.7 % of the line (flow.window)"
    ]
    assert notes(flow__copy__send_buffer="64KiB") == [
        "flow copy: its send buffer of 65.5 kB holds it to 10.9 % of the line (flow.send_buffer)"
    ]
    assert notes(flow__copy__window="64KiB", flow__copy__connections=10) == []


def test_the_largest_window_there_is_needs_more_connections(notes: Notes) -> None:
    (note,) = notes(path__bandwidth="1Tbit/s", path__rtt="100ms", run__duration="1s")
    assert note == (
        "flow copy: its window of 1.07 GB holds it to 8.90 % of the line, and is the largest there is (RFC 7323); "
        "more connections carry more"
    )


def test_a_window_that_the_load_does_not_need_is_no_limit(notes: Notes) -> None:
    offered = {"kind": "constant_rate", "load": "5Mbit/s"}
    assert notes(flow__copy__workload=offered, flow__copy__window="64KiB") == []


def test_a_load_above_the_line_is_said(notes: Notes) -> None:
    """A share of the line counts bits of IP packets, of which TCP and IP take 52 bytes of 1500."""
    (note,) = notes(flow__copy__workload={"kind": "constant_rate", "load": "98%"})
    assert note.startswith(
        "flow copy: its load of 98.0 Mbit/s is above the 96.5 Mbit/s of payload that the line carries"
    )
    assert notes(flow__copy__workload={"kind": "constant_rate", "load": "96%"}) == []
    writes = {"kind": "replicate", "rate": "30Mbit/s", "size": "64KiB"}
    assert notes(flow__copy__workload=writes, flow__copy__connections=4) == []
    each = notes(flow__copy__workload=writes, flow__copy__connections=4, flow__copy__distribution="each")
    assert each[0].startswith("flow copy: its load of 120 Mbit/s is above")


def test_few_messages_say_little_of_percentiles(tmp_path: Path) -> None:
    file = tmp_path / "few.toml"
    file.write_text(BULK)
    (record,) = elephan.run(
        file, {"flow.copy.workload": {"kind": "constant_rate", "load": "1Mbit/s", "frame": "64KiB"}}, store="none"
    )
    assert "only 6 messages: percentiles say little, and p99 is the longest" in derived([record])


def test_notes_that_differ_in_a_number_are_told_once() -> None:
    assert grouped_notes([("reno", "only 10 losses: x"), ("cubic", "only 1,700 losses: x"), ("bic", "y")]) == [
        "reno | cubic: only 10 to 1,700 losses: x",
        "bic: y",
    ]
    assert grouped_notes([("a", "3 of 4 came"), ("b", "2 of 4 came")]) == ["a | b: 2 to 3 of 4 came"]
    assert grouped_notes([("a", "3 of 4 came"), ("b", "2 of 5 came")]) == ["a: 3 of 4 came", "b: 2 of 5 came"]
    assert grouped_notes([(f"p{n}", "z") for n in range(9)]) == ["p0 | p1 | p2 | p3 | p4 | p5 | 3 others: z"]
    assert grouped_notes([("", "only 1 loss: z")]) == ["only 1 loss: z"]


LOOP = """
run = { duration = "1s" }
node = [{ name = "a" }, { name = "r" }, { name = "s" }, { name = "b" }]
link = [
  { from = "a", to = "r", bandwidth = "1Gbit/s", delay = "1ms" },
  { from = "r", to = "s", bandwidth = "1Gbit/s", delay = "1ms" },
  { from = "r", to = "b", bandwidth = "1Gbit/s", delay = "1ms" },
]
[[flow]]
from = "a"
to = "b"
route = ["a", "r", "s", "r", "b"]
"""


def test_a_route_that_passes_a_node_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "loop.toml"
    file.write_text(LOOP)
    with pytest.raises(InputError, match=r'flow.*route.*passes each node once; it passes "r" twice'):
        elephan.check(file)


def test_data_that_never_arrives_is_at_risk(tmp_path: Path) -> None:
    """If nothing arrived it read 0 B: the lag was looked at before deliveries alone."""
    file = tmp_path / "lost.toml"
    file.write_text(BULK)
    writes = {"kind": "replicate", "rate": "1MB/s", "size": "64KiB"}
    for connections in (1, 3):
        (record,) = elephan.run(
            file, {"flow.copy.workload": writes, "path.loss": 1, "flow.copy.connections": connections}, store="none"
        )
        assert record.metrics["lag_max_bytes"] == record.metrics["offered_bytes"] > 2e6

SAN = """
[run]
duration = "3s"
[[node]]
name = "near"
kind = "gateway"
rate = "1GFC"
[[node]]
name = "far"
kind = "gateway"
rate = "1GFC"
[[link]]
from = "near"
to = "far"
bandwidth = "100Mbit/s"
delay = "25ms"
[[flow]]
name = "frames"
from = "near"
to = "far"
workload = { kind = "fc", load = "LOAD" }
[measure]
warmup = "1s"
"""


@pytest.mark.parametrize(("load", "is_missing"), [("5%", False), ("20%", True)])
def test_frames_that_never_arrived_are_said_and_not_counted_as_delivered(
    tmp_path: Path, load: str, is_missing: bool
) -> None:
    file = tmp_path / "san.toml"
    file.write_text(SAN.replace("LOAD", load))
    (record,) = elephan.run(file, store="none")
    (flow,) = record.flows
    assert (flow["messages"] - flow["fc_frames"] > 0.01 * flow["messages"]) == is_missing
    said = [note for note in limits(record) if "had not arrived when the run ended" in note]
    assert len(said) == is_missing
    headline = headline_of(points_of([record]), Colours())
    assert headline is not None
    assert ("that arrived before the run ended" in headline.sentence) == is_missing, headline.sentence

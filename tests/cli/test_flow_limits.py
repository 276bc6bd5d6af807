"""The limit of each bulk flow, by the notes that `elephan run` prints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Run

COPY = """
[run]
duration = "20s"
[path]
bandwidth = "200Mbit/s"
rtt = "40ms"
queue = "1bdp"
[[flow]]
name = "copy"
workload = { kind = "bulk", bytes = "40MB" }
"""
TWO = COPY + '[[flow]]\nname = "other"\nworkload = { kind = "bulk", bytes = "40MB" }\n'
SERVER = """
[run]
duration = "4s"
[[node]]
name = "server"
send = { rate = "100Mbit/s" }
[[node]]
name = "far"
[[link]]
from = "server"
to = "far"
bandwidth = "1Gbit/s"
delay = "5ms"
[[flow]]
name = "copy"
from = "server"
to = "far"
"""

Limits = Callable[..., list[str]]


@pytest.fixture
def limits(elephan: Run, folder: Path) -> Limits:
    """Return the phrases of limits that a run prints."""

    def run(text: str, *changes: str) -> list[str]:
        (folder / "copy.toml").write_text(text)
        options = [word for change in changes for word in ("--set", change)]
        code, out, error = elephan("run", "copy.toml", "--store", "none", "--no-report", *options)
        assert code == 0, error
        words = " ".join(out.split())
        return [note.partition(" note: ")[0] for note in words.split("limited by ")[1:]]

    return run


def test_a_policer_before_the_queue_is_named(limits: Limits) -> None:
    policed = 'path.policer={ rate = "50Mbit/s", burst = "16KiB" }'
    assert limits(COPY, policed) == ["the policer of link path.forward, which dropped packets"]
    # Four seconds more than 40 MB take at 45 Mbit/s paced.
    assert limits(COPY, policed, "flow.max_pacing_rate=45Mbit/s") == ["its pacing rate (flow.max_pacing_rate)"]


def test_the_queue_losses_and_the_rate_of_a_line_are_told_apart(limits: Limits) -> None:
    assert limits(COPY, "path.queue=10 packets") == ["the queue of link path.forward, which overflowed"]
    assert limits(COPY, "path.loss=1e-2") == ["losses on link path.forward"]
    (both,) = limits(COPY, "path.loss=1e-3", "path.queue=20 packets", "flow.workload=bulk")
    assert "losses on link path.forward" in both and "the queue of link path.forward" in both
    assert limits(COPY, "flow.workload=bulk", "path.rtt=4ms") == ["the rate of link path.forward"]


def test_flows_with_the_same_limit_share_a_line(limits: Limits) -> None:
    shared = limits(TWO, "flow.workload=bulk", "path.rtt=4ms")
    assert shared == ["the rate of link path.forward, beside other traffic"]


def test_a_window_has_its_own_note_and_no_second_one(limits: Limits, elephan: Run, folder: Path) -> None:
    assert limits(COPY, "flow.window=64KiB") == []
    assert (
        "its window of 65.5 kB"
        in elephan("run", "copy.toml", "--store", "none", "--no-report", "--set", "flow.window=64KiB")[1]
    )
    # A window that losses never let it fill is no limit.
    policed = 'path.policer={ rate = "5Mbit/s", burst = "16KiB" }'
    assert limits(COPY, "flow.window=200KiB", policed) == ["the policer of link path.forward, which dropped packets"]
    assert (
        "its window"
        not in elephan(
            *("run", "copy.toml", "--store", "none", "--no-report", "--set", "flow.window=200KiB", "--set", policed)
        )[1]
    )


def test_a_short_copy_is_limited_by_its_start(limits: Limits) -> None:
    assert limits(COPY, 'flow.workload={ kind = "bulk", bytes = "100kB" }') == [
        "its start: it ends before its window fills the path"
    ]


def test_a_host_that_takes_time_is_named(limits: Limits) -> None:
    (host,) = limits(SERVER)
    assert host.startswith("the rate of host server (send)") or host.startswith("host server (send)")


def test_the_rate_of_a_copys_disk_is_named(limits: Limits) -> None:
    disk = 'flow.workload={ kind = "copy", files = 10, size = "4MB", read = "20Mbit/s" }'
    assert limits(COPY, disk) == ["its own rate (workload.read)"]


def test_what_delays_rather_than_losses_limit_is_the_control(limits: Limits) -> None:
    """Vegas in a long run without losses, held below the line by nothing but its own target."""
    found = limits(
        COPY, "flow.congestion_control=vegas", "flow.workload=bulk", "flow.initial_ssthresh=2", "path.rtt=100ms"
    )
    assert found == ["its congestion control: it lost nothing and reached no window and no rate"]


SATELLITE = """
[run]
duration = "60s"
[path]
bandwidth = "50Mbit/s"
rtt = "600ms"
queue = "1bdp"
loss = 1e-4
[[flow]]
name = "copy"
"""


def test_losses_do_not_limit_a_control_that_takes_none_for_congestion(limits: Limits) -> None:
    """BBR fills as much of this path without losses: PROBE_RTT takes the rest, 0.8 of every 10 s."""
    for changes in ([], ["path.loss=0"]):
        (phrase,) = limits(SATELLITE, "flow.copy.congestion_control=bbr", *changes)
        assert "200 ms and a round trip of every 10.0 s (PROBE_RTT)" in phrase
        assert ("losses" in phrase) == (not changes)
    # Without that it fills the line from its start on; one of 20 ms it loses little time by it.
    warm = ("flow.copy.congestion_control=bbr", "path.loss=0", "run.duration=300s", "measure.warmup=30s")
    (phrase,) = limits(SATELLITE, *warm, "flow.copy.congestion_control.probe_rtt_time=0ms")
    assert phrase == "the rate of link path.forward"
    for loss in ("0", "1e-4"):
        words = limits(SATELLITE, "flow.copy.congestion_control=bbr", f"path.loss={loss}", "path.rtt=20ms")
        assert words == ["the rate of link path.forward"]
    # In a run of 5 s slow start is all there is, and no limit is named that did not act.
    assert not any(
        "PROBE_RTT" in words or "losses" in words
        for words in limits(SATELLITE, "flow.copy.congestion_control=bbr", "path.loss=0", "run.duration=5s")
    )
    (phrase,) = limits(SATELLITE, "flow.copy.congestion_control=reno", "path.loss=1e-3")
    assert phrase.startswith("losses on link path.forward")


def test_repetitions_that_differ_have_one_note_with_their_numbers(limits: Limits, elephan: Run) -> None:
    """Judged by a run of each seed: the queue overflows under some of them only."""
    text = SATELLITE.replace('"60s"', '"20s"').replace("50Mbit/s", "100Mbit/s").replace("600ms", "20ms")
    changes = ["flow.copy.congestion_control=reno", "path.loss=2e-4", "run.seed={}", "run.repetitions={}"]
    alone = [limits(text, *(change.format(seed) for change in changes[:3])) for seed in (1, 2, 3)]
    kinds = {phrase for (phrase,) in alone}
    assert len(kinds) == 2, "these seeds no longer differ: choose others"
    options = [word for change in changes for word in ("--set", change.format(1 if "seed" in change else 3))]
    code, out, error = elephan("run", "copy.toml", "--store", "none", "--no-report", *options)
    assert code == 0, error
    words = " ".join(out.split())
    assert words.count("limited ") == 1
    line, queue = "losses on link path.forward", "the queue of link path.forward, which overflowed"
    counts = {cause: sum(cause in phrase for (phrase,) in alone) for cause in (line, queue)}
    assert sorted(counts.values()) == [2, 3]
    always, partly = sorted(counts, key=lambda cause: -counts[cause])
    assert f"limited by {always}, and in 2 of 3 repetitions by {partly}" in words

"""The paper dr: what its readers count, the policer against the line, and the nested loops of its sweep."""

from __future__ import annotations

import itertools
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

import elephan
from elephan import papers
from elephan.api import load
from elephan.papers.catalogue import find, folder
from elephan.papers.spread import Measured, Spread
from elephan.papers.verdict import Verdict, judge
from evaluation.papers.dr.hypotheses import counts_of, in_order, points_of, steps, ten_streams
from evaluation.papers.dr.operations import (
    FIRST,
    INCREMENT,
    MIRROR,
    RESTORE,
    operation,
    outages_for,
    seconds_of,
    within,
    within_anew,
)
from evaluation.papers.dr.streams_open import Beside, rates_of
from evaluation.papers.dr.transfers import TUNED_BYTES, UNTUNED_BYTES, path_of

DR = folder() / "dr"
SEGMENTS = UNTUNED_BYTES // 1448

SHORT = {
    "flow.workload.bytes": "4MB",
    "run.repetitions": 2,
    "sweep.flow.connections": "[1, 2]",
    "sweep.flow.congestion_control": '["reno", "bic", "fast"]',
}
POLICED = {
    "path.bandwidth": "1Gbit/s",
    "path.jitter": "12us",
    "path.policer.rate": "45Mbit/s",
    "path.policer.burst": "8KiB",
}


def test_an_order_counts_where_no_ranges_overlap() -> None:
    assert Spread((1.0, 1.2)).is_below(Spread((1.3, 1.25)))
    assert not Spread((1.0, 1.2)).is_below(Spread((1.2, 1.4)))
    assert str(Spread((1.0, 1.2, 1.1))) == "1.10 (1.00 to 1.20)" and str(Spread((0.2, 0.2001))) == "0.20"
    points = {
        (UNTUNED_BYTES, streams, cc): Spread((streams + place, streams + place + 0.1))
        for streams in (1, 2)
        for place, cc in enumerate(("reno", "bic", "fast"))
    }
    assert in_order(points, 1) and steps(points) == 3 and counts_of(points) == [1, 2]
    assert not in_order({**points, (UNTUNED_BYTES, 1, "bic"): Spread((1.0, 2.05))}, 1)


def test_a_policer_leaves_a_tenth_of_what_the_line_gives_and_makes_windows_equal(tmp_path: Path) -> None:
    found = {}
    for name, changes in (("as stated", {}), ("policer of 45 Mbit/s, 8 KiB", POLICED)):
        records = list(elephan.run(DR / "hypotheses.toml", SHORT | changes, store=str(tmp_path / "store.sqlite")))
        found |= points_of(records)
        assert list(found)[-1] == name
    line, policer = found.values()
    for cc in ("reno", "bic", "fast"):
        # Window over RTT; a segment less where ACKs of two leave one over, and the line's own time on top of 32 ms.
        assert line[UNTUNED_BYTES, 1, cc].median == pytest.approx(SEGMENTS * 1448 / 0.032 / 1e6, rel=0.08)
        one, two, tuned = (
            policer[key] for key in ((UNTUNED_BYTES, 1, cc), (UNTUNED_BYTES, 2, cc), (TUNED_BYTES, 1, cc))
        )
        # A round trip carries at most the bucket, in whole packets.
        assert 8192 / 0.032 / 1e6 / 2 < one.median < 8192 / 0.032 / 1e6
        assert two.median == pytest.approx(2 * one.median, rel=0.1)
        assert tuned.median == pytest.approx(one.median, rel=0.02)


def test_random_loss_puts_fast_before_bic_and_bic_before_reno(tmp_path: Path) -> None:
    changes = SHORT | {"path.loss": 0.01, "flow.workload.bytes": "16MB", "sweep.flow.connections": "[1]"}
    records = list(elephan.run(DR / "hypotheses.toml", changes, store=str(tmp_path / "store.sqlite")))
    (points,) = points_of(records).values()
    assert in_order(points, 1)


def test_every_hypothesis_has_its_value_in_the_claim() -> None:
    claim = find("dr").claim("dr.rates")
    names = [path_of(load(DR / runs.file, runs.set).points()[0].to_spec()) for runs in claim.runs]
    assert names == [value.name for value in claim.value] and len(set(names)) == 18
    # One number, as if found: the reader's quantity is that of ten streams.
    points = {(UNTUNED_BYTES, 10, cc): Spread((rate,)) for cc, rate in (("reno", 1.0), ("bic", 1.3), ("fast", 1.2))}
    assert ten_streams(points).median == 1.3


def test_a_window_at_one_end_gains_nothing(tmp_path: Path) -> None:
    done = papers.run("dr", None, str(tmp_path / "store.sqlite"), claims=["dr.window"])
    assert done.judgements[0].verdict is Verdict.REPRODUCED
    measured = done.evaluation.measured["dr.window"]
    assert measured["product"] == pytest.approx(180_000)
    assert measured["both"] > 2.5 * measured["neither"]


def test_growth_alone_leaves_ordering_holds_and_a_step_whose_ranges_overlap_is_not_decided() -> None:
    claim = find("dr").claim("dr.fig5")
    measured: dict[str, Measured] = {"policer_ten": 1.3}
    for cc in ("reno", "bic", "fast"):
        measured |= {f"policer_{count}_{cc}": [count - 0.1, count + 0.1] for count in (1, 2, 4, 6, 8, 10)}
        measured[f"policer_8_and_half_{cc}"] = 12.0
    assert judge(claim, measured).verdict is Verdict.REPRODUCED
    assert judge(claim, {**measured, "policer_ten": 2.0}).verdict is Verdict.ORDERING_HOLDS
    assert judge(claim, {**measured, "policer_1_bic": [0.9, 2.0]}).verdict is Verdict.NOT_DECIDED
    assert judge(claim, {**measured, "policer_1_bic": [2.5, 2.6]}).verdict is Verdict.DIFFERS


BIC = {"name": "bic", "variant": "linux", "delayed_ack": False}

LOOPS = {
    "flow.congestion_control": ["reno", "fast", BIC],
    "flow.send_buffer": ["1GiB", "128KiB"],
    "flow.connections": [1, 2, 4, 8, 10],
    "flow.window": ["65535B", "184320B"],
    "flow.workload.buffer": ["1024B", "2048B", "8192B"],
    "flow.workload.bytes": ["512MiB", "1GiB", "2GiB"],
}
"""The paper's figure 3, outermost first."""


def test_the_sweep_has_the_papers_loops_in_their_order() -> None:
    scenario = load(DR / "sweep.toml")
    assert scenario.swept == list(LOOPS)
    points = scenario.points()
    wanted = list(itertools.product(*LOOPS.values()))
    assert [tuple(point.swept.values()) for point in points] == wanted and len(wanted) == 540


FEW = {"flow.connections": 2, "flow.window": "65535B", "sweep.flow.workload.bytes": '["1MB", "2MB", "3MB"]'}
"""The same loops without two of them: 54 runs of small files."""


def test_a_sweep_that_was_ended_goes_on_and_repeats_nothing(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"

    def stored() -> dict[str, str]:
        if not store.exists():
            return {}
        with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as opened:
            try:
                return dict(opened.execute("select id, created from run"))
            except sqlite3.OperationalError:
                return {}  # before its tables are there

    call = "import sys; from elephan.cli.main import call; sys.exit(call(sys.argv[1:]))"
    changes = [part for key, value in FEW.items() for part in ("--set", f"{key}={value}")]
    command = [sys.executable, "-c", call, "run", str(DR / "sweep.toml"), *changes, "--workers", "1"]
    command += ["--store", str(store), "--out", str(tmp_path / "out")]
    environment = os.environ | {"PYTHONPATH": str(DR.parents[2])}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment) as first:
        while not stored():
            assert first.poll() is None, "it ends before it has stored a run"
            time.sleep(0.01)
        first.send_signal(signal.SIGTERM)
        first.wait()
    early = stored()
    assert 0 < len(early) < 54
    found = [record.parameters for record in elephan.run(DR / "sweep.toml", FEW, store=str(store))]
    late = stored()
    assert len(found) == len(late) == 54
    assert early.items() <= late.items(), "what had ended was not run again"
    loops = {key: values for key, values in LOOPS.items() if key not in FEW} | {
        "flow.congestion_control": ["reno", "fast", "bic(variant=linux, delayed_ack=false)"],
        "flow.workload.bytes": ["1MB", "2MB", "3MB"],
    }
    wanted = list(itertools.product(*loops.values()))
    assert [tuple(parameters[key] for key in loops) for parameters in found] == wanted


def test_more_streams_take_from_others_what_they_cannot_give(tmp_path: Path) -> None:
    """dr.open, short: two seeds, three numbers of streams, 15 s of the copy."""
    short = {"run.duration": "20s", "measure.warmup": "8s", "run.repetitions": 2}
    swept = short | {"sweep.flow.copy.connections": "[3, 10, 40]"}
    # Longer: within 15 s three streams of few losses depend on the moment of each.
    alone = {"run.duration": "40s", "flow.reno.start": "39s", "flow.cubic.start": "39s"}
    found = {}
    for changes in (swept, swept | {"flow.copy.start": "19s", "sweep.flow.copy.connections": "[3]"}):
        records = list(elephan.run(DR / "open.toml", changes, store=str(tmp_path / "store.sqlite")))
        found |= rates_of(records)
    near = {count: found[Beside("line", count, False, True)] for count in (3, 10, 40)}
    assert near[40].others.is_below(near[10].others) and near[10].others.is_below(near[3].others)
    assert near[3].others.median + near[3].copy.median == pytest.approx(5.4, rel=0.05)
    records = list(elephan.run(DR / "open.toml", swept | alone, store=str(tmp_path / "alone.sqlite")))
    empty = [rates.copy.median for rates in rates_of(records).values()]
    assert len(empty) == 3 and min(empty) > 0.97 * max(empty) > 5.1, "three streams fill the line as forty do"


def test_attempts_are_of_outages_while_a_job_copies() -> None:
    assert within(1, 0.0) == within_anew(1, 0.0) == 1.0
    assert within(1, 0.5) == pytest.approx(within_anew(1, 0.5)) == pytest.approx(0.6065, abs=1e-4)
    assert within(3, 4.264) > within_anew(3, 4.264), "going on needs fewer attempts than beginning anew"
    assert within(3, outages_for(0.945, 3)) == pytest.approx(0.945)
    assert outages_for(0.945, 3) == pytest.approx(0.851, abs=0.001)
    assert within_anew(3, 1e4) == 0.0


def test_the_operations_end_in_their_time(tmp_path: Path) -> None:
    """dr.operations: mirroring of three jobs, an increment, and the way back."""
    workload = "flow.workload"
    changes = {
        INCREMENT: {f"{workload}.files": 300, f"{workload}.size": "1MB"},
        MIRROR: {
            f"{workload}.files": 3334,
            f"{workload}.size": "20kB",
            f"{workload}.max": "40kB",
            f"{workload}.jobs": 3,
            f"{workload}.every": "2h",
        },
        FIRST: {f"{workload}.files": 1, f"{workload}.size": "200MB"},
        RESTORE: {f"{workload}.files": 1, f"{workload}.size": "200MB", "flow.direction": "reverse"},
    }
    found = {}
    for what, changed in changes.items():
        one = changed | {"run.repetitions": 1, "sweep.flow.window": '["184320B"]'}
        (record,) = elephan.run(DR / "operations.toml", one, store=str(tmp_path / "store.sqlite"))
        assert operation(record) == what
        found[what] = seconds_of(record)
    line_s = 8 / 45e6 * 1500 / 1448
    assert 300e6 * line_s < found[INCREMENT] < 1.05 * 300e6 * line_s
    assert 99e6 * line_s < found[MIRROR] < 1.08 * 101e6 * line_s
    assert found[FIRST] == pytest.approx(found[RESTORE], rel=0.02)

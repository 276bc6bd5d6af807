"""The numbers that programs of evaluation/moves read off runs, and the choice of the kernel's runs that count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from elephan import backends
from elephan.api import jobs_of, load
from elephan.backends import Job
from elephan.errors import RunError
from evaluation.moves import both_backends, linux, manager
from evaluation.moves.both_backends import Point, Run, on_both
from evaluation.moves.effect import Effect
from evaluation.runner import Runner

RUNNER = Runner(None)
FAULT = "EMULATOR: 1 packet in 100 came late"


@pytest.fixture(scope="module")
def senders_line() -> list[Run]:
    """The scenario's points, simulated."""
    return both_backends.simulated(RUNNER, jobs_of(load(linux.SENDERS_LINE)))


def test_a_hold_keeps_back_the_difference_of_the_delays_and_nothing_is_sent_again(senders_line: list[Run]) -> None:
    none, held = (Effect.of(run) for run in senders_line[:2])
    assert none.moved_at_s == held.moved_at_s == 6
    # 40 ms at 100 Mbit/s are 333 packets, of which RACK marks those that it has not marked before.
    assert 100 < none.retransmitted_segments < 333 and 0.01 < none.dip < 0.05
    assert (held.retransmitted_segments, held.dip, held.first_drop_s) == (0, 0, None)
    table = linux.senders_line([Point(run, [run]) for run in senders_line])
    assert "| `hold_buffer` | 0 | 0 | 0.0 % | 0.0 % | 0.50 MB, 40 ms | 0.50 MB, 40 ms |" in table
    assert "Linux: 1 run of each; the emulator honoured all." in table


def test_drops_count_from_the_move_on_with_the_first_one() -> None:
    jobs = jobs_of(load(linux.RECEIVERS_LINE))
    none, reduced = both_backends.simulated(RUNNER, [jobs[0], jobs[6]])
    # 267 packets wait before a queue of 500, 333 come on top.
    assert Effect.of(none).dropped_packets >= 100 and (Effect.of(none).first_drop_s or 9) < 0.2
    assert (Effect.of(reduced).first_drop_s or 0) > 1
    told = [one | {"told_after_s": 1e-5, "done_after_s": 3e-4} for one in reduced.record.cwnd_reductions]
    answers = [*told[1:], {"event": 0, "flow": "elephant.1", "why_not": "idle"}]
    other = Run(reduced.record.model_copy(update={"cwnd_reductions": answers}), reduced.series)
    (line,) = linux.reductions([Point(none, [none]), Point(reduced, [other])])
    assert line.startswith(
        "4 flows, reduced: in the simulator a flow keeps 192 of 276 segments, under Linux 192 of 276"
    )
    assert line.endswith("finds it after 0.3 ms; 1 of 4 Linux senders did not reduce.")


def test_what_a_full_hold_buffer_drops_counts() -> None:
    changes = {
        "sweep": {"event.0.mitigation": [{"kind": "hold_buffer", "release": "bottleneck", "buffer": "100kB"}]},
        "run.duration": "8s",
    }
    (run,) = both_backends.simulated(RUNNER, jobs_of(load(linux.RECEIVERS_LINE, changes)))
    effect = Effect.of(run)
    # 40 ms at 100 Mbit/s are 500 kB, of which a fifth is kept.
    assert effect.dropped_packets == run.record.metrics["held_dropped_packets"] > 100
    assert effect.first_drop_s is not None and effect.first_drop_s < 0.3


def test_runs_whose_path_the_emulator_did_not_honour_are_made_again(
    senders_line: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty_seeds, faulty_points = {1, 3}, {0}
    asked: list[int] = []

    def fake(_: Runner, jobs: Sequence[Job]) -> list[Run]:
        runs = []
        for job in jobs:
            run = senders_line[job.index]
            if job.backend == "kernel":
                asked.append(job.seed)
                assert job.must_run, "no run of another day counts"
                notes = [FAULT] if job.index in faulty_points and job.seed in faulty_seeds else []
                run = Run(run.record.model_copy(update={"notes": notes}), run.series)
            runs.append(run)
        return runs

    monkeypatch.setattr(both_backends, "simulated", fake)
    monkeypatch.setattr(backends, "require", lambda names: None)
    points = on_both(RUNNER, linux.SENDERS_LINE, wanted=2, tries=5)
    assert [len(point.kernel) for point in points] == [2] * 5
    assert [len(point.faulty) for point in points] == [2, 0, 0, 0, 0]
    assert asked == [1] * 5 + [2] * 5 + [3, 4]
    assert both_backends.counted(points) == (
        "Linux: 2 runs of each that the emulator honoured; 2 others did not count."
    )
    faulty_seeds.update(range(10))
    points = on_both(RUNNER, linux.SENDERS_LINE, wanted=2, tries=2)
    table = " ".join(linux.senders_line(points).split())
    assert "| none | 191 | (191, 191) | 2.3 % | (2.3 %) | - | (-) |" in table
    assert "Linux: 0 to 2 runs of each that the emulator honoured; 2 others did not count. In brackets" in table
    faulty_points.update(range(5))
    with pytest.raises(RunError, match=f"none of 2 runs of any point counts, such as: {FAULT}"):
        on_both(RUNNER, linux.SENDERS_LINE, wanted=2, tries=2)


def test_the_managers_tables_have_the_runs_that_decide_alike() -> None:
    (run,) = both_backends.simulated(RUNNER, jobs_of(load(manager.FILE)))
    text = manager.text(Point(run, [run, run]))
    assert "Linux: 2 runs; the emulator honoured all. All of them decide what the simulator does" in text
    assert "| 7 s | backup to the lightpath (C) | 20.00 | 20.00 |" in text
    assert "| 22 s | backup back, preempted | 62.20 |" in text

    log: list[dict[str, Any]] = [dict(entry) for entry in manager.move_log(run)]
    log[0]["at_s"] = 8.0
    other = Run(run.record.model_copy(update={"manager": {**(run.record.manager or {}), "move_log": log}}), run.series)
    text = " ".join(manager.text(Point(run, [run, other])).split())
    assert "1 of them decide what the simulator does" in text
    assert "The others: backup at 8 s (elephant) instead of backup at 7 s (elephant)." in text
    assert "| 7 s | backup" in text

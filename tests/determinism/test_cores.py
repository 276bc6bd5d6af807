"""Cores of one run: their number changes no byte, and a run on several ends as one on one core does."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from elephan import _native
from evaluation.performance.dumbbell import Dumbbell, run_spec

ROOT = Path(__file__).parents[2]
STOPS = 20
DEADLINE_S = 240.0
"""Many times what it takes."""
FLOWS = 40
"""Enough for three cores, over a lookahead of more than a thousand packets."""


def spec(duration_s: float, rate_bps: int = 1_000_000_000) -> str:
    bell = Dumbbell(
        rate_bps=rate_bps,
        rtt_ns=30_000_000,
        duration_ns=round(duration_s * 1e9),
        flows=FLOWS,
        loss_e12=100_000_000,
        series_ns=10_000_000,
    )
    return json.dumps(run_spec(bell))


def facts(result: _native.RunResult) -> list[Any]:
    """Return all that a run gives back, as far as it is comparable: series as bytes."""
    series = [*result.flow_series.items(), *result.link_series.items()]
    columns = [(name, column.tobytes()) for name, column in series]
    return [result.metrics, result.flows, result.links, result.notes, columns]


def digest_of(result: _native.RunResult) -> str:
    """Return a digest of the facts."""
    return hashlib.sha256(repr(facts(result)).encode()).hexdigest()


def in_its_own_process(call: str, stack_bytes: int | None = None) -> str:
    """Call a function of this module there, with so much stack for a thread; return what it returned, as text.

    A thread that never ends fails the test: the process is ended.
    """
    setting = {} if stack_bytes is None else {"RUST_MIN_STACK": str(stack_bytes)}
    code = f"from tests.determinism import test_cores; print(test_cores.{call})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | setting,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=DEADLINE_S,
    )
    return done.stdout


def test_the_number_of_cores_changes_no_byte() -> None:
    alone = facts(_native.simulate(spec(1.0)))
    assert alone == facts(_native.simulate(spec(1.0), None, 0.1, 2))
    assert alone == facts(_native.simulate(spec(1.0), None, 0.1, 3))


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_a_run_stops_when_progress_says_so(cores: int) -> None:
    """It would take some minutes."""
    before = threading.active_count()

    def progress(now_ns: int, end_ns: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _native.simulate(spec(2000.0), progress, 0.0, cores)
    assert threading.active_count() == before


def stops(cores: int) -> None:
    """Stop a run again and again while the other threads have turns, which are long at this rate."""
    for turn in range(STOPS):
        calls = 0

        def progress(now_ns: int, end_ns: int, stop_at: int = turn % 3) -> bool:
            nonlocal calls
            calls += 1
            return calls > stop_at

        with pytest.raises(_native.Stopped):
            _native.simulate(spec(2000.0, 10_000_000_000), progress, 0.0, cores)


@pytest.mark.parametrize("cores", [2, 3])
def test_no_thread_of_a_stopped_run_goes_on(cores: int) -> None:
    in_its_own_process(f"stops({cores})")


def digest(cores: int, room_bytes: int) -> str:
    """Run where the process may get so much more memory; return a digest of the facts."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + room_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    return digest_of(_native.simulate(spec(1.0), None, 0.1, cores))


def test_threads_that_wait_for_one_that_cannot_be_made_end() -> None:
    """There is room for the stack of the second of three threads, not for that of the third."""
    alone = in_its_own_process(f"digest(1, {3 << 29})", 1 << 21)
    assert alone == in_its_own_process(f"digest(3, {3 << 29})", 1 << 30)


def digest_and_threads() -> str:
    """Run on two cores; return a digest of the facts, and the most threads of this process meanwhile.

    Progress is first reported after about a second of the three. A last report alone may find the other thread gone.
    """
    most = 0

    def progress(now_ns: int, end_ns: int) -> None:
        nonlocal most
        most = max(most, len(os.listdir("/proc/self/task")))

    result = _native.simulate(spec(3.0), progress, 0.0, 2)
    return f"{digest_of(result)} {most}"


def test_a_run_goes_on_alone_where_no_thread_can_be_made() -> None:
    """A stack larger than any address space stands for a machine that has no room for a thread."""
    shared, threads = in_its_own_process("digest_and_threads()").split()
    alone, single = in_its_own_process("digest_and_threads()", 1 << 50).split()
    assert shared == alone
    assert int(threads) == int(single) + 1

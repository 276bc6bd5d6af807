"""Workers: order, stored runs, errors, Ctrl-C. Backends here are functions of the test; the real one is in
tests/cli."""

import errno
import io
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from elephan.api import jobs_of, load
from elephan.backends import Job, Progress, Stopped, sim
from elephan.errors import InputError, StoreError
from elephan.record import Record, ScenarioInfo
from elephan.store import Series, Store
from elephan.sweep import executor, progress
from elephan.sweep import workers as module_of_workers
from elephan.sweep.executor import Interrupted, default_workers, execute
from elephan.sweep.progress import Bars, NoProgress

Make = Callable[..., Record]
MakeSeries = Callable[..., Series]


@pytest.fixture(autouse=True)
def build(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of the fixture name this build."""
    monkeypatch.setattr(executor, "build_digest", lambda: "b" * 16)


@pytest.fixture
def jobs(make_record: Make) -> list[Job]:
    """Ten jobs whose ids are those of the records that `backend` gives."""
    made = []
    for seed in range(10):
        record = make_record(seed=seed)
        job = Job(seed, record.spec, record.parameters, seed, ScenarioInfo(name="sweep"))
        job.__dict__["id"] = record.id  # the cached property: a real id needs the core's version
        made.append(job)
    return made


@pytest.fixture
def backend(make_record: Make, make_series: MakeSeries) -> Callable[[Job, Progress | None], tuple[Record, Series]]:
    """Later jobs end sooner, so that the order of ending is not that of the points."""

    def run(job: Job, progress: Progress | None) -> tuple[Record, Series]:
        time.sleep(0.01 * (10 - job.seed) / 10)
        if progress is not None:
            progress(5, 10)
        series = make_series(count=3)
        return make_record(seed=job.seed, series=series), series

    return run


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(str(tmp_path / "results.sqlite")) as opened:
        yield opened


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_outcomes_are_in_the_order_of_points(jobs: list[Job], backend: Any, store: Store, workers: int) -> None:
    outcomes = execute(jobs, store=store, workers=workers, backend=backend)
    assert [outcome.record.seed for outcome in outcomes] == list(range(10))
    assert store.count() == 10


def test_a_job_that_is_alone_has_all_cores(jobs: list[Job], backend: Any) -> None:
    execute(jobs[:1], workers=1_000, backend=backend)
    execute(jobs[1:3], workers=3, backend=backend)
    execute(jobs[3:4], workers=1, backend=backend)
    assert [job.cores for job in jobs[:4]] == [default_workers(), 1, 1, 1]


def test_stored_points_are_not_run_again(jobs: list[Job], backend: Any, store: Store) -> None:
    execute(jobs[:4], store=store, backend=backend)
    ran: list[int] = []

    def counting(job: Job, progress: Progress | None) -> tuple[Record, Series]:
        ran.append(job.seed)
        return backend(job, progress)

    outcomes = execute(jobs, store=store, backend=counting)
    assert sorted(ran) == [4, 5, 6, 7, 8, 9]
    assert [outcome.reused for outcome in outcomes] == [True] * 4 + [False] * 6
    assert {outcome.record.scenario.name for outcome in outcomes[:4]} == {"sweep"}
    ran.clear()
    execute(jobs, store=store, backend=counting, again=True)
    assert len(ran) == 10


def test_another_build_runs_again(jobs: list[Job], backend: Any, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    execute(jobs, store=store, backend=backend)
    monkeypatch.setattr(executor, "build_digest", lambda: "c" * 16)
    assert not any(outcome.reused for outcome in execute(jobs, store=store, backend=backend))


def test_an_error_names_its_run_and_keeps_the_others(jobs: list[Job], backend: Any, store: Store) -> None:
    def failing(job: Job, progress: Progress | None) -> tuple[Record, Series]:
        if job.seed == 5:
            raise InputError("trace.txt:3: not a number")
        return backend(job, progress)

    with pytest.raises(InputError, match=r"run 6 of 10: trace.txt:3: not a number"):
        execute(jobs, store=store, workers=1, backend=failing)
    assert store.count() == 5


def test_a_fault_of_elephan_keeps_its_own_error(jobs: list[Job]) -> None:
    def broken(job: Job, progress: Progress | None) -> tuple[Record, Series]:
        raise AssertionError("an invariant")

    with pytest.raises(AssertionError, match="an invariant"):
        execute(jobs, backend=broken)


def test_ctrl_c_keeps_what_ended_and_says_how_to_go_on(jobs: list[Job], backend: Any, store: Store) -> None:
    def slow(job: Job, progress: Progress | None) -> tuple[Record, Series]:
        if job.seed < 3:
            return backend(job, progress)
        if job.seed == 3:
            os.kill(os.getpid(), signal.SIGINT)
        assert progress is not None
        for step in range(1000):
            time.sleep(0.01)
            progress(step, 1000)
        raise AssertionError("was not stopped")

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(Interrupted, match="3 of 10 runs had ended and are stored; the same command") as caught:
        execute(jobs, store=store, workers=1, backend=slow)
    assert caught.value.exit_code == 130
    assert signal.getsignal(signal.SIGINT) is before
    assert store.count() == 3
    assert len(execute(jobs, store=store, backend=backend)) == 10


def test_a_store_that_fails_stops_the_sweep(
    jobs: list[Job], backend: Any, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(runs: Sequence[tuple[Record, Series | None]]) -> None:
        raise StoreError("cannot write: No space left on device")

    monkeypatch.setattr(store, "save_all", full)
    with pytest.raises(StoreError, match="No space left"):
        execute(jobs, store=store, workers=2, backend=backend)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("elephan-")]


def test_it_works_outside_the_main_thread(jobs: list[Job], backend: Any) -> None:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(len(execute(jobs, backend=backend))))
    thread.start()
    thread.join()
    assert found == [10]


def test_no_workers_is_an_error(jobs: list[Job]) -> None:
    with pytest.raises(InputError, match="workers = 0: at least 1"):
        execute(jobs, workers=0)


def test_a_stopped_run_leaves_no_outcome(jobs: list[Job]) -> None:
    def stopped(job: Job, progress: Progress | None) -> tuple[Record, Series]:
        raise Stopped

    with pytest.raises(KeyError):
        execute(jobs[:1], backend=stopped)


def test_progress_counts_runs_and_parts_of_running_ones() -> None:
    bars = Bars(stream=open(os.devnull, "w"))  # noqa: SIM115
    job = Job(0, {"flows": []}, {}, 1, ScenarioInfo(name="x"))
    bars.start(total=5)
    bars.found(0)
    for number in (1, 2):
        bars.began(number, job)
    bars.moved(2, 25, 50)
    bars.ended(1)
    assert bars.share() == pytest.approx(1.5 / 4)
    assert bars.line(bars._began_s + 3).startswith("2 of 5 runs, 38%, about 5.00 s left")
    bars._stream.close()


def test_time_left_is_not_told_where_nothing_tells_it() -> None:
    """A run of 20,000 connections said "100%, about 0 s left" for the minute in which its record was made."""
    bars = Bars(stream=io.StringIO())
    bars.start(total=1)
    bars.began(
        0,
        Job(
            0,
            {"flows": [{"transport": {"congestion_control": "cubic"}}] * 20_000},
            {},
            1,
            ScenarioInfo(name="x"),
        ),
    )
    assert bars.line(bars._began_s + 3) == "0 of 1 run, 0%, setting up 20000 connections"
    bars.moved(0, 5, 10)
    assert bars.line(bars._began_s + 3) == "0 of 1 run, 50%, about 3.00 s left"
    bars.moved(0, 10, 10)
    assert bars.line(bars._began_s + 6) == "0 of 1 run, 99%, putting its record together"
    bars.ended(0)
    assert bars.line(bars._began_s + 9) == "1 of 1 run, 100%"


def test_time_left_has_the_record_in_it_until_a_run_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two seconds of set-up, one simulated to nine tenths: the record is still to come."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    bars = Bars(stream=io.StringIO())
    bars.start(total=2)
    bars.began(0, Job(0, {"flows": []}, {}, 1, ScenarioInfo(name="x")))
    bars.began(1, Job(1, {"flows": []}, {}, 1, ScenarioInfo(name="x")))
    now[0] += 2
    for number in (0, 1):
        bars.moved(number, 0, 10)
        bars.moved(number, 9, 10)
    assert bars.line(now[0] + 0.9) == "0 of 2 runs, 90%, about 2.10 s left"


def test_a_run_that_was_simulated_puts_its_record_together(jobs: list[Job], tmp_path: Path) -> None:
    """The backend reports it when the core has ended, also for a run that ends before its time."""
    told: list[tuple[int, int]] = []
    file = tmp_path / "short.toml"
    file.write_text(
        '[run]\nduration = "60s"\n[path]\nbandwidth = "1Gbit/s"\nrtt = "1ms"\n'
        '[[flow]]\nworkload = { kind = "bulk", bytes = "1MB" }\n'
    )
    (job,) = jobs_of(load(file))
    sim.run(job, lambda now_ns, end_ns: told.append((now_ns, end_ns)))
    assert told[-1] == (60 * 10**9, 60 * 10**9)


class Made(Sequence[Job]):
    """Jobs that are made when asked for, and the most that were made and had not ended."""

    def __init__(self, jobs: list[Job]) -> None:
        self.jobs, self.made, self.ended, self.most = jobs, 0, 0, 0

    def __len__(self) -> int:
        return len(self.jobs)

    def __getitem__(self, index: Any) -> Any:
        self.made += 1
        self.most = max(self.most, self.made - self.ended)
        return self.jobs[index]


@pytest.mark.parametrize("workers", [1, 2])
def test_jobs_are_made_as_workers_take_them(
    jobs: list[Job], backend: Any, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All points of a sweep were made before the first ran; only where runs are short may more of them wait."""
    monkeypatch.setattr(module_of_workers, "AHEAD_S", 0.001)
    made = Made(jobs)

    class Counting(NoProgress):
        def ended(self, number: int) -> None:
            made.ended += 1

    execute(made, workers=workers, backend=backend, watcher=Counting())
    assert made.made == 10
    assert made.most <= 2 * workers + 1


def test_a_job_that_cannot_be_made_ends_the_sweep_with_its_number(jobs: list[Job], backend: Any, store: Store) -> None:
    class Broken(Made):
        def __getitem__(self, index: Any) -> Any:
            if index == 6:
                raise InputError("sweep.toml: path.loss: 2; expected at most 1")
            return super().__getitem__(index)

    with pytest.raises(InputError, match="run 7 of 10: sweep.toml: path.loss"):
        execute(Broken(jobs), store=store, workers=1, backend=backend)
    assert store.count() == 6
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("elephan-")]


class Closed(io.StringIO):
    """A terminal that was closed, or a pipe whose reader has gone."""

    def __init__(self, terminal: bool) -> None:
        """Make one."""
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        """Return True if it was a terminal."""
        return self.terminal

    def write(self, text: str) -> int:
        """Fail, as the kernel does."""
        raise OSError(errno.EIO if self.terminal else errno.EPIPE, "nobody is there")


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_that_nobody_can_see_any_more_ends_no_run(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SILENT_S", 0.0)
    monkeypatch.setattr(progress, "LINE_INTERVAL_S", 0.0)
    bars = Bars(stream=Closed(terminal))
    bars.start(total=2)
    bars.began(1, Job(0, {"flows": []}, {}, 1, ScenarioInfo(name="x")))
    for _ in range(3):
        bars.refresh()
    bars.finish()


def test_time_is_simulated_in_the_simulator_alone() -> None:
    words = {}
    for backend in ("sim", "kernel"):
        bars = Bars(stream=io.StringIO())
        bars.start(total=1)
        bars.began(0, Job(0, {"flows": []}, {}, 1, ScenarioInfo(name="x"), backend))
        bars.moved(0, 1_500_000_000, 4_000_000_000)
        words[backend] = bars._running[0].text()
    assert words == {"sim": "1.5 of 4.0 s simulated", "kernel": "1.5 of 4.0 s run"}

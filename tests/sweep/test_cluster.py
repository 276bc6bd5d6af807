"""Points on the workers of a dask cluster: same records, nothing lost, nothing twice, and stops that leave nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from elephan import api
from elephan.errors import InputError
from elephan.record import canonical_json
from elephan.store import Store
from elephan.sweep import cluster as module
from elephan.sweep import remote
from elephan.sweep.cluster import Cluster
from elephan.sweep.progress import NoProgress
from tests.sweep.conftest import ROOT

SWEEP = """
name = "points"
[run]
duration = "{duration}"
repetitions = 2
[path]
bandwidth = "100Mbit/s"
rtt = "20ms"
loss = 1e-4
[[flow]]
name = "copy"
[sweep]
"path.rtt" = {{ from = "10ms", to = "{last}ms", step = "1ms" }}
"""

INPUTS = """
name = "inputs"
[run]
duration = "2s"
[path]
bandwidth = "1Gbit/s"
rtt = "10ms"
loss = 1e-3
[[flow]]
name = "mirror"
congestion_control = "own.c"
[flow.workload]
kind = "replicate"
trace = "some.trace"
loop = true
time_scale = 4.5
[sweep]
"path.rtt" = ["10ms", "20ms"]
"""


def scenario(folder: Path, last: int = 19, duration: str = "1s") -> Path:
    """Write a sweep of two runs for each RTT from 10 ms to `last` ms."""
    file = folder / "points.toml"
    file.write_text(SWEEP.format(last=last, duration=duration))
    return file


def reproducible(results: api.Results) -> list[str]:
    """Return what has to be the same, to the byte."""
    return [canonical_json(record.reproducible()) for record in results]


def test_the_records_are_those_of_a_local_run_to_the_byte(cluster: str, tmp_path: Path) -> None:
    file = scenario(tmp_path)
    here = api.run(file, store=str(tmp_path / "here.sqlite"))
    there = api.run(file, store=str(tmp_path / "there.sqlite"), cluster=cluster)
    assert len(there) == 20
    assert reproducible(there) == reproducible(here)
    with Store(str(tmp_path / "here.sqlite")) as one, Store(str(tmp_path / "there.sqlite")) as other:
        for record in here:
            stored = other.get(record.id)
            assert canonical_json(stored.reproducible()) == canonical_json(one.get(record.id).reproducible())
            own, its = one.series(record.id), other.series(record.id)
            assert own is not None and its is not None and own.digest() == its.digest() == stored.series.sha256
    assert not any(outcome.reused for outcome in there.outcomes)
    again = api.run(file, store=str(tmp_path / "there.sqlite"), cluster=cluster)
    assert all(outcome.reused for outcome in again.outcomes)


def test_a_dry_run_counts_the_clusters_threads(cluster: str, tmp_path: Path) -> None:
    plan = api.dry_run(scenario(tmp_path), store="none", cluster=cluster)
    assert [one.at_once for one in plan.forecasts] == [2]


def test_series_are_there_without_a_store(cluster: str, tmp_path: Path) -> None:
    file = scenario(tmp_path, last=10)
    there = api.run(file, store="none", cluster=cluster)
    assert there.series(0).equals(api.run(file, store="none").series(0))


def test_files_that_a_point_reads_go_with_it(cluster: str, tmp_path: Path) -> None:
    """The workers are kept from seeing the file of this machine, as on another one."""
    shutil.copy(ROOT / "examples" / "traces" / "tpcc-small.trace", tmp_path / "some.trace")
    shutil.copy(ROOT / "congestion" / "cubic.c", tmp_path / "own.c")
    file = tmp_path / "inputs.toml"
    file.write_text(INPUTS)
    here = api.run(file, store="none")
    own = Cluster(cluster)

    def blind() -> None:
        from elephan.sweep import remote

        remote._has = lambda *_: False

    def seeing() -> None:
        import importlib

        from elephan.sweep import remote

        importlib.reload(remote)

    own.client.run(blind)
    try:
        there = api.run(file, store="none", cluster=cluster)
        assert reproducible(there) == reproducible(here)
        assert [item.path for item in there[0].inputs] == [str(tmp_path / "own.c"), str(tmp_path / "some.trace")]
        assert str(tmp_path / "own.c") in canonical_json(there[0].spec)
    finally:
        own.client.run(seeing)
        own.close()


def test_a_file_that_changes_on_its_way_is_named(tmp_path: Path) -> None:
    files = remote._Files()
    with pytest.raises(InputError, match="has changed since"):
        files.take("0" * 64, 0, b"other", True)
    assert files.find("/nowhere/x", "0" * 64) is None


def test_a_worker_that_dies_loses_nothing_and_doubles_nothing(cluster: str, tmp_path: Path) -> None:
    file = scenario(tmp_path, last=29, duration="60s")
    own = Cluster(cluster)
    pids = own.client.run(os.getpid)

    class Killing(NoProgress):
        count = 0

        def ended(self, number: int) -> None:
            self.count += 1
            if self.count == 5:
                os.kill(next(iter(pids.values())), signal.SIGKILL)

    watcher = Killing()
    place = str(tmp_path / "results.sqlite")
    done = api.run(file, store=place, cluster=cluster, watcher=watcher)
    assert watcher.count == len(done) == 40
    assert len({record.id for record in done}) == 40
    with Store(place) as store:
        assert store.count() == 40
        assert {record.id for record in store.list()} == {record.id for record in done}
    until_s = time.monotonic() + 30
    while set(own.client.run(os.getpid).values()) & {next(iter(pids.values()))} or own.threads() < 2:
        assert time.monotonic() < until_s
        time.sleep(0.1)
    own.close()


@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGKILL])
def test_a_command_that_ends_keeps_what_ended_and_leaves_no_work_behind(
    cluster: str, tmp_path: Path, ended_by: signal.Signals
) -> None:
    file = scenario(tmp_path, last=40, duration="600s")
    place = tmp_path / "results.sqlite"
    running = subprocess.Popen(
        [sys.executable, "-c", "from elephan.cli import main; main()"]
        + ["run", str(file), "--cluster", cluster, "--store", str(place), "--no-report"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        with Store(str(place)) as store:
            until_s = time.monotonic() + 60
            while not store.count():
                assert time.monotonic() < until_s and running.poll() is None
                time.sleep(0.05)
        running.send_signal(ended_by)
        _, error = running.communicate(timeout=60)
    finally:
        running.kill()
    if ended_by == signal.SIGINT:
        assert running.returncode == 130, error
        assert "the same command continues from here" in error and "Traceback" not in error
    own = Cluster(cluster)

    def executing(dask_worker: Any) -> int:
        return len(dask_worker.state.executing)

    until_s = time.monotonic() + 20
    while any(own.client.run(executing).values()) or any(own.client.processing().values()):
        assert time.monotonic() < until_s
        time.sleep(0.1)
    own.close()


def test_a_worker_with_another_elephan_is_refused(
    cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = scenario(tmp_path, last=10)
    monkeypatch.setattr(module, "build_digest", lambda: "c" * 16)
    with pytest.raises(InputError, match=r"the worker tcp://.* has elephan .* here is elephan .*core c{16}.*install"):
        api.run(file, store="none", cluster=cluster)
    # One that comes later is found by its first task.
    monkeypatch.setattr(Cluster, "_must_have_this_elephan", lambda self: None)
    with pytest.raises(InputError, match=r"the worker tcp://.* has elephan"):
        api.run(file, store="none", cluster=cluster)


def test_a_worker_without_elephan_says_so() -> None:
    """The probe goes to a worker whole: it imports elephan itself."""
    import cloudpickle

    code = "import sys, pickle; sys.modules['elephan'] = None; print(pickle.loads(sys.stdin.buffer.read())())"
    done = subprocess.run(
        [sys.executable, "-c", code], input=cloudpickle.dumps(remote.probe()), capture_output=True, check=True, cwd="/"
    )
    assert b"ModuleNotFoundError" in done.stdout


def test_an_error_of_a_point_is_that_of_a_local_run(cluster: str, tmp_path: Path) -> None:
    (tmp_path / "own.c").write_text("this is no C\n")
    shutil.copy(ROOT / "examples" / "traces" / "tpcc-small.trace", tmp_path / "some.trace")
    (tmp_path / "inputs.toml").write_text(INPUTS)
    errors = []
    for where in (None, cluster):
        with pytest.raises(InputError) as found:
            api.run(tmp_path / "inputs.toml", store="none", cluster=where)
        errors.append(str(found.value).splitlines()[0].partition(": ")[2])
    assert errors[0] == errors[1]


Run = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--cluster", "tcp://127.0.0.1:1"], "no scheduler of dask answers there"),
        (["--cluster", "nonsense"], "no scheduler of dask answers there"),
        (
            ["--cluster", "tcp://127.0.0.1:1", "--on", "kernel"],
            "its workers simulate; --on kernel runs on this machine",
        ),
        (["--cluster", "tcp://127.0.0.1:1", "--workers", "3"], "--workers 3: the cluster"),
        (["--cluster", "tcp://127.0.0.1:1", "--pcap", "x.pcapng"], "--pcap x.pcapng"),
    ],
)
def test_what_cannot_be_is_one_line(
    arguments: list[str],
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from elephan.cli.main import call

    monkeypatch.setattr(module, "CONNECT_S", 0.5)
    place = tmp_path / "results.sqlite"
    code = call(["run", str(scenario(tmp_path)), "--store", str(place), *arguments])
    error = capsys.readouterr().err
    assert code == 2
    assert expected in error and len(error.splitlines()) == 1
    assert not place.exists()


def test_without_dask_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"pip install 'elephan\[dask\]'"):
        api.run(scenario(tmp_path), store="none", cluster="tcp://127.0.0.1:1")

"""The runner of the harnesses: what is stored is not run again, and what a stored run hangs on is in its key."""

from __future__ import annotations

import ast
import json
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from elephan import backends, core
from elephan.api import job_of, run_jobs
from elephan.backends import Job
from elephan.congestion_control import congestion_controls
from elephan.store import Store, open_store
from elephan.sweep import executor
from evaluation import runner
from evaluation.performance.dumbbell import Dumbbell, run_spec
from evaluation.runner import ROOT, Runner

BELL = Dumbbell(rate_bps=10_000_000, rtt_ns=10_000_000, duration_ns=500_000_000, series_ns=100_000_000)


def a_job(seed: int = 1) -> Job:
    """Return a run that takes a moment."""
    return job_of(run_spec(BELL) | {"seed": seed}, "test")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return open_store(str(tmp_path / "store.sqlite"))


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids of the jobs that were run, in order."""
    ids: list[str] = []
    run = backends.run

    def watched(job: Job, progress: Any) -> Any:
        ids.append(job.id)
        return run(job, progress)

    defaults = dict(executor.execute.__kwdefaults__ or {}) | {"backend": watched}
    monkeypatch.setattr(executor.execute, "__kwdefaults__", defaults)
    return ids


def test_a_stored_run_is_not_run_again_until_it_is_asked_for(store: Store, ran: list[str]) -> None:
    once = Runner(store, workers=1).run([a_job()])
    twice = Runner(store, workers=1).run([a_job()])
    assert len(ran) == 1 and once[0].metrics == twice[0].metrics
    # Its series come from the store then.
    assert twice.series_of(twice[0]).digest() == once.series_of(once[0]).digest() == once[0].series.sha256
    Runner(store, again=True).run([a_job()])
    assert len(ran) == 2
    Runner(store).run([a_job(seed=2)])
    assert len(ran) == 3


def test_another_build_of_the_core_runs_anew(store: Store, ran: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    Runner(store).run([a_job()])
    assert Runner(store).stored(a_job()) is not None
    for module in (executor, runner):
        monkeypatch.setattr(module, "build_digest", lambda: "b" * 16)
    assert Runner(store).stored(a_job()) is None
    Runner(store).run([a_job()])
    assert len(ran) == 2


def test_another_byte_of_the_core_is_another_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "_native.so"
    content = Path(core.native.__file__).read_bytes()
    found = []
    for data in (content, content[:-1] + bytes([content[-1] ^ 1])):
        module.write_bytes(data)
        monkeypatch.setattr(core, "native", SimpleNamespace(__file__=str(module)))
        found.append(core.build_digest.__wrapped__())
    monkeypatch.undo()
    assert found[0] == core.build_digest() != found[1]


def test_another_byte_of_what_makes_a_record_is_another_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = core.record_sources()
    changed = tmp_path / "record_builder.py"
    (builder,) = (file for file in sources if file.name == changed.name)
    changed.write_bytes(builder.read_bytes() + b"\n")
    with monkeypatch.context() as patched:
        patched.setattr(core, "record_sources", lambda: [changed if file == builder else file for file in sources])
        assert core.build_digest.__wrapped__() != core.build_digest()


def test_every_module_that_makes_a_record_is_in_the_key() -> None:
    """A package of Python that a backend begins to use either takes part in records, or is named here."""
    # A specification, which a scenario makes, is in the key itself.
    neither = {"core", "errors", "run_spec", "scenario", "units", "writability"}
    package = ROOT / "elephan"
    sources = {file.relative_to(package).with_suffix("").as_posix() for file in core.record_sources()}
    for file in (package / "backends").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("elephan."):
                name = (node.module or "").removeprefix("elephan.").replace(".", "/")
                inside = name in sources or f"{name}/__init__" in sources
                assert inside or name.split("/")[0] in neither or name == "_native", f"{file.name}: {node.module}"


def test_every_crate_and_every_algorithm_is_in_the_core() -> None:
    """A change of any of them makes another module, and so another key."""
    command = ["cargo", "metadata", "--format-version=1", "--offline", "--locked"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    resolved = json.loads(done.stdout)
    names = {package["id"]: package["name"] for package in resolved["packages"]}
    nodes = {node["id"]: node["deps"] for node in resolved["resolve"]["nodes"]}
    todo = [package for package in resolved["workspace_members"] if names[package] == "elephan-python"]
    found = set()
    while todo:
        package = todo.pop()
        if package in found:
            continue
        found.add(package)
        # Not those that tests alone use.
        todo += [dep["pkg"] for dep in nodes[package] if any(kind["kind"] != "dev" for kind in dep["dep_kinds"])]
    # The agent is a program of its own: records of hosts hold its version, and its file goes by digest.
    assert {names[package] for package in resolved["workspace_members"]} - {"agent"} == {
        names[package] for package in found if package in resolved["workspace_members"]
    }
    assert {cc.name for cc in congestion_controls()} == {file.stem for file in (ROOT / "congestion").glob("*.c")}


def test_groups_of_jobs_come_back_as_groups(store: Store, ran: list[str]) -> None:
    first, second = run_jobs([[a_job(1), a_job(2)], [a_job(3)]], store=store)
    assert [record.seed for record in first] == [1, 2] and [record.seed for record in second] == [3]
    assert [list(part) for part in run_jobs([[], [a_job(3)], []], store=store)] == [[], list(second), []]
    assert len(ran) == 3
    assert run_jobs([], store="none") == []


def test_work_that_is_no_run_comes_back_in_order() -> None:
    assert Runner(None, workers=3).in_parallel(lambda number: number * number, range(20)) == [n * n for n in range(20)]

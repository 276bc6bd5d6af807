"""A clock that is set: no job stays silent until a date in the future, and no version is removed by a wrong age."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from elephan.backup.ages import Ages, Moment, elapsed_s, longest_gap_s
from elephan.backup.retention import Version, name_of, to_remove
from elephan.backup.spec import JobSpec, Keep, Schedule
from tests.backup.conftest import Site
from tests.backup.test_faults import DENIED
from tests.copy.model import clock
from tests.processes import quick, until

DAY_S = 86_400
YEAR_S = 365 * DAY_S


@pytest.fixture
def shifted(tmp_path: Path) -> Callable[[int], dict[str, str]]:
    """Set the clock of commands; return their environment."""
    folder = tmp_path / "clock"
    folder.mkdir()
    found = clock.environment(folder)
    if found is None:
        pytest.skip("no C compiler")

    def move(seconds: int) -> dict[str, str]:
        clock.set_offset(Path(found[clock.FILE]), seconds)
        return quick() | found

    return move


def command(site: Site, env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """Run `elephan backup FILE` under a clock, as a user whom modes bind."""
    line = [*DENIED, sys.executable, "-c", "from elephan.cli import main; main()", "backup", str(site.file), *words]
    return subprocess.run(line, capture_output=True, text=True, env=env, check=False, timeout=120)


Shifted = Callable[[int], dict[str, str]]


def test_a_jump_forward_removes_no_version_by_age(site: Site, shifted: Shifted) -> None:
    site.job('keep = "7d"')
    for number in range(3):
        site.write("a.txt", f"number {number}")
        assert command(site, shifted(0), "run", "records", "--once").returncode == 0
    older = site.versions()
    done = command(site, shifted(YEAR_S), "run", "records", "--once")
    assert done.returncode == 0 and "2 older versions stay: the clock went forward by 365 d more" in done.stderr
    assert site.versions()[:3] == older and len(site.versions()) == 4
    # And back: the name is ahead, and is named.
    done = command(site, shifted(0), "run", "records", "--once")
    assert done.returncode == 0 and "ahead of the clock, as that of an older version is" in done.stderr, done.stderr
    assert site.versions()[:3] == older and len(site.versions()) == 5
    status = command(site, shifted(0), "status", "--json")
    (view,) = json.loads(status.stdout)
    assert view["at_risk_s"] < 600


def test_a_run_in_the_future_is_named_and_does_not_count_as_a_copy(site: Site, shifted: Shifted) -> None:
    site.job('every = "1h"')
    assert command(site, shifted(-DAY_S), "run", "records", "--once").returncode == 0
    assert command(site, shifted(YEAR_S), "run", "records", "--once").returncode == 0
    done = command(site, shifted(0), "status", "--json")
    (view,) = json.loads(done.stdout)
    assert done.returncode == 1 and any("in the future" in note for note in view["notes"]), view
    assert abs(view["at_risk_s"] - DAY_S) < 600, "the age of the newest copy whose time can be right"
    assert "ahead: the clock was set back" in command(site, shifted(0), "status").stdout


def test_a_job_runs_by_the_present_clock_after_a_jump(site: Site, shifted: Shifted) -> None:
    site.job('every = "1h"')
    assert command(site, shifted(YEAR_S), "run", "records", "--once").returncode == 0
    count = len(site.versions())
    words = [sys.executable, "-c", "from elephan.cli import main; main()", "backup", str(site.file), "run"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=shifted(0))
    try:
        # Due at once: its newest run by this clock is none.
        until(lambda: len(site.versions()) == count + 1 and (site.destination / "latest").exists(), 60)
        marker = site.destination / ".elephan-backup" / f"{site.versions()[-1].name}.json"
        until(lambda: '"state":"complete"' in marker.read_text(), 60)
        # The clock is set while the program waits for the next hour.
        shifted(3 * 3600)
        until(lambda: len(site.versions()) == count + 2, 60)
    finally:
        process.terminate()
        _, said = process.communicate(timeout=60)
    assert "its newest run was due" in said and "ahead of the clock, which was set back" in said, said
    assert "the clock was set forward by 3 h" in said, said


@pytest.mark.parametrize("kind", ["incremental", "mirror"])
@pytest.mark.parametrize("ahead_s", [50, DAY_S])
def test_the_newest_run_is_the_one_that_was_made_last_also_after_the_clock_was_set_back(
    site: Site, shifted: Shifted, kind: str, ahead_s: int
) -> None:
    site.job(kind=kind)
    assert command(site, shifted(ahead_s), "run", "records", "--once").returncode == 0
    site.write("a.txt", "another").chmod(0)
    assert command(site, shifted(0), "run", "records", "--once").returncode == 1
    done = command(site, shifted(0), "status", "--json")
    (view,) = json.loads(done.stdout)
    assert done.returncode == 1 and view["state"] == "faults" and view["last"]["state"] == "faults", view
    runs = json.loads(command(site, shifted(0), "status", "records", "--json").stdout)
    assert [run["state"] for run in runs] == ["faults", "done"] and runs[0]["begun"] < runs[1]["begun"]
    restored = command(site, shifted(0), "restore", "records", "--to", str(site.folder / "restored"))
    assert restored.returncode == 1 and "a.txt: " in restored.stdout, restored.stdout + restored.stderr
    # And the other way round: what a run had copied in the future is no fault of the newest one.
    assert command(site, shifted(2 * ahead_s), "run", "records", "--once").returncode == 1
    (site.source / "a.txt").chmod(0o644)
    assert command(site, shifted(0), "run", "records", "--once").returncode == 0
    done = command(site, shifted(0), "status", "--json")
    (view,) = json.loads(done.stdout)
    assert done.returncode == 0 and view["state"] == "good" and view["at_risk_s"] < 60, view
    assert command(site, shifted(0), "restore", "records").returncode == 0


def job(**values: object) -> JobSpec:
    """A job."""
    return JobSpec("j", "incremental", ("/s/",), "/d", **values)  # type: ignore[arg-type]


def test_time_counts_by_the_boot_and_else_as_far_as_the_schedule_explains_it() -> None:
    first, second = Moment(1000.0, "boot", 50.0), Moment(1000.0 + YEAR_S, "boot", 110.0)
    assert elapsed_s(first, second, 10 * YEAR_S) == 60.0
    assert elapsed_s(second, first, 10.0) == 0.0
    other = Moment(1000.0 + YEAR_S, "later", 30.0)
    assert elapsed_s(first, other, DAY_S) == 30.0 and elapsed_s(first, other, 2 * YEAR_S) == YEAR_S
    assert elapsed_s(Moment(0.0, "", 0.0), Moment(DAY_S, "", 0.0), DAY_S) == DAY_S
    assert longest_gap_s(job(schedule=Schedule(every_s=3600.0))) == 3 * 3600.0
    assert longest_gap_s(job(schedule=Schedule(at_min=(60,), days=frozenset({6})))) > 14 * DAY_S
    assert longest_gap_s(job(schedule=Schedule(), keep=Keep(age_s=30.0 * DAY_S))) == 60 * DAY_S


def test_versions_still_go_by_age_where_runs_agree_with_the_clock() -> None:
    found = [Version(name_of(DAY_S * number), "complete", facts={"began_s": DAY_S * number}) for number in range(1, 11)]
    moments = [(one.name, Moment.of(one.began_s, one.facts)) for one in found]
    now_s = 10.5 * DAY_S
    ages = Ages.by_history(moments, Moment(now_s, "boot", 60.0), 2.0 * DAY_S)
    assert to_remove(found, Keep(age_s=3.0 * DAY_S), now_s, ages=ages) == [one.name for one in found[:6]]
    jumped_s = now_s + YEAR_S
    ages = Ages.by_history(moments, Moment(jumped_s, "boot", 60.0), 2.0 * DAY_S)
    assert ages.unexplained_s == pytest.approx(YEAR_S, abs=DAY_S)
    gone = to_remove(found, Keep(age_s=3.0 * DAY_S), jumped_s, ages=ages)
    assert gone == [one.name for one in found[:6]], "as by the right clock"
    assert len(to_remove(found, Keep(age_s=3.0 * DAY_S), jumped_s)) == 9

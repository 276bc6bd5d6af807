"""`elephan backup FILE status`: a line for each job of the file, and its exit code."""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta

import pytest

from tests.backup.conftest import Backup, Site


def later(hours: int) -> datetime:
    """Return a full minute some hours from now, local time."""
    return (datetime.now() + timedelta(hours=hours)).replace(second=0, microsecond=0)


def both(site: Site, at: datetime) -> None:
    """Write a file with the job records, and one that runs later."""
    site.job()
    site.file.write_text(
        site.file.read_text()
        + f'[[job]]\nname = "night"\nkind = "mirror"\nsources = ["{site.source}/"]\n'
        f'destination = "{site.folder}/disk/night"\nat = ["{at:%H:%M}"]\n'
    )


@pytest.mark.parametrize("before", [(), ("forecast",)])
def test_a_job_that_has_never_run_has_its_line(site: Site, backup: Backup, before: tuple[str, ...]) -> None:
    at = later(5)
    both(site, at)
    if before:
        backup(*before)
    done = backup("status")
    assert done.returncode == 1 and done.stdout.count("never run") == 2 and "has not run with" in done.stdout
    assert backup("run", "records", "--once").returncode == 0
    done = backup("status")
    lines = {line.split()[0]: line for line in done.stdout.splitlines() if line}
    assert done.returncode == 1 and "good" in lines["records"] and "has not run with" not in done.stdout
    assert "mirror" in lines["night"] and "never run" in lines["night"] and " all " in lines["night"]
    assert f"in {round((at.timestamp() - time.time()) / 3600)} h" in lines["night"]
    # The file's order.
    records, night = json.loads(backup("status", "--json").stdout)
    assert [records["job"], night["job"]] == ["records", "night"] and night["state"] == "new"
    assert night["next_due_s"] == at.timestamp() and night["at_risk_s"] is None and night["last"] is None


def test_the_status_of_one_job_that_has_never_run(site: Site, backup: Backup) -> None:
    at = later(5)
    both(site, at)
    assert backup("run", "records", "--once").returncode == 0
    assert backup("status", "records").returncode == 0
    done = backup("status", "night")
    assert done.returncode == 1 and done.stdout.startswith("night: never run; next in ")
    assert f"({at:%Y-%m-%d %H:%M:%S}); all of its data is at risk" in done.stdout
    done = backup("status", "night", "--json")
    assert done.returncode == 1 and json.loads(done.stdout) == []


def test_a_job_without_times_has_no_next_time(site: Site, backup: Backup) -> None:
    site.job()
    done = backup("status", "records")
    assert done.returncode == 1
    assert done.stdout == "records: never run; runs when asked alone; all of its data is at risk\n"


def test_a_job_that_left_the_file_stays_while_it_has_runs(site: Site, backup: Backup) -> None:
    both(site, later(5))
    assert backup("run", "records", "--once").returncode == 0
    text = site.file.read_text()
    site.file.write_text('name = "dr"\n' + text[text.index("[[job]]\nname = \"night\"") :])
    assert [view["job"] for view in json.loads(backup("status", "--json").stdout)] == ["night", "records"]
    site.job()
    assert [view["job"] for view in json.loads(backup("status", "--json").stdout)] == ["records"]

"""Runs with real copies on this machine: versions, what of them goes, mirrors, restores, kills, hours, locks."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from elephan.backup import daemon as daemons
from elephan.backup import running
from elephan.backup.config import load
from elephan.backup.ledger import Ledger
from elephan.backup.locks import locked
from elephan.backup.retention import time_of
from elephan.store.place import Place
from tests.backup.conftest import Backup, Site
from tests.processes import until

Start = Callable[[], subprocess.Popen[str]]


def rows(site: Site) -> list[dict[str, Any]]:
    """Runs of the job, oldest first."""
    ledger = Ledger(str(site.folder / "store.sqlite"), "dr")
    try:
        return ledger.runs("records")[::-1]
    finally:
        ledger.close()


def once(backup: Backup) -> str:
    """Run the job; return its line."""
    done = backup("run", "records", "--once")
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_versions_share_what_is_unchanged_and_older_ones_go_after_a_newer_one(site: Site, backup: Backup) -> None:
    site.job("keep = 2")
    once(backup)
    first = site.versions()[0]
    assert (first / "a.txt").read_text() == "first" and os.readlink(site.destination / "latest") == first.name
    site.write("a.txt", "second")
    said = once(backup)
    assert "records: version-" in said and " done; 6 B of 10 B, 2 files in " in said
    second = site.versions()[1]
    assert (first / "sub/b.txt").samefile(second / "sub/b.txt")
    assert (first / "a.txt").read_text() == "first" and (second / "a.txt").read_text() == "second"
    (site.source / "sub/b.txt").unlink()
    # Earlier runs tell what this one takes.
    assert "forecast" in once(backup)
    assert len(site.versions()) == 2 and not first.exists() and not (site.versions()[1] / "sub/b.txt").exists()
    assert os.readlink(site.destination / "latest") == site.versions()[1].name
    found = rows(site)
    assert [row["state"] for row in found] == ["done"] * 3 and [row["removed"] is None for row in found] == [
        False, True, True,
    ]  # fmt: skip
    assert found[0]["files"] == 2 and found[0]["bytes"] == 9 and json.loads(found[2]["receipt"])["root"]
    table = backup("status")
    assert "records" in table.stdout and "incremental" in table.stdout
    (view,) = json.loads(backup("status", "--json").stdout)
    assert view["state"] == "good" and view["complete"]["version"] == site.versions()[1].name
    assert view["last"]["forecast"]["judged"]["verdict"]
    assert backup("status", "records").stdout.count("done") == 3


def test_a_restore_brings_back_what_was_then(site: Site, backup: Backup) -> None:
    site.job()
    once(backup)
    site.write("a.txt", "second")
    once(backup)
    first, second = site.versions()
    # Same size and time, other bytes: a restore compares bytes.
    before = (site.source / "a.txt").stat()
    site.write("a.txt", "SECOND")
    os.utime(site.source / "a.txt", ns=(before.st_atime_ns, before.st_mtime_ns))
    (site.source / "sub/b.txt").unlink()
    site.write("new.txt", "since")
    done = backup("restore", "records")
    assert done.returncode == 0 and f"records: restore {second.name} done" in done.stdout, done.stdout + done.stderr
    assert (site.source / "a.txt").read_text() == "second" and (site.source / "sub/b.txt").read_text() == "kept"
    assert (site.source / "new.txt").exists()
    assert backup("restore", "records", "--exact").returncode == 0
    assert not (site.source / "new.txt").exists()
    then = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time_of(first.name)))
    assert backup("restore", "records", "--at", then, "--to", site.folder / "elsewhere").returncode == 0
    assert (site.folder / "elsewhere/a.txt").read_text() == "first"
    for words, said in (
        (("--at", "2001-01-01"), "has no version of then; the oldest is of"),
        (("--at", "yesterday"), 'a time, such as "2026-11-26 06:00"'),
        (("--version", "version-20010101T000000Z"), f"no such complete version; there is {first.name}"),
    ):
        refused = backup("restore", "records", *words)
        assert refused.returncode == 2 and said in refused.stderr, refused.stderr


def test_a_mirror_removes_what_is_gone_but_not_all_of_it(site: Site, backup: Backup) -> None:
    site.job(kind="mirror")
    once(backup)
    (site.source / "a.txt").unlink()
    once(backup)
    assert [path.name for path in site.destination.iterdir() if not path.name.startswith(".")] == ["sub"]
    (site.source / "sub/b.txt").unlink()
    (site.source / "sub").rmdir()
    # As with a disk that is not mounted.
    done = backup("run", "records", "--once")
    assert done.returncode == 1 and "empty, and a mirror would remove all of" in done.stderr
    assert (site.destination / "sub/b.txt").exists()
    restored = backup("restore", "records")
    assert restored.returncode == 0 and (site.source / "sub/b.txt").read_text() == "kept", restored.stderr
    assert "is a mirror, and has no older versions" in backup("restore", "records", "--at", "2026-01-01").stderr


def test_what_cannot_be_read_is_a_fault_and_the_rest_is_there(site: Site, backup: Backup) -> None:
    site.job()
    os.mkfifo(site.source / "pipe")
    (site.source / "link").symlink_to("nowhere")
    once(backup)
    assert os.readlink(site.versions()[0] / "link") == "nowhere" and (site.versions()[0] / "pipe").exists()


def test_a_destination_that_is_not_mounted_fails_at_once(site: Site, backup: Backup) -> None:
    site.job()
    site.destination.parent.rmdir()
    done = backup("run", "records", "--once")
    assert done.returncode == 1 and "mount it or make it first" in done.stderr
    assert [row["state"] for row in rows(site)] == ["failed"] and not site.destination.parent.exists()


def test_an_attempt_that_fails_is_made_again_and_counted(
    site: Site, backup: Backup, monkeypatch: pytest.MonkeyPatch
) -> None:
    # ssh(1) that cannot connect, at once: by a name that no server tells now, then by its address.
    tools = site.folder / "bin"
    tools.mkdir()
    (tools / "ssh").write_text(
        f"#!/bin/sh\nif mkdir {tools}/first 2>/dev/null; then\n"
        "echo 'ssh: Could not resolve hostname osc: Temporary failure in name resolution' >&2\n"
        "else echo 'ssh: connect to host osc port 22: No route to host' >&2; fi\nexit 255\n"
    )
    (tools / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    site.job(top='[retry]\nattempts = 3\nwait = "10ms"\n')
    site.file.write_text(site.file.read_text().replace(str(site.destination), "osc:/copies"))
    done = backup("run", "records", "--once")
    assert done.returncode == 1 and "attempt 2 failed" in done.stderr and "No route to host" in done.stderr
    (row,) = rows(site)
    assert row["state"] == "failed" and row["attempts"] == 3
    assert backup("status", "records").stdout.count("attempt ") == 3


def big(site: Site) -> Path:
    return site.write("big", random.Random(1).randbytes(12_000_000))


def is_durable(site: Site) -> bool:
    """Return True once a part of the file is on the disk for good."""
    told = [json.loads(row["progress"]) for row in rows(site) if row["progress"]]
    return any(one["durable_bytes"] > 10**6 for one in told)


def test_a_killed_daemon_goes_on_where_it_was(site: Site, daemon: Start, backup: Backup) -> None:
    big(site)
    site.job('every = "1h"', 'rate = "16Mbit/s"')
    first = daemon()
    until(lambda: is_durable(site), 60)
    first.send_signal(signal.SIGKILL)
    first.wait()
    (version,) = site.versions()
    assert not (version / "big").exists(), "whole files alone have their names"
    site.job('every = "1h"')
    second = daemon()
    until(lambda: rows(site)[0]["state"] == "done", 60)
    second.send_signal(signal.SIGTERM)
    _, said = second.communicate(timeout=60)
    assert second.returncode == 0 and f"records: {version.name} done" in said
    assert (version / "big").read_bytes() == (site.source / "big").read_bytes()
    (row,) = rows(site)
    receipt = json.loads(row["receipt"])
    assert receipt["sent_bytes"] < 12_000_000, "the second attempt goes on"
    ledger = Ledger(str(site.folder / "store.sqlite"), "dr")
    assert [one["outcome"] for one in ledger.attempts(row["id"])] == ["stopped", "done"]
    ledger.close()
    assert row["due"] is not None and json.loads(backup("status", "--json").stdout)[0]["state"] == "ended"


def test_a_signal_ends_a_run_and_the_next_start_goes_on(site: Site, daemon: Start) -> None:
    big(site)
    site.job('every = "1h"', 'rate = "16Mbit/s"')
    first = daemon()
    until(lambda: any(row["progress"] for row in rows(site)), 60)
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=60)
    assert first.returncode == 0
    assert [row["state"] for row in rows(site)] == ["interrupted"]
    site.job('every = "1h"')
    second = daemon()
    until(lambda: rows(site)[0]["state"] == "done", 60)
    second.send_signal(signal.SIGTERM)
    second.communicate(timeout=60)
    assert len(rows(site)) == 1


def test_outside_of_its_hours_a_run_waits(site: Site, daemon: Start) -> None:
    now = time.localtime()
    begin, end = (now.tm_hour + 2) % 24, (now.tm_hour + 3) % 24
    site.job('every = "1h"', "[[job.window]]", f'hours = "{begin:02d}:00-{end:02d}:00"')
    process = daemon()
    until(lambda: bool(rows(site)) and rows(site)[0]["state"] == "waiting", 60)
    assert "waits for its hours" in rows(site)[0]["text"]
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert rows(site)[0]["state"] == "interrupted" and not site.versions()


def test_two_runs_of_a_job_never_go_on_at_once(site: Site, backup: Backup) -> None:
    site.job()
    with locked(Place.of(str(site.folder / "store.sqlite")), "dr", "records"):
        done = backup("run", "records", "--once")
    assert done.returncode == 2 and 'the job "records" of the backup "dr" runs already, as process' in done.stderr


def test_a_job_that_another_process_has_run_is_not_run_twice(
    site: Site, backup: Backup, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.job('every = "1h"')
    for name in ("TICK_S", "BUSY_S"):
        monkeypatch.setattr(daemons, name, 0.05)
    spec = load(site.file)
    ledger = Ledger(str(site.folder / "store.sqlite"), "dr")
    lines: list[str] = []
    other = ExitStack()
    other.enter_context(locked(ledger.place, "dr", "records"))
    waits = 0

    def wait(seconds: float | None) -> bool:
        nonlocal waits
        time.sleep(seconds or 0)
        if waits == 0 and any("runs already" in line for line in lines):
            other.close()
            once(backup)
        waits += bool(rows(site))
        return waits > 20

    daemons.Daemon(spec, ledger, lines.append).run(wait)
    (row,) = rows(site)
    assert row["state"] == "done"
    # Nor is one that begins just when this process looks.
    runner = running.Runner(spec, spec.jobs[0], ledger, lambda _: False, lines.append)
    assert runner.run_open(row["due"], 0) is None and runner.run_open(None, 0) is None
    due = runner.run_open(row["due"] + 3600, 0)
    assert due is not None and due["state"] == "done"
    ledger.close()


def test_a_window_ends_a_copy_and_the_next_one_goes_on(
    site: Site, backup: Backup, monkeypatch: pytest.MonkeyPatch
) -> None:
    big(site)
    site.job()
    ends_s = 0.0

    def open_until(_: Any, now_s: float) -> tuple[float, int | None]:
        """Hours have minutes, and the test has not. At the first one's rate the copy takes 12 s."""
        nonlocal ends_s
        ends_s = ends_s or now_s + 1
        return (ends_s, 8_000_000) if now_s < ends_s else (math.inf, None)

    monkeypatch.setattr(running, "open_until", open_until)
    once(backup)
    (row,) = rows(site)
    ledger = Ledger(str(site.folder / "store.sqlite"), "dr")
    outcomes = [one["outcome"] for one in ledger.attempts(row["id"])]
    assert outcomes == ["window", "done"]
    ledger.close()
    assert row["attempts"] == 1 and row["sent_bytes"] >= 12_000_000

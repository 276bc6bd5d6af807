"""Two stores with one destination: neither removes, restores nor adds to the versions of the other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from elephan.backup import owner as owners
from tests.backup.conftest import Backup, Site


def owner(site: Site) -> dict[str, str]:
    """The owner in the newest marker."""
    marker = max((site.destination / ".elephan-backup").glob("*.json"))
    found: dict[str, str] = json.loads(marker.read_text())["owner"]
    return found


def other_store(site: Site) -> Path:
    """A store of another machine, or of another user of this one."""
    folder = site.folder / "other"
    folder.mkdir(exist_ok=True)
    return folder / "store.sqlite"


def test_a_destination_of_another_store_is_refused_until_it_is_adopted(site: Site, backup: Backup) -> None:
    site.job("keep = 1")
    assert backup("run", "records", "--once").returncode == 0
    first, mine = site.versions()[0], owner(site)
    assert mine["backup"] == "dr" and mine["job"] == "records" and len(mine["store"]) == 16
    other = other_store(site)
    site.write("a.txt", "of the other")
    done = backup("run", "records", "--once", "--store", other)
    assert done.returncode == 1 and mine["store"] in done.stderr and "adopt" in done.stderr, done.stderr
    assert site.versions() == [first] and (first / "a.txt").read_text() == "first"
    refused = backup("restore", "records", "--store", other)
    assert refused.returncode == 2 and "--of" in refused.stderr and mine["store"] in refused.stderr, refused.stderr
    assert (site.source / "a.txt").read_text() == "of the other"
    # After a disaster the store is lost too: its versions are restored by its id.
    restored = backup(
        "restore", "records", "--store", other, "--of", mine["store"], "--to", site.folder / "restored"
    )  # fmt: skip
    assert restored.returncode == 0 and (site.folder / "restored/a.txt").read_text() == "first", restored.stderr
    adopted = backup("adopt", "records", "--store", other)
    assert adopted.returncode == 0 and "1 version adopted" in adopted.stdout
    assert backup("run", "records", "--once", "--store", other).returncode == 0
    done = backup("run", "records", "--once")
    assert done.returncode == 1 and owner(site)["store"] in done.stderr
    assert (site.versions()[-1] / "a.txt").read_text() == "of the other" and len(site.versions()) == 1


def test_another_job_of_the_same_store_is_refused(site: Site, backup: Backup) -> None:
    site.job("keep = 1")
    assert backup("run", "records", "--once").returncode == 0
    kept = site.versions()
    site.file.write_text(site.file.read_text().replace('name = "records"', 'name = "other"'))
    done = backup("run", "other", "--once")
    assert done.returncode == 1 and 'job "records"' in done.stderr and site.versions() == kept
    assert backup("restore", "other").returncode == 2
    # A mirror would remove them.
    site.job(kind="mirror", top="")
    done = backup("run", "records", "--once")
    assert done.returncode == 1 and "it has versions of another job" in done.stderr and site.versions() == kept


def test_a_version_of_an_earlier_release_is_the_job_s_if_backup_and_job_agree(site: Site, backup: Backup) -> None:
    site.job("keep = 1")
    assert backup("run", "records", "--once").returncode == 0
    (marker,) = (site.destination / ".elephan-backup").glob("*.json")
    told = json.loads(marker.read_text())
    old = {name: told[name] for name in ("version", "state")}
    marker.write_text(json.dumps({**old, "facts": {"backup": "elsewhere", "job": "records", "faults": 0}}))
    done = backup("run", "records", "--once")
    assert done.returncode == 1 and 'backup "elsewhere"' in done.stderr
    marker.write_text(json.dumps({**old, "facts": {"backup": "dr", "job": "records", "faults": 0}}))
    assert backup("restore", "records").returncode == 0
    assert backup("run", "records", "--once").returncode == 0
    assert len(site.versions()) == 1 and owner(site)["store"]


def test_a_cloned_machine_is_another_one(site: Site, backup: Backup, monkeypatch: pytest.MonkeyPatch) -> None:
    site.job()
    machine = site.folder / "machine-id"
    machine.write_text("a" * 32 + "\n")
    monkeypatch.setattr(owners, "MACHINE_ID", machine)
    assert backup("run", "records", "--once").returncode == 0
    machine.write_text("b" * 32 + "\n")
    assert backup("run", "records", "--once").returncode == 1
    machine.write_text("a" * 32 + "\n")
    assert backup("run", "records", "--once").returncode == 0

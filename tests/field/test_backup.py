"""docs/howto/backup.md between two sites: versions, a run over an outage, restore."""

from __future__ import annotations

import re
import time
from pathlib import Path

from tests.field.conftest import whole
from tests.field.judging import carried_bytes, differences, tree
from tests.field.network import Field
from tests.processes import until

FILE = """\
name = "field"

[[path]]
name = "b"
rate = "40Mbit/s"
rtt = "20ms"

[[job]]
name = "records"
kind = "incremental"
sources = ["{source}/"]
destination = "b:{destination}"
at = ["20:00"]
keep = "7d"
path = "b"
"""


def versions(destination: Path) -> list[Path]:
    return sorted(path for path in destination.glob("version-*"))


def test_versions_are_the_source_as_it_was_and_come_back(field: Field, folder: Path) -> None:
    source, destination, file = tree(folder / "source", 11), folder / "copies", folder / "field.toml"
    destination.mkdir()
    file.write_text(FILE.format(source=source, destination=destination))
    backup = ("backup", file)
    assert field.elephan(*backup, "check").returncode == 0
    first = field.elephan(*backup, "run", "records", "--once")
    assert first.returncode == 0, first.stderr
    (one,) = versions(destination)
    assert differences(source, one) == ""
    (source / "inner" / "small-5").write_text("changed")
    (source / "inner" / "small-6").unlink()
    before = carried_bytes(field)
    # A version has the second in its name.
    time.sleep(1.1)
    second = field.elephan(*backup, "run", "records", "--once")
    assert second.returncode == 0, second.stderr
    assert carried_bytes(field) - before < 400_000, "what is the same is linked there"
    old, new = versions(destination)
    assert old == one and differences(source, new) == "" and (old / "inner" / "small-6").exists()
    assert (old / "large").stat().st_ino == (new / "large").stat().st_ino
    assert (destination / "latest").resolve() == new
    status = field.elephan(*backup, "status")
    assert status.returncode == 0 and "records" in status.stdout
    restored = field.elephan(*backup, "restore", "records", "--to", folder / "restored")
    assert restored.returncode == 0, restored.stderr
    assert differences(source, folder / "restored") == ""


@whole
def test_a_run_survives_an_outage(field: Field, folder: Path) -> None:
    source, destination, file = tree(folder / "source", 12, 12_000_000), folder / "copies", folder / "field.toml"
    destination.mkdir()
    file.write_text(FILE.format(source=source, destination=destination))
    field.set("path.bandwidth=8Mbit/s")
    before = carried_bytes(field)
    with field.started("backup", file, "run", "records", "--once") as process:
        until(lambda: carried_bytes(field) - before > 4_000_000, 60)
        field.set("link_down=path")
        assert carried_bytes(field) - before < 12_000_000
        time.sleep(3)
        field.set("link_up=path")
        _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    (one,) = versions(destination)
    assert differences(source, one) == "" and re.search(r"version-\d{8}T\d{6}Z", one.name)

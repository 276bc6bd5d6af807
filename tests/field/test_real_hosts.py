"""docs/howto/real-hosts.md: a run between the two sites, and what it leaves there."""

from __future__ import annotations

from pathlib import Path

from tests.field.conftest import whole
from tests.field.judging import carried_bytes
from tests.field.network import Field

SCENARIO = """\
[run]
duration = "3s"
stop_when_done = false

[path]
bandwidth = "40Mbit/s"
rtt = "20ms"

[[flow]]
congestion_control = "cubic"
"""


@whole
def test_a_run_fills_the_path_for_its_time(field: Field, folder: Path) -> None:
    file = folder / "wan.toml"
    file.write_text(SCENARIO)
    before = carried_bytes(field)
    words = ("run", file, "--on", "hosts", "--hosts", "a,b", "--no-report", "--store", folder / "store.sqlite")
    # Nobody can answer whether it may fill the path.
    without = field.elephan(*words)
    assert without.returncode == 2 and "--yes" in without.stderr
    done = field.elephan(*words, "--yes")
    assert done.returncode == 0, done.stderr
    # 3 s at 40 Mbit/s are 15 MB; slow start and the sessions of ssh are the rest.
    assert 6_000_000 < carried_bytes(field) - before < 18_000_000

"""The part of a run that is done: of a copy by its bytes, of anything else by its time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from elephan import api, backends
from elephan.backends import Job
from elephan.sweep.part_done import cut_off, ends_with_its_copies, part_done

HEAD = '[run]\nduration = "1000h"\n[path]\nbandwidth = "20Mbit/s"\nrtt = "20ms"\n'
BULK = '[[flow]]\nworkload = { kind = "bulk", bytes = "20MB" }\n'
HOUR_NS = 3_600 * 10**9


def job(folder: Path, text: str) -> Job:
    """Return the one run of a scenario."""
    (folder / "one.toml").write_text(text)
    (found,) = api.jobs_of(api.load(str(folder / "one.toml"), {}), backend="sim")
    return found


@pytest.mark.parametrize(
    "flows",
    [
        BULK,
        BULK + "connections = 4\n",
        BULK + 'connections = 2\ndistribution = "each"\n',
        '[[flow]]\nworkload = { kind = "program", program = "scp", bytes = "20MB" }\nconnections = 2\n',
        '[[flow]]\nworkload = { kind = "program", program = "pget", bytes = "20MB", streams = 3 }\n',
        # The second one is the last to end.
        BULK + 'name = "a"\n' + BULK.replace("20MB", "40MB") + 'name = "b"\n',
    ],
)
def test_half_of_a_copys_time_is_half_of_it(tmp_path: Path, flows: str) -> None:
    whole = job(tmp_path, HEAD + flows)
    assert ends_with_its_copies(whole.spec)
    # In virtual time, so that the test is the same on every machine.
    end_ns = round(float(backends.run(whole)[0].metrics["simulated_s"] or 0) * 1e9)
    at_half, _ = backends.run(replace(whole, spec=cut_off(whole.spec, end_ns // 2)))
    assert part_done(whole.spec, end_ns // 2, at_half.flows) == pytest.approx(0.5, abs=0.15)
    assert part_done(whole.spec, 1, [{} for _ in whole.spec["flows"]]) is None


@pytest.mark.parametrize(
    ("flows", "part"),
    [
        ("[[flow]]\n", 0.25),
        (BULK + 'name = "a"\n[[flow]]\nname = "b"\n', 0.25),
        ('[[flow]]\nworkload = { kind = "bulk", duration = "500h" }\n', 0.5),
        ('[[flow]]\nworkload = { kind = "constant_rate", load = "50%" }\n', 0.25),
        ('[[flow]]\nworkload = { kind = "replicate", rate = "1Mbit/s" }\n', 0.25),
        ('[[flow]]\nworkload = { kind = "iscsi", source = { kind = "mix", requests = 1000 } }\n', None),
    ],
)
def test_what_is_no_copy_is_done_by_its_time_if_anything_tells(tmp_path: Path, flows: str, part: Any) -> None:
    spec = job(tmp_path, HEAD + flows).spec
    assert not ends_with_its_copies(spec)
    assert part_done(spec, 250 * HOUR_NS) == part


def test_a_run_that_does_not_end_with_its_copies_is_done_by_its_time(tmp_path: Path) -> None:
    spec = job(tmp_path, HEAD.replace("[path]", "stop_when_done = false\n[path]") + BULK).spec
    assert not ends_with_its_copies(spec)
    assert part_done(spec, 250 * HOUR_NS) == 0.25

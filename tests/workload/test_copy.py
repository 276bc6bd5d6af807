"""A long copy: a part is simulated, the rest extrapolated, and record, table and notes mention it."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import elephan
from elephan.api import jobs_of, load
from elephan.backends.copy_bounds import with_agreement
from elephan.cli.main import call
from elephan.report.metrics import CATALOGUE
from elephan.report.notes import extrapolated
from elephan.report.table import print_table
from elephan.scenario.spec import extrapolate

SCENARIO = """
[run]
duration = "1000h"
[path]
bandwidth = "10Gbit/s"
rtt = "4ms"
[[flow]]
name = "copy"
window = "2MB"
workload = { kind = "bulk", bytes = "20TB" }
[measure]
series = false
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "copy.toml").write_text(SCENARIO)
    return str(tmp_path / "copy.toml")


def printed(results: elephan.Results) -> str:
    stream = io.StringIO()
    print_table(results.table(), Console(file=stream, width=500))
    return stream.getvalue()


def test_twenty_terabytes_take_seconds_and_the_record_says_how(file: str) -> None:
    results = elephan.run(file, store="none")
    (record,) = results
    # A window of 2 MB per 4 ms, of which bursts of 64 KiB leave some empty.
    assert record.metrics["completion_s"] == pytest.approx(20e12 / 2e6 * 4e-3, rel=0.02)
    assert record.metrics["goodput_bps"] == pytest.approx(2e6 * 8 / 4e-3, rel=0.02)
    how = record.extrapolation
    assert how is not None and set(record.metrics) <= CATALOGUE.keys()
    assert record.metrics["delivered_bytes"] == how["simulated_bytes"] < how["bytes"] / 1000
    assert how["completion_low_s"] <= record.metrics["completion_s"] <= how["completion_high_s"]
    (note,) = record.notes
    assert note.startswith("flow copy: ") and "of 20.0 TB were simulated" in note and "--exact" in note
    assert "± half of the 95 % band of what was extrapolated" in printed(results)
    (again,) = elephan.run(file, store="none")
    assert record.reproducible() == again.reproducible()


def test_exact_and_extrapolated_runs_have_ids_of_their_own(file: str) -> None:
    def job(**changes: Any) -> Any:
        (found,) = jobs_of(load(file, changes))
        return found

    assert "extrapolate" in job().spec and "extrapolate" not in job(**{"run.exact": True}).spec
    assert job().id != job(**{"run.exact": True}).id
    assert job().id == job(**{"run.exact": False}).id


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"flow.workload.bytes": "20GB"}, "it is short"),
        ({"run.stop_when_done": False}, "the run goes on after it"),
        ({"flow.connections": 2, "flow.distribution": "each"}, "one of two copies ends first"),
        ({"flow.stop": "1h"}, "it is stopped"),
        ({"flow.workload": '{ kind = "constant_rate", load = "50%" }'}, "no copy"),
    ],
)
def test_what_is_no_long_copy_is_simulated_to_its_end(file: str, changes: dict[str, Any], why: str) -> None:
    (job,) = jobs_of(load(file, changes))
    assert "extrapolate" not in job.spec, why


@pytest.mark.parametrize("more", ["[[event]]\nat = '1h'\nloss = 1e-3\n", "[[flow]]\nname = 'other'\n"])
def test_a_path_or_company_that_changes_is_simulated(file: str, more: str) -> None:
    Path(file).write_text(SCENARIO + more)
    (job,) = jobs_of(load(file))
    assert "extrapolate" not in job.spec


def test_connections_that_share_a_copy_are_one(file: str) -> None:
    (record,) = elephan.run(file, set={"flow.connections": 4, "flow.window": "500kB"}, store="none")
    assert record.metrics["completion_s"] == pytest.approx(20e12 / 2e6 * 4e-3, rel=0.02)
    assert record.flow_groups[0]["completion_s"] == record.metrics["completion_s"]
    assert record.notes[0].startswith("flow copy: ")


def test_losses_that_are_drawn_want_more_of_them_than_those_of_a_queue(file: str) -> None:
    def episodes(**changes: Any) -> int:
        (job,) = jobs_of(load(file, changes))
        return int(job.spec["extrapolate"]["least_episodes"])

    assert episodes() == 5 and episodes(**{"path.loss": 1e-6}) == 30


def test_bounds_that_agree_are_the_completion(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Losses at 1e-6 let one CUBIC stream have more than its pace: few are seen, and the pace is the answer."""
    monkeypatch.setattr(extrapolate, "MOST_PACKETS", 2**23)
    file = tmp_path / "paced.toml"
    pace_bps, data = 245_000_000, 300 * 10**9
    flow = f'max_pacing_rate = "{pace_bps}bit/s"\nworkload = {{ kind = "bulk", bytes = "{data}B" }}\n'
    flow = f'connections = 8\ndistribution = "striped"\n{flow}'
    path = '[path]\nbandwidth = "10Gbit/s"\nrtt = "20ms"\nloss = 1e-6\nqueue = "1bdp"\n'
    file.write_text(f'[run]\nduration = "1h"\n{path}[[flow]]\nname = "copy"\n{flow}')
    results = elephan.run(file, store="none")
    assert "completion" in printed(results).splitlines()[0] and "20 min 24 s" in printed(results)
    assert call(["run", str(file), "--store", "none", "--json"]) == 0
    (record,) = json.loads(capsys.readouterr().out)
    metrics, (entry,) = record["metrics"], record["flow_groups"]
    expected_s = 8 * data / (8 * pace_bps)
    assert metrics["completion_low_s"] <= metrics["completion_s"] <= metrics["completion_high_s"]
    assert metrics["completion_s"] == entry["completion_s"] == pytest.approx(expected_s, rel=0.01)
    assert metrics["goodput_bps"] == pytest.approx(8 * pace_bps, rel=0.01)
    assert metrics["line_share"] == pytest.approx(8 * pace_bps / 10e9, rel=0.01)
    (note,) = [note for note in record["notes"] if note.startswith("flow copy: ") and "were simulated" in note]
    assert "agree within 1 %: completion 20 min" in note and "cannot" not in note and "between" not in note


def test_bounds_that_the_simulated_part_contradicts_give_no_completion() -> None:
    how = {
        "refused": "only 5 loss episodes were seen, 30 are wanted",
        **dict.fromkeys(("goodput_low_bps", "goodput_high_bps", "rest_low_bps", "second_half_bps"), 8e9),
        **dict.fromkeys(("completion_low_s", "completion_high_s"), 300.0),
    }
    found = with_agreement(how)
    assert found is not None and (found["completion_s"], found["goodput_bps"]) == (300.0, 8e9)
    for contradiction in ({"second_half_bps": 7e9}, {"goodput_low_bps": 7.8e9}):
        assert with_agreement(how | contradiction) == how | contradiction


def test_a_refusal_says_why_and_what_to_do() -> None:
    spec = {"flows": [{"name": "copy.1"}, {"name": "copy.2"}]}
    how = {"bytes": 20 * 10**12, "simulated_bytes": 10**11, "refused": "only 3 loss episodes were seen, 30 are wanted"}
    assert extrapolated(spec, how) == [
        "flow copy: 100 GB of 20.0 TB were simulated, and the rest cannot be extrapolated: only 3 loss episodes were "
        "seen, 30 are wanted; --exact (run.exact) simulates all of it"
    ]
    assert extrapolated(spec, None) == []

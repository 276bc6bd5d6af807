"""A name of version 0.1.0 is refused with the one that it has now."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from elephan.cli.main import call
from elephan.record import Record
from elephan.record_upgrade import ABSENT_IN_TRANSPORT, from_format_1
from elephan.renamed import COMMANDS, KEYS, KINDS, OPTIONS, new_key
from elephan.scenario.flow import FlowSettings
from elephan.scenario.hybrid import Manager
from elephan.scenario.mitigation import CwndReduction
from elephan.scenario.run import Event
from elephan.scenario.volume import TraceSource
from elephan.scenario.workload import Replicate, ShortFlows

TABLES = (FlowSettings, Manager, TraceSource, CwndReduction, Event, Replicate, ShortFlows)
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_every_new_key_is_a_key_and_no_old_one_is() -> None:
    assert sorted(KEYS) == sorted(table.__name__ for table in TABLES)
    for table in TABLES:
        names = KEYS[table.__name__]
        assert set(names.values()) <= set(table.keys()), table
        # Values that several old names may have swapped would be read wrongly.
        assert not set(names) & set(table.keys()), table


def test_the_first_table_that_had_the_key_names_the_new_one() -> None:
    assert new_key(["Flow", "FlowSettings", "Table"], "stack") == "congestion_control"
    assert new_key(["Manager", "Table"], "tail") == "pareto_shape"
    assert new_key(["Bulk", "Table"], "stack") is None


@pytest.mark.parametrize(
    ("file", "change", "says"),
    [
        ("bulk", "flow.stack=reno", '"congestion_control", which is what "stack" is called now'),
        ("bulk", "flow.copy.stack=reno", '"congestion_control", which is what "stack" is called now'),
        ("bulk", "flow.workload={ kind = 'offered', load = '10%' }", '"constant_rate", which is what "offered" is'),
        ("hybrid-manager", "manager.idle=3s", '"inactive_timeout", which is what "idle" is called now'),
        ("hybrid-manager", "manager.mitigations=['hold']", '"hold_buffer", which is what "hold" is called now'),
        ("replicate-oltp", "flow.workload.slowdown=2", '"time_scale", which is what "slowdown" is called now'),
    ],
)
def test_an_old_key_or_value_is_one_line(file: str, change: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["check", str(EXAMPLES / f"{file}.toml"), "--set", change]) == 2
    error = capsys.readouterr().err
    assert says in error and error.count("\n") == 1


def test_an_old_command_or_option_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for old, new in COMMANDS.items():
        assert call([old]) == 2
        assert f'it is called "elephan {new}" now' in capsys.readouterr().err
    commands = {"--stacks": ["compare", "x.toml"], "--stack": ["iscsi", "bench", "iscsi://x/y/0"]}
    for old in ("--slowdown", "--beyond"):
        commands[old] = ["disk", "replay", "x.trace"]
    assert commands.keys() == OPTIONS.keys()
    for old, words in commands.items():
        assert call([*words, old, "1"]) == 2
        assert f"It is called {OPTIONS[old]} now." in capsys.readouterr().err


def test_a_record_of_format_1_has_todays_names_everywhere() -> None:
    gate = {"delay_ns": 1, "queues": [], "share_ppm": None, "rate_bps": 1, "line": None, "limit_bytes": None}
    trim = {"delay_ns": 1, "keep_ppm": 5, "lead_ns": 0, "restore_ns": None}
    remedy = {"gate": gate, "trim": trim, "tolerate": None}
    before = {
        "format": 1,
        "ground": "sim",
        "trims": [],
        "entries": [],
        "crowds": [],
        "happened_s": [1.0],
        "parameters": {
            "flow.a.stack.beta": 1,
            "event.0.remedy": ["hold", {"kind": "trim", "keep": "50%"}],
            "manager.tail": 2,
            "flow.a.workload.slowdown": 2,
            "flow.a.name": "hold",
        },
        "flows": [{"name": "a", "stack": "reno", "workload": "offered"}],
        "manager": {"ledger": [{"remedy": "hold, trim", "remedy_saves_bytes": 1}]},
        "spec": {
            "format": 1,
            "flows": [{"stack": {"congestion": "reno"}, "workload": {"kind": "offered"}}],
            "crowds": [{"stack": {"congestion": "cubic"}, "sizes": {"index_e3": 1, "least_bytes": 2, "most_bytes": 3}}],
            "manager": {"one_in": 1, "keep_ppm": 7, "remedies": [{"route": [0], "lightpath": 0, "remedy": remedy}]},
            "events": [{"when": {}, "action": {"kind": "move", "remedy": remedy}}],
        },
    }
    text = json.dumps(before)
    after = from_format_1(before)
    assert json.dumps(before) == text, "what was given stays as it is"
    assert after["backend"] == "sim" and after["event_times_s"] == [1.0]
    assert after["parameters"] == {
        "flow.a.congestion_control.beta": 1,
        "event.0.mitigation": ["hold_buffer", {"kind": "cwnd_reduction", "cwnd_fraction": "50%"}],
        "manager.pareto_shape": 2,
        "flow.a.workload.time_scale": 2,
        "flow.a.name": "hold",
    }
    assert after["flows"] == [{"name": "a", "congestion_control": "reno", "workload": "constant_rate"}]
    assert after["manager"]["move_log"] == [{"mitigation": "hold_buffer, cwnd_reduction", "mitigation_saves_bytes": 1}]
    spec = after["spec"]
    assert spec["flows"][0]["transport"] == {"congestion_control": "reno"} | ABSENT_IN_TRANSPORT
    assert spec["short_flows"][0]["sizes"] == {"pareto_shape_e3": 1, "min_bytes": 2, "max_bytes": 3}
    (allowed,) = spec["manager"]["mitigations"]
    assert (spec["manager"]["sampling_rate"], spec["manager"]["cc_beta_ppm"]) == (1, 7)
    for mitigation in (allowed["mitigation"], spec["events"][0]["action"]["mitigation"]):
        assert mitigation["hold_buffer"] == gate and mitigation["reordering_tolerance"] is None
        assert mitigation["cwnd_reduction"]["cwnd_fraction_ppm"] == 5


def test_kinds_have_one_name() -> None:
    assert not set(KINDS) & set(KINDS.values())
    assert Record.model_fields.keys() >= {"backend", "flow_groups", "short_flows", "cwnd_reductions", "event_times_s"}

"""The specifications that Python writes are what the crate spec reads: its JSON Schema says so."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema
import pytest

from elephan.advise.candidates import ordinary
from elephan.advise.forecast import FileSet, workload_of
from elephan.advise.long_run import studied
from elephan.advise.simulation import Path
from elephan.api import load
from elephan.core import native
from elephan.run_spec.defaults import FORMAT, TRANSPORT
from tests.determinism.golden import ROOT, specs
from tests.scenario.conftest import BASE, NETWORK, Load
from tests.soak.draw import drawn

EXAMPLES = sorted((ROOT / "examples").glob("*.toml"))
SEEDS = range(60)

POSTMARK = '{ kind = "iscsi", source = "postmark" }'
PROGRAM = '{ kind = "program", program = "scp", bytes = "1MB" }'
KEYS = (
    '{ kind = "program", program = "rclone", bytes = "1MB", files = 2, streams = 2, buffer = "1KiB", requests = 2, '
    'source = "disk", sink = "disk" }'
)
PARETO = '{ kind = "replicate", rate = "10%", size = { min = "4KiB", max = "1MiB" } }'
COLUMNS = (
    f'{{ kind = "replicate", trace = "{ROOT}/examples/traces/tpcc-small.trace", '
    'columns = "time:ns,device,offset:sectors,size:sectors,op:1=read" }'
)
RARE = [
    ['path.emulator="netem"', f"flow.workload={PROGRAM}", "flow.connections=2"],
    [f"flow.workload={KEYS}"],
    ["path.loss={ bit_error_rate = 1e-9, burst = 100 }"],
    [f"flow.workload={POSTMARK}"],
    [f"flow.workload={PARETO}"],
    ['flow.workload={ kind = "bulk", bytes = "100GB" }', "run.duration=1h"],
    ["flow.send_overhead=1ms"],
    [f"flow.workload={COLUMNS}"],
]
"""Changes of the base that no example has and none is drawn with."""

MOVED_BACKGROUND = (
    NETWORK
    + """
[[background]]
name = "cross"
from = "a"
to = "d"
rate = "10%"
[[event]]
when = { flow = "one", reaches = "1Mbit/s", settled = "1s" }
move = "cross"
route = ["a", "b", "d"]
[[measure.windows]]
name = "after-move"
event = 0
from = "0s"
to = "1s"
"""
)


@cache
def schema() -> dict[str, Any]:
    """Return the schema of a specification."""
    found: dict[str, Any] = json.loads(native.run_spec_schema())
    jsonschema.Draft202012Validator.check_schema(found)
    return found


def faults(spec: Any) -> list[str]:
    """Return what of a specification the schema does not allow."""
    validator = jsonschema.Draft202012Validator(schema())
    return [f"{error.json_path}: {error.message[:200]}" for error in validator.iter_errors(spec)]


def named(value: Any) -> Iterator[str]:
    """Yield every key of a specification, and every kind with its key."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"{key} = {item}" if key in ("kind", "process") else key
            yield from named(item)
    elif isinstance(value, list):
        for item in value:
            yield from named(item)


def names_of_schema(value: Any) -> Iterator[str]:
    """Yield the same of all that a schema allows."""
    if isinstance(value, dict):
        for key, item in value.get("properties", {}).items():
            yield f"{key} = {item['const']}" if key in ("kind", "process") else key
        for item in value.values():
            yield from names_of_schema(item)
    elif isinstance(value, list):
        for item in value:
            yield from names_of_schema(item)


def test_what_scenarios_give_is_in_the_schema_and_all_of_the_schema_is_given(scenario: Load) -> None:
    others = [scenario(drawn(seed)) for seed in SEEDS] + [load(file) for file in EXAMPLES]
    others += [scenario(BASE, *changes) for changes in RARE] + [scenario(MOVED_BACKGROUND)]
    others.append(scenario(BASE[: BASE.index("[[flow]]")] + '[[background]]\nrate = "9%"\nmix = { "46B" = 1 }\n'))
    others.append(scenario(BASE.replace('bandwidth = "1Gbit/s"', 'line = "1gbe"')))
    found = [*specs().values(), *(other.points()[0].to_spec() for other in others)]
    # The advice's own key: a study that ends by a time.
    beside = Path(1e8, 0.02, competitors=("cubic",))
    found.append(studied(beside, ordinary(2), workload_of(FileSet.of_text("1GB")), 1000, 1.0, 1))
    for spec in found:
        assert json.loads(json.dumps(spec)) == spec, "plain JSON"
        assert faults(spec) == []
    given = {name for spec in found for name in named(spec)}
    assert sorted(set(names_of_schema(schema())) - given) == []


def test_a_key_that_is_missing_or_unknown_is_refused_by_schema_and_core(scenario: Load) -> None:
    spec: Any = scenario(BASE).points()[0].to_spec()
    transport = spec["flows"][0]["transport"]
    del transport["undo"]
    transport["undoing"] = True
    assert faults(spec) == [
        "$.flows[0].transport: Additional properties are not allowed ('undoing' was unexpected)",
        "$.flows[0].transport: 'undo' is a required property",
    ]
    with pytest.raises(ValueError, match="unknown field `undoing`"):
        native.simulate(json.dumps(spec))
    del transport["undoing"]
    with pytest.raises(ValueError, match="missing field `undo`"):
        native.simulate(json.dumps(spec))


def test_the_types_of_python_are_those_of_the_schema() -> None:
    command = [sys.executable, ROOT / "scripts" / "run_spec_types.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_defaults_are_those_of_the_core(scenario: Load) -> None:
    """Except for what a scenario says of the path: its MTU, and a window that is never the limit."""
    spec = scenario(BASE).points()[0].to_spec()
    assert spec["format"] == FORMAT
    transport = spec["flows"][0]["transport"]
    assert transport == TRANSPORT | {"window_bytes": transport["window_bytes"]}

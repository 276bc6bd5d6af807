"""Keys of workload `fcp`, their form in the core, and the errors of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from elephan.api import load
from elephan.backends.inputs import paths_of
from elephan.run_spec.types import RunSpec
from elephan.scenario import ScenarioError
from tests.scenario.conftest import Load

SANS = """
[run]
duration = "1s"
[[node]]
name = "near"
kind = "gateway"
rate = "8GFC"
[[node]]
name = "far"
kind = "gateway"
rate = "8GFC"
[[node]]
name = "host"
[[link]]
from = "near"
to = "far"
bandwidth = "1Gbit/s"
delay = "10ms"
[[link]]
from = "far"
to = "host"
bandwidth = "1Gbit/s"
delay = "10ms"
[[flow]]
name = "volume"
from = "near"
to = "far"
[flow.workload]
kind = "fcp"
"""
ROOT = Path(__file__).resolve().parents[2]
TRACE = ROOT / "examples" / "traces" / "tpcc-small.trace"


def spec(scenario: Load, *overrides: str) -> RunSpec:
    """Return the specification of the only point."""
    return scenario(SANS, *overrides).points()[0].to_spec()


def workload_of(found: RunSpec) -> dict[str, Any]:
    """Return the workload of the first flow."""
    return {**found["flows"][0]["workload"]}


def test_what_is_left_out_is_a_pair_over_ifcp_without_acceleration(scenario: Load) -> None:
    (flow,) = spec(scenario)["flows"]
    assert flow["workload"] == {
        "kind": "fcp",
        "protocol": "ifcp",
        "pairs": 1,
        "frame_bytes": 2048,
        "max_burst_bytes": 262_144,
        "queue_depth": 32,
        "write_acceleration": False,
        "disk": {
            "model": None,
            "drive": None,
            "scheduler": None,
            "count": 1,
            "stripe_bytes": 65_536,
            "size_bytes": 2**40,
        },
        "source": {
            "kind": "mix",
            "reads_e6": 1_000_000,
            "request_bytes": 65_536,
            "random": True,
            "think_ns": 0,
            "requests": None,
            "span_bytes": None,
        },
    }


def test_requests_and_disk_are_those_of_a_session(scenario: Load) -> None:
    source = f'flow.workload.source={{ kind = "trace", trace = "{TRACE}", pace = "closed", out_of_range = "wrap" }}'
    changes = (source, "flow.workload.disk=cheetah-9lp", "flow.workload.disks=2", "flow.workload.scheduler=sptf")
    found = spec(scenario, *changes)
    over_iscsi = spec(scenario, *changes, "flow.workload.kind=iscsi")
    over_fc, session = workload_of(found), workload_of(over_iscsi)
    assert all(over_fc[key] == session[key] for key in ("source", "disk", "queue_depth"))
    assert list(paths_of(found)) == list(paths_of(over_iscsi)) == [(str(TRACE), False)]


def test_the_example_differs_by_protocol_alone() -> None:
    points = load(ROOT / "examples" / "san-protocols.toml", []).points()
    workloads = [workload_of(point.to_spec()) for point in points]
    assert [workload["kind"] for workload in workloads] == ["fcp", "fcp", "fcp", "iscsi"]
    for key in ("source", "disk", "queue_depth", "max_burst_bytes"):
        assert all(workload[key] == workloads[0][key] for workload in workloads), key
    assert all(
        point.to_spec()["flows"][0]["transport"] == points[0].to_spec()["flows"][0]["transport"] for point in points
    )


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("workload.frame=100B", 'workload.frame = "100B": a size from 256B to 2112B, such as "64KiB"'),
        ("workload.frame=2050B", 'workload.frame = "2050B": a multiple of 4B'),
        ("workload.max_burst=100B", 'workload.max_burst = "100B": a size from 512B to 16777215B, such as "64KiB"'),
        ("workload.protocol=iscsi", 'workload.protocol = "iscsi": one of "ifcp", "fcip"'),
        ("workload.queue_depth=0", "workload.queue_depth = 0: a whole number from 1 to 61440"),
        ("workload.write_acceleration=1", "workload.write_acceleration = 1: true or false"),
        ("workload.write_accelaration=true", 'unknown key; did you mean "write_acceleration"?'),
        ("workload.disks=2", 'workload.disks = 2: 1, because disk is "none"'),
        ("workload.source.size=1000B", 'workload.source.size = "1000B": a multiple of 512B'),
        ("workload.load=10%", 'workload.load = "10%": unknown key'),
        ("workload.pairs=2", "workload.pairs = 2: 1, as connections: iFCP has one connection for each pair"),
        ("distribution=each", 'distribution = "each": absent: workload.pairs says how many pairs there are'),
    ],
)
def test_what_is_wrong_is_said_in_a_line(scenario: Load, override: str, message: str) -> None:
    with pytest.raises(ScenarioError) as error:
        scenario(SANS, f"flow.{override}")
    text = str(error.value)
    assert text.startswith("--set: ") and "\n" not in text
    assert message in text, text


def test_an_end_that_is_no_gateway_is_named(scenario: Load) -> None:
    with pytest.raises(ScenarioError) as error:
        spec(scenario, "flow.to=host")
    expected = 'flow.volume.to = "host": a node of kind "gateway", because workload.kind is "fcp"'
    assert str(error.value).endswith(expected), str(error.value)

"""Keys of workload `iscsi`, their form in the core, and the errors of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from elephan.backends.inputs import paths_of
from elephan.backends.kernel.mapping import Machine
from elephan.backends.kernel.plan import layout_of
from elephan.errors import InputError
from elephan.scenario import ScenarioError
from tests.scenario.conftest import BASE, Load

SESSION = BASE + '[flow.workload]\nkind = "iscsi"\n'
TRACE = Path(__file__).resolve().parents[2] / "examples" / "traces" / "tpcc-small.trace"
LENGTH = 'a size from 512B to 16777215B, such as "64KiB"'


def spec(scenario: Load, *overrides: str) -> dict[str, Any]:
    """Return the specification of the only point."""
    point = scenario(SESSION, *overrides).points()[0]
    return point.to_spec()


def test_what_is_left_out_is_what_the_rfc_says(scenario: Load) -> None:
    (flow,) = spec(scenario)["flows"]
    assert flow["workload"] == {
        "kind": "iscsi",
        "initial_r2t": True,
        "immediate_data": True,
        "max_burst_bytes": 262_144,
        "first_burst_bytes": 65_536,
        "initiator_max_recv_bytes": 8192,
        "target_max_recv_bytes": 8192,
        "max_outstanding_r2t": 1,
        "header_digest": False,
        "data_digest": False,
        "command_window": 128,
        "queue_depth": 32,
        "allegiance": "round_robin",
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


def test_connections_are_those_of_one_session(scenario: Load) -> None:
    flows = spec(scenario, "flow.connections=3", "flow.workload.source.reads=30%")["flows"]
    assert [flow["name"] for flow in flows] == ["backup.1", "backup.2", "backup.3"]
    assert {flow["group"] for flow in flows} == {0}
    assert all(flow["workload"] == flows[0]["workload"] for flow in flows)
    assert flows[0]["workload"]["source"]["reads_e6"] == 300_000


def test_the_first_burst_follows_a_small_burst(scenario: Load) -> None:
    (flow,) = spec(scenario, "flow.workload.max_burst=4KiB")["flows"]
    assert (flow["workload"]["max_burst_bytes"], flow["workload"]["first_burst_bytes"]) == (4096, 4096)


def test_a_trace_and_a_disk_are_inputs(scenario: Load) -> None:
    source = f'flow.workload.source={{ kind = "trace", trace = "{TRACE}", pace = "closed", out_of_range = "wrap" }}'
    found = spec(scenario, source, "flow.workload.disk=cheetah-9lp", "flow.workload.scheduler=sptf")
    workload = found["flows"][0]["workload"]
    assert (workload["source"]["timed"], workload["source"]["out_of_range"]) == (False, "wrap")
    assert workload["source"]["trace"]["format"] == "mqsim"
    assert (workload["disk"]["model"], workload["disk"]["scheduler"]) == ("cheetah-9lp", "sptf")
    assert list(paths_of(found)) == [(str(TRACE), False)]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("workload.max_burst=100B", f'workload.max_burst = "100B": {LENGTH}'),
        ("workload.max_burst=65536", f"workload.max_burst = 65536: {LENGTH}"),
        ("workload.first_burst=1MiB", 'workload.first_burst = "1MiB": at most max_burst, 262144B (RFC 7143, 13.14)'),
        ("workload.max_recv_segment_target=16MiB", f'workload.max_recv_segment_target = "16MiB": {LENGTH}'),
        ("workload.queue_depth=0", "workload.queue_depth = 0: a whole number from 1 to 65536"),
        ("workload.queue_dept=4", 'workload.queue_dept = 4: unknown key; did you mean "queue_depth"?'),
        ("workload.disks=2", 'workload.disks = 2: 1, because disk is "none"'),
        ("workload.scheduler=look", 'workload.scheduler = "look": absent, because disk is "none"'),
        ("workload.stripe=1000B", 'workload.stripe = "1000B": a multiple of 512B'),
        ("workload.source.reads=1.5", 'workload.source.reads = 1.5: a share from 0 to 1, such as 0.7 or "70%"'),
        ("workload.source.size=100B", 'workload.source.size = "100B": a size from 512B to 16777216B, such as "64KiB"'),
        ("workload.source.size=1000B", 'workload.source.size = "1000B": a multiple of 512B'),
        ("workload.source.span=4KiB", 'workload.source.span = "4KiB": a size not below that of a request'),
        ("workload.source=tape", 'workload.source = "tape": one of "mix", "trace", "postmark"'),
        (
            'workload.source={ kind = "postmark", largest = "100B" }',
            'workload.source.largest = "100B": a size not below the smallest',
        ),
        ("stagger=1s", 'stagger = "1s": 0s: the session\'s first connection logs in, then the others'),
    ],
)
def test_what_is_wrong_is_said_in_a_line(scenario: Load, override: str, message: str) -> None:
    with pytest.raises(ScenarioError) as error:
        scenario(SESSION, f"flow.{override}")
    text = str(error.value)
    assert text.startswith("--set: ") and "\n" not in text
    assert text.endswith(f"flow.backup.{message}"), text


@pytest.mark.parametrize(
    ("override", "part"),
    [
        ("workload.disk=floppy", '"none", one of cheetah-9lp, nvme, or a .parv or .diskspecs file of DiskSim'),
        ('workload.source={ kind = "trace", trace = "none.trace" }', "a trace file that can be read"),
    ],
)
def test_a_file_that_is_not_there_is_named(scenario: Load, override: str, part: str) -> None:
    with pytest.raises(ScenarioError) as error:
        spec(scenario, f"flow.{override}")
    assert part in str(error.value) and "\n" not in str(error.value)


def test_the_kernel_backend_says_that_it_has_no_sessions(scenario: Load) -> None:
    machine = Machine((6, 18), frozenset({"tcp_rto_max_ms"}))
    with pytest.raises(InputError, match='flow backup: workload "iscsi" runs on --on sim alone'):
        layout_of(spec(scenario), machine)

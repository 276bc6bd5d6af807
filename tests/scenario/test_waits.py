"""Keys for a sender's own time, for waits until a flow has settled, and for windows of a measurement."""

from __future__ import annotations

from typing import Any

import pytest

from elephan.api import jobs_of
from elephan.backends.kernel.mapping import Machine
from elephan.backends.kernel.plan import layout_of
from elephan.errors import InputError
from elephan.scenario import ScenarioError
from tests.scenario.conftest import BASE, Load

MACHINE = Machine((6, 12), frozenset())


def spec(scenario: Load, text: str) -> dict[str, Any]:
    """Return the specification of the scenario's only point."""
    (job,) = jobs_of(scenario(text))
    return dict(job.spec)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ('"1ms"', {"distribution": "uniform", "scale_ns": 10**6}),
        ('{ scale = "20us", distribution = "exponential" }', {"distribution": "exponential", "scale_ns": 20_000}),
    ],
)
def test_a_sender_takes_time_for_each_packet(scenario: Load, written: str, expected: dict[str, Any]) -> None:
    (flow,) = spec(scenario, BASE + f"send_overhead = {written}\n")["flows"]
    assert flow["transport"]["send_overhead"] == expected
    (without,) = spec(scenario, BASE)["flows"]
    assert "send_overhead" not in without["transport"]


@pytest.mark.parametrize(
    ("share", "rate_bps"), [("95%", 95 * 10**7), ("950Mbit/s", 95 * 10**7), ("96.5%", 965 * 10**6)]
)
def test_an_event_waits_until_a_flow_has_settled(scenario: Load, share: str, rate_bps: int) -> None:
    when = f"{{ flow = 'backup', reaches = '{share}', settled = '3s' }}"
    (event,) = spec(scenario, BASE + f"[[event]]\nwhen = {when}\nlink_down = 'path.forward'\n")["events"]
    assert event["when"] == {
        "kind": "flow_reaches",
        "flow": 0,
        "rate_bps": rate_bps,
        "window_ns": 10**8,
        "settled_ns": 3 * 10**9,
    }


def test_windows_count_from_the_start_or_from_the_move_of_an_event(scenario: Load) -> None:
    events = "[[event]]\nat = '1s'\nbandwidth = '1Mbit/s'\nloss = 0\n[[event]]\nat = '2s'\nlink_down = 'path.forward'\n"
    windows = "[[measure.windows]]\nname = 'early'\nfrom = '0s'\nto = '1s'\n"
    windows += "[[measure.windows]]\nname = 'dark'\nevent = 1\nfrom = '100ms'\nto = '8s'\n"
    assert spec(scenario, BASE + events + windows)["measure"]["windows"] == [
        {"name": "early", "from_ns": 0, "to_ns": 10**9},
        # The first entry makes three changes.
        {"name": "dark", "event": 3, "from_ns": 10**8, "to_ns": 8 * 10**9},
    ]
    assert "windows" not in spec(scenario, BASE)["measure"]


EVENT = "[[event]]\nwhen = {{ flow = 'backup', reaches = '{}' }}\nlink_down = 'path'\n"
WINDOWS = "[measure]\nwindows = [{}]\n"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("send_overhead = '0s'\n", 'flow.backup.send_overhead = "0s": a time above zero'),
        ("send_overhead = true\n", 'flow.backup.send_overhead = true: a time such as "1ms", or a table such as'),
        (EVENT.format("97%"), 'event.0.when.reaches = "97%": at most "96.5%", the payload of a line full of'),
        (EVENT.format("fast"), 'event.0.when.reaches = "fast": a share of the line such as'),
        (
            EVENT.format("50%', settled = '10s"),
            'event.0.when.settled = "10s": a time shorter than the run (run.duration)',
        ),
        (EVENT.format("50%', over = '11s"), 'event.0.when.over = "11s": a time shorter than the run (run.duration)'),
        (
            "start = '4s'\n" + EVENT.format("50%', settled = '6s"),
            'event.0.when.settled = "6s": a time shorter than the rest of the run after the start of the flow',
        ),
        ("nagle = true\ntransport = 'udt4'\n", "flow.backup.nagle = true: false: udt4 has no Nagle's algorithm"),
        (WINDOWS.format("{ name = 'a', from = '2s', to = '2s' }"), 'measure.windows.0.to = "2s": a time after from'),
        (WINDOWS.format("{ name = 'a', from = '2s', to = '11s' }"), 'measure.windows.0.to = "11s": a time not after'),
        (
            WINDOWS.format("{ name = 'a', from = '0s', to = '1s' }, { name = 'a', from = '0s', to = '2s' }"),
            'measure.windows.1.name = "a": another name: "a" is that of a window before',
        ),
        (
            WINDOWS.format("{ name = 'a', event = 0, from = '0s', to = '1s' }"),
            "measure.windows.0.event = 0: absent: there is no [[event]]",
        ),
    ],
)
def test_what_cannot_be_is_refused(scenario: Load, more: str, message: str) -> None:
    with pytest.raises(ScenarioError) as error:
        scenario(BASE + more)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("send_overhead = '1ms'\n", "flow backup: send_overhead: a real sender takes the time that it takes"),
        (
            "[[event]]\nwhen = { flow = 'backup', reaches = '50%', settled = '1s' }\nlink_down = 'path'\n",
            "event.when.settled: only the simulator sees a retransmission when it happens",
        ),
    ],
)
def test_a_kernel_refuses_what_only_the_simulator_does(scenario: Load, more: str, message: str) -> None:
    (job,) = jobs_of(scenario(BASE + more))
    with pytest.raises(InputError) as error:
        layout_of(job.spec, MACHINE)
    assert str(error.value).startswith(message)

"""Rank and words: rules over numbers, each with numbers that call for it and numbers that do not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from elephan.compare import explanations
from elephan.compare.rank import default_key, ranked
from elephan.compare.run_metrics import Measured, Run
from elephan.compare.running import neighbour
from elephan.compare.selection import chosen
from elephan.compare.trade import Box, placed
from elephan.congestion_control import congestion_controls
from elephan.errors import InputError
from elephan.report.end_labels import apart
from elephan.scenario import Scenario

PLAIN = Run(
    goodput_bps=5e7,
    line_share=0.5,
    offered_share=None,
    load_share=None,
    caused_drops=0,
    line_drops=0,
    sent_segments=100_000,
    retransmitted_segments=0,
    timeouts=0,
    recoveries=0,
    rtt_mean_s=0.022,
    rtt_min_s=0.020,
    lag_p99_s=None,
    latency_p99_s=None,
    completion_s=None,
    window_packets=100,
    neighbour_bps=4e7,
    fair_bps=4e7,
    rtt_max_s=0.025,
)


def of(cc: str = "plain", exact: bool = True, path_packets: float = 333, **changes: Any) -> Measured:
    """One that does as `PLAIN` but for `changes`; a list has a value for each repetition."""
    count = max((len(value) for value in changes.values() if isinstance(value, list)), default=1)
    runs = [
        replace(PLAIN, **{key: value[i] if isinstance(value, list) else value for key, value in changes.items()})
        for i in range(count)
    ]
    return Measured(cc, tuple(runs), path_packets, exact and count == 1)


@pytest.mark.parametrize(
    ("item", "says"),
    [
        (of(line_share=0.93), "fills the line"),
        (of(line_share=0.93, offered_share=0.995), "carries all that is offered"),
        (
            of(line_share=0.2, offered_share=0.5),
            "opens its window slowly: a mean window of 100 packets, the path holds 333",
        ),
        (of(line_share=0.48, load_share=0.5, offered_share=1.0), "carries all that is offered"),
        # A load of half the line does not fill it, whatever the window.
        (of(line_share=0.4, load_share=0.5, offered_share=0.8, line_drops=9), "carries 80.0 % of what is offered"),
        (of(timeouts=3, recoveries=10, line_drops=10), "waits for 3 time-outs"),
        (of(timeouts=1, recoveries=4, line_drops=4), "waits for 1 time-out"),
        (of(timeouts=1, recoveries=10, line_drops=10), "limited by the line's losses: a mean window of 100 packets"),
        # A burst of 400 drops in the queue is one episode of the 11; the line's ten packets are the others.
        (of(caused_drops=400, line_drops=10, recoveries=11), "limited by the line's losses"),
        (of(caused_drops=400, line_drops=1, recoveries=11), "recovers slowly from the drops that it causes"),
        (of(caused_drops=4, recoveries=4, window_packets=330), "recovers slowly from the drops that it causes"),
        # The kernel cannot always tell whose recoveries they were: with both kinds of loss there is no telling.
        (of(caused_drops=4, line_drops=4, recoveries=None, window_packets=330), ""),
        # At 1e-4 losses hold CUBIC and Reno to a window of 122 packets: 300 of BBR's are not their doing.
        (of(line_drops=10, recoveries=10, window_packets=300), ""),
        (of(caused_drops=400, recoveries=10, window_packets=300), ""),
        # A window that losses would let grow to 122 packets, and that stays at 30: something else is its limit.
        (of(line_drops=10, recoveries=10, window_packets=30), ""),
        # A packet that waited for a round trip shows that the window has filled the path.
        (of(rtt_max_s=0.040), ""),
        (of(window_share=0.97), "limited by its window"),
        # Requests wait for answers: a low share says nothing of windows.
        (replace(of(), is_greedy=False), ""),
        (replace(of(), own_limits=("its pacing rate",)), "limited by its pacing rate"),
        # Three quarters of the port are all of what the policer passes.
        (replace(of(line_share=0.75, passing_share=0.94), is_policed=True), "fills what the policer passes"),
        (
            of(line_share=0.4, load_share=0.5, offered_share=0.8, drain_s=1.5),
            "carries 80.0 % of what is offered by the run's end, the rest within 1.50 s after it",
        ),
    ],
)
def test_the_limit_is_named(item: Measured, says: str) -> None:
    found = explanations.limit(item)
    assert found.startswith(says) and bool(found) == bool(says)
    assert ("a mean window" in found) == (says != found or "a mean window" in says)


def test_queue_drops_and_vain_repeats_are_named_when_they_are_worth_it() -> None:
    assert explanations.queue(of(rtt_mean_s=0.0301), 0.020) == "a long queue, 10.1 ms on average"
    assert explanations.queue(of(rtt_mean_s=0.025), 0.020) == ""
    assert explanations.queue(of(rtt_mean_s=0.021), 0.020) == "next to no queue"
    # An idle line has no queue either; that is no merit.
    assert explanations.queue(of(rtt_mean_s=0.021, line_share=0.1), 0.020) == ""
    assert explanations.queue(of(), None) == ""
    assert explanations.drops(of(caused_drops=1500)) == "overflows queues: 1.50 % of its packets dropped there"
    assert explanations.drops(of(caused_drops=500)) == ""
    assert (
        explanations.drops(of(caused_drops=1500, policer_drops=1500))
        == "exceeds the policer: 1.50 % of its packets dropped there"
    )
    assert explanations.drops(of(caused_drops=0)) == "causes no loss"
    assert explanations.drops(of(caused_drops=0, line_share=0.2)) == ""
    assert (
        explanations.repeats(of(retransmitted_segments=300, line_drops=100)) == "sends 300 segments again for 100 lost"
    )
    assert explanations.repeats(of(retransmitted_segments=140, line_drops=100)) == ""


@pytest.mark.parametrize(
    ("kept", "says"),
    [
        (None, ""),
        (0.31, "leaves a reno neighbour 31.0 % of its share"),
        (0.79, "leaves a reno neighbour 79.0 % of its share"),
        (0.8, "fair to a reno neighbour"),
        (1.25, "fair to a reno neighbour"),
        (1.3, "gives way to a reno neighbour"),
    ],
)
def test_the_neighbours_share_is_named(kept: float | None, says: str) -> None:
    item = of(fair_bps=0.0) if kept is None else of(neighbour_bps=kept * 4e7)
    assert explanations.neighbour(item) == says


SHARES = [0.95, 0.95, 0.95, 0.93, 0.60]
"""Four seeds fill the line, and one loses a packet early."""


def test_nothing_is_explained_that_another_seed_might_turn_round() -> None:
    """A mean of 0.876 is below 0.9, and yet only one seed is: the words named the line's losses by the dice."""
    assert explanations.limit(of(line_share=SHARES, line_drops=[0, 0, 0, 1, 1])) == ""
    assert explanations.limit(of(line_share=[0.95, 0.94, 0.95, 0.93, 0.94])) == "fills the line"
    mixed = of(line_share=[0.5, 0.55, 0.5, 0.45], caused_drops=400, line_drops=[1, 0, 3, 2], recoveries=[4, 3, 4, 5])
    assert explanations.limit(mixed) == ""
    # Without certain losses, a low share of the line cannot be due to loss.
    unlucky = of(line_share=[0.5, 0.55, 0.5, 0.45], line_drops=[0, 1, 2, 1], recoveries=[0, 1, 2, 1])
    assert explanations.limit(unlucky).startswith("opens its window slowly")
    assert explanations.drops(of(caused_drops=[0, 3000, 100, 2000, 0])) == ""
    assert explanations.neighbour(of(neighbour_bps=[2e7, 4e7, 5e7])) == ""
    assert explanations.neighbour(of(neighbour_bps=[1e7, 2e7, 1.5e7], fair_bps=[3e7, 6.1e7, 4.4e7])).startswith(
        "leaves a"
    )
    assert explanations.why(of(exact=False), 0.02) == (explanations.ONE_RUN,)


def test_the_rank_is_by_the_key_and_ties_by_what_they_cost() -> None:
    found = [
        of("b", goodput_bps=100e6, caused_drops=900),
        of("a", goodput_bps=99.5e6, caused_drops=30),
        of("d", goodput_bps=80e6, rtt_min_s=0.019),
        of("c", goodput_bps=99.4e6, caused_drops=30, rtt_mean_s=0.021),
    ]
    rows = ranked(found, "goodput")
    assert [(row.rank, row.cc) for row in rows] == [(1, "c"), (1, "a"), (1, "b"), (4, "d")]
    # The queue is above the least RTT that any of them saw.
    assert rows[1].queue_s is not None and rows[1].queue_s.mean == pytest.approx(0.003)
    assert [row.cc for row in ranked(found, "drops")] == ["d", "c", "a", "b"]
    with pytest.raises(InputError, match="these runs have no replication lag"):
        ranked(found, "lag")
    with pytest.raises(InputError, match="--by speed: one of goodput, lag"):
        ranked(found, "speed")


def test_a_rank_needs_a_difference_that_chance_does_not_make() -> None:
    seeds = [90e6, 60e6, 95e6, 40e6, 80e6]
    lucky = of("lucky", goodput_bps=[94e6, 58e6, 95e6, 60e6, 79e6])
    steady = of("steady", goodput_bps=seeds)
    worse = of("worse", goodput_bps=[value * 0.9 for value in seeds])
    ranks = {row.cc: row.rank for row in ranked([lucky, steady, worse], "goodput")}
    # The same losses hit both: what differs is the algorithm, although the intervals of the two means overlap by far.
    assert ranks == {"lucky": 1, "steady": 1, "worse": 2}
    one_each = [of("a", exact=False, goodput_bps=9e7), of("b", exact=False, goodput_bps=5e7)]
    assert {row.rank for row in ranked(one_each, "goodput")} == {1}


def test_a_copy_that_did_not_end_once_is_behind_those_that_did() -> None:
    done = of("done", completion_s=[10.0, 11.0, 10.5])
    late = of("late", completion_s=[20.0, 21.0, 22.0])
    never = of("never", completion_s=[9.0, None, 9.0])
    rows = ranked([never, late, done], "completion")
    assert [(row.rank, row.cc) for row in rows] == [(1, "done"), (2, "late"), (3, "never")]


def test_what_the_neighbour_keeps_is_paired_by_seed() -> None:
    """Its goodput varies by half with the losses of the seed, its share beside one and beside the other does not."""
    kept = of(fair_bps=[4e7, 2e7, 3e7, 3.5e7], neighbour_bps=[2e7, 1.02e7, 1.47e7, 1.75e7])
    assert kept.neighbour_kept is not None and kept.neighbour_kept.mean == pytest.approx(0.5, abs=0.002)
    assert kept.neighbour_kept.half_width == pytest.approx(0.01, abs=0.006)


def test_the_rank_is_by_what_the_workload_is_about() -> None:
    assert default_key([of(), of()]) == "goodput"
    assert default_key([of(lag_p99_s=1.0, latency_p99_s=2.0)]) == "lag"
    assert default_key([of(latency_p99_s=2.0)]) == "latency"
    # One that did not end has no completion: then they cannot be ranked by it.
    assert default_key([of(completion_s=2.0), of()]) == "goodput"


def test_a_list_of_ccs_is_read_with_parameters_and_files(tmp_path: Path) -> None:
    (tmp_path / "mine.c").write_text("")
    found = chosen("reno, cubic(beta=1/2, hystart=off),mine.c,reno", tmp_path)
    assert [item.label for item in found] == ["reno", "cubic(beta=1/2, hystart=off)", "mine.c"]
    assert found[1].value == '{ name = "cubic", beta = "1/2", hystart = "off" }'
    assert found[2].value == f'"{(tmp_path / "mine.c").resolve()}"'
    assert [item.label for item in chosen("all", tmp_path)] == [cc.name for cc in congestion_controls()]
    for text, reason in [
        ("renoo", "no congestion control 'renoo'"),
        ("reno cubic", 'expected "all", or names'),
        ("cubic(beta)", "expected parameters such as"),
        ("none.c", "no such file"),
        ("", 'expected "all"'),
    ]:
        with pytest.raises(InputError, match=reason):
            chosen(text, tmp_path)


TEXT = """
[run]
duration = "2s"
[[node]]
name = "a"
[[node]]
name = "b"
[[link]]
from = "a"
to = "b"
bandwidth = "10Mbit/s"
delay = "5ms"
[[flow]]
name = "neighbour"
from = "b"
to = "a"
start = "1s"
connections = 3
congestion_control = "cubic"
[sweep]
"flow.congestion_control" = ["reno", "cubic"]
"""


def test_the_neighbour_takes_the_first_flows_route_and_start() -> None:
    base = Scenario(Path("long.toml"), TEXT)
    name, text = neighbour(base)
    assert name == "neighbour2"
    flows = Scenario(Path("long.toml"), text, ["sweep="]).points()[0].to_spec()["flows"]
    assert len(flows) == 4
    own, other = flows[0], flows[3]
    assert (other["source"], other["destination"], other["route"]) == (own["source"], own["destination"], own["route"])
    assert (other["start_ns"], other["transport"]["congestion_control"], other["workload"]) == (
        10**9,
        "reno",
        {"kind": "bulk", "bytes": None},
    )
    inline = Scenario(
        Path("inline.toml"),
        'flow = [{ name = "copy" }]\n[run]\nduration = "1s"\n[path]\nbandwidth = "1Mbit/s"\nrtt = "1ms"\n',
    )
    with pytest.raises(InputError, match=r"write flows as \[\[flow\]\]"):
        neighbour(inline)


def test_names_of_dots_that_lie_together_cover_neither_each_other_nor_a_dot_nor_a_bar() -> None:
    frame, dot = Box(0, 0, 600, 400), 4.0
    points = [(300.0 + 3 * (n % 3), 200.0 + 2 * n) for n in range(9)] + [(580.0, 390.0), (60.0, 350.0)]
    sizes = [(90.0, 11.0)] * len(points)
    bars = [Box(x - 40, y - 1, x + 40, y + 1) for x, y in points[:9]]
    boxes = placed(points, sizes, frame, dot, bars)
    assert all(frame.holds(box) for box in boxes)
    for number, box in enumerate(boxes):
        assert not any(box.meets(other) for other in boxes[number + 1 :])
        assert not any(box.meets(bar) for bar in bars)
        assert not any(box.left < x < box.right and box.low < y < box.high for x, y in points)
    # One that stands alone has its name beside it, to the right.
    assert boxes[10] == Box(68, 344.5, 158, 355.5)


def test_names_at_the_ends_of_curves_keep_their_order_and_a_line_s_distance() -> None:
    wanted = [0.5, 0.51, 0.5, 0.98, 1.0, 0.99, 0.1, 0.0]
    places = apart(wanted, 0.08)
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    gaps = [places[b] - places[a] for a, b in zip(order, order[1:], strict=False)]
    assert min(gaps) >= 0.08 - 1e-9 and min(places) >= 0 and max(places) <= 1
    assert places[6] == pytest.approx(0.1, abs=0.05), "one that stands alone stays where its curve ends"
    assert apart([0.3], 0.1) == [0.3] and apart([], 0.1) == []

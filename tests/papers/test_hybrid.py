"""The paper hybrid: cells as in its Table 1, and scenarios A, B and D on their smallest path."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.figure import Figure

import elephan
from elephan.api import load
from elephan.papers.catalogue import find, folder
from elephan.papers.verdict import judge
from elephan.record import Record
from elephan.report.draw import Ink
from evaluation.papers.hybrid import drops, managed, ns2, reordering
from evaluation.papers.hybrid.cell import RFC_7323_BYTES, Cell
from evaluation.papers.hybrid.controls import HEADS, TABLE, points, read_table
from evaluation.papers.hybrid.controls import cell_of as cell_of_record
from evaluation.papers.hybrid.phases import Case
from evaluation.papers.hybrid.plots import grid
from evaluation.papers.hybrid.variants import of_all_cells, ratios
from evaluation.performance.engines import Unavailable, ns2_version

SMALLEST = {
    "sweep.link.r1-r2.delay": '["2.5ms"]',
    "sweep.link.r2-r3.delay": '["2.5ms"]',
    "sweep.link.light.delay": '["1ms"]',
    "sweep.event.0.when.reaches": '["95Mbit/s"]',
    "sweep.event.0.when.over": '["100ms"]',
    "sweep.run.duration": '["14s"]',
}


def changes(*limited: str) -> dict[str, str]:
    """Return the changes that leave the cell of 100 Mbit/s and 10 ms; `limited` links are its bottleneck."""
    links = ("sender-r1", "r1-r2", "r2-r3", "light", "r3-receiver")
    rates = {
        f"sweep.link.{link}.bandwidth": '["100Mbit/s"]' if link in limited else '["622.08Mbit/s"]' for link in links
    }
    return SMALLEST | rates


def cell_of(file: str, set_: dict[str, str], place: Path) -> Cell:
    results = elephan.run(folder() / "hybrid" / file, set_, store=str(place / "store.sqlite"))
    (record,) = results
    series = results.series_of(record)
    assert series is not None
    from elephan.report.moves import moves_of

    moves = moves_of(record, series)
    return Cell(record, series, moves[0] if moves else None)


@pytest.mark.parametrize("file", ["a.toml", "b.toml", "c1.toml", "c2.toml", "d.toml"])
def test_the_grid_is_that_of_table_1(file: str) -> None:
    points = load(folder() / "hybrid" / file).points()
    assert len(points) == 9
    for place, point in enumerate(points):
        spec = point.to_spec()
        rtt_s = (0.01, 0.1, 1.0)[place % 3]
        low, high = ((10**8, 622_080_000), (10**9, 2_488_000_000), (10**10, 39_813_000_000))[place // 3]
        flow, links = spec["flows"][0], spec["links"]
        action, *others = (event["action"] for event in spec["events"])
        delay_s = [sum(links[link]["delay_ns"] for link in way) / 1e9 for way in (flow["route"], action["route"])]
        assert delay_s[0] == pytest.approx(rtt_s / 2)
        assert delay_s[1] + rtt_s / 2 == pytest.approx(0.6 * rtt_s)
        assert action["return_route"] is None, "data moves, ACKs stay"
        rates = {link["name"]: link["rate_bps"] for link in links}
        for other in others:
            # In D the sender's line may be slow until the move.
            assert spec["events"][1]["when"] == spec["events"][0]["when"]
            rates[links[other["link"]]["name"]] = rates["sender-r1.reverse"] = other["rate_bps"]
        limited = {"a.toml": [], "b.toml": ["sender-r1"], "c1.toml": ["r1-r2", "r2-r3", "light"]}
        limited |= {"c2.toml": ["r1-r2", "r2-r3"], "d.toml": ["r3-receiver"]}
        for name, rate in rates.items():
            assert rate == (low if name.split(".")[0] in limited[file] else high), name
        window = low * rtt_s / 8 if file == "a.toml" else 1.16e9
        assert flow["transport"]["window_bytes"] == pytest.approx(window)
        r3 = next(link for link in links if link["name"] == "r3-receiver.forward")
        assert r3["queue"]["limit_packets"] == 500


def test_the_windows_bound_is_decided_by_where_a_window_is_needed() -> None:
    links = [{"delay_ns": delay, "rate_bps": 10**10} for delay in (5 * 10**8, 10**8, 5 * 10**8)]
    transport = {"window_bytes": 1_160_000_000, "timestamps": False, "mtu_bytes": 1500}
    spec = {"links": links, "flows": [{"route": [0], "return_route": [2], "transport": transport}]}
    record = Record.model_construct(spec=spec)

    class Moved:
        rtt_after_s = 0.6
        route_after = (1,)

    cell = Cell(record, None, Moved())  # type: ignore[arg-type]
    # 10 Gbit/s x 1 s are 1.22 GB of payload before the move, 0.73 GB after it.
    assert cell.bound_decides
    transport["window_bytes"] = RFC_7323_BYTES
    assert not cell.bound_decides


def test_a_window_limited_flow_is_faster_by_the_shorter_round_trip_and_loses_nothing(tmp_path: Path) -> None:
    cell = cell_of("a.toml", changes() | {"sweep.flow.window": '["0.125MB"]'}, tmp_path)
    move = cell.known
    assert cell.record.metrics["dropped_packets"] == 0
    assert cell.new_limit_bps == pytest.approx(1e8 / 0.6)
    means, _ = move.seconds()
    assert means[-1] / move.before_bps == pytest.approx(1 / 0.6, rel=0.03)


def test_a_picture_shows_the_whole_curve(tmp_path: Path) -> None:
    # Windows come as trains: means over 1 s swing by more than the 15 % that a picture leaves above the limit.
    long = {"link.r1-r2.delay": "250ms", "link.r2-r3.delay": "250ms", "link.light.delay": "100ms"}
    long |= {"run.duration": "270s", "event.0.when.over": "1s"}
    set_ = changes() | {f"sweep.{key}": f'["{value}"]' for key, value in long.items()}
    cell = cell_of("a.toml", set_ | {"sweep.flow.window": '["12.5MB"]'}, tmp_path)
    drawing = Figure()
    grid(drawing, Ink(themed=False), [cell] * 9)
    axes = drawing.axes[0]
    drawn = max(float(max(line.get_ydata())) for line in axes.lines[:1])
    assert 1.15 * cell.new_limit_bps / 1e9 < drawn < axes.get_ylim()[1] <= 2 * cell.new_limit_bps / 1e9


def test_where_the_senders_link_is_the_limit_packets_come_out_of_order_and_none_is_lost(tmp_path: Path) -> None:
    cell = cell_of("b.toml", changes("sender-r1"), tmp_path)
    move = cell.known
    assert cell.record.metrics["dropped_packets"] == 0
    # 4 ms at 100 Mbit/s are 33 packets: so many old ones come after as many new ones, each of which is a duplicate ACK.
    assert 30 <= (move.duplicate_acks or 0) <= 150
    assert move.before_bps == pytest.approx(1e8 * cell.payload_share, rel=0.01)
    assert move.dip < 0.2 and cell.back_s is not None


@pytest.mark.parametrize(("answer", "least_dip", "most_dip"), [("era", 0.0, 0.3), ("never", 0.8, 1.0)])
def test_where_the_receivers_link_is_the_limit_r3_drops_what_two_ways_bring(
    answer: str, least_dip: float, most_dip: float, tmp_path: Path
) -> None:
    """1 Gbit/s, 100 ms: the paths differ by 3333 packets, of which r3 has room for 500 at most.

    A sender that finds the loss of a retransmission goes on; one that waits for its timer falls by over 80 %.
    """
    rates = {key: value.replace("622.08Mbit/s", "2.488Gbit/s").replace('"100Mbit/s', '"1Gbit/s')
             for key, value in changes("r3-receiver").items()}  # fmt: skip
    set_ = rates | {
        "sweep.link.r1-r2.delay": '["25ms"]',
        "sweep.link.r2-r3.delay": '["25ms"]',
        "sweep.link.light.delay": '["10ms"]',
        "sweep.event.0.when.reaches": '["950Mbit/s"]',
        "sweep.event.1.bandwidth": '["2.488Gbit/s"]',
        "sweep.event.1.when.reaches": '["950Mbit/s"]',
        "sweep.event.1.when.over": '["100ms"]',
        "sweep.run.duration": '["34s"]',
        "sweep.measure.series": '["100ms"]',
        "flow.lost_retransmissions": answer,
    }
    cell = cell_of("d.toml", set_, tmp_path)
    assert cell.limiting_bps == 10**9
    last = cell.known.route_after[-1]
    assert [link["dropped_packets"] > 0 for link in cell.record.links] == [
        link == last for link in range(len(cell.record.links))
    ]
    assert cell.known.dropped_early >= 3333 - 500
    assert least_dip < cell.known.dip < most_dip


def test_with_500_packets_at_the_sender_the_loss_of_a_retransmission_decides_scenario_b(tmp_path: Path) -> None:
    case = Case("b", 1_000, 100, 1500, "500", 60)
    found = {}
    for answer in ("era", "never"):
        changes = case.changes(answer, 27.4, 33.0)
        results = elephan.run(folder() / "hybrid" / "controls.toml", changes, store=str(tmp_path / "store.sqlite"))
        found[answer] = cell_of_record(results[0], results.series_of(results[0])).known
    # The sender's own queue drops; Linux 2.6 finds the retransmissions that it drops too, and needs no time-out.
    assert all(move.dropped_early > 3333 for move in found.values())
    assert found["era"].dip < 0.35 < 0.7 < found["never"].dip


@pytest.mark.parametrize("scenario", ["a", "b", "c1", "c2", "d"])
def test_other_controls_run_in_the_cells_of_table_1(scenario: str) -> None:
    cells = [point for point in points() if point.scenario == scenario and point.queue == 250]
    assert len(cells) == 9 * 4
    point = next(item for item in cells if (item.rate_mbps, item.rtt_ms, item.control) == (1_000, 100, "vegas"))
    spec = load(folder() / "hybrid" / "controls.toml", point.changes()).points()[0].to_spec()
    grid_spec = load(folder() / "hybrid" / f"{scenario}.toml").points()[4].to_spec()
    for ours, theirs in zip(spec["links"], grid_spec["links"], strict=True):
        if not (scenario == "d" and ours["name"].startswith("sender-r1")):
            assert (ours["rate_bps"], ours["delay_ns"]) == (theirs["rate_bps"], theirs["delay_ns"]), ours["name"]
    transport = spec["flows"][0]["transport"]
    assert transport["window_bytes"] == grid_spec["flows"][0]["transport"]["window_bytes"]
    assert transport["initial_cwnd"] == transport["initial_ssthresh"] == 8333 + (250 if scenario != "a" else 0)


def line(control: str, back: str, rtt_ms: str = "100") -> list[str]:
    known = {"scenario": "d", "rate_mbps": "1000", "rtt_ms": rtt_ms, "control": control, "queue_packets": "250"}
    known |= {"back_s": back, "followed_s": "300", "duplicate_acks": "9", "dropped_wake": "0"}
    known["before_mbps"] = "973.3"
    return [known.get(head, "") for head in HEADS]


def test_ratios_take_a_flow_that_is_not_back_with_the_time_it_was_followed() -> None:
    lines = [line("compound", "3.0"), line("reno", "150.0"), line("vegas", ""), line("cubic", "200.0")]
    key = ("d", "1000", "100", "250")
    assert ratios(lines, "reno", "compound") == {key: 50.0}
    assert ratios(lines, "vegas", "compound") == {key: 100.0}
    # 300 s or more beside 200 s: far or not is open.
    assert ratios(lines, "vegas", "cubic") == {}
    assert ratios(lines, "compound", "vegas") == {key: 0.01}
    assert ratios([line("reno", ""), line("cubic", "")], "reno", "cubic") == {}
    in_order = [[{"9": "0"}.get(cell, cell) for cell in row] for row in (line("reno", "0.4"), line("cubic", "6.9"))]
    assert ratios(in_order, "reno", "cubic") == {}
    slow = [cell if cell != "973.3" else "463.0" for cell in line("cubic", "2.0")]
    assert ratios([line("reno", "150.0"), slow], "reno", "cubic") == {}


def test_words_on_controls_are_told_of_each_cell_that_is_decided() -> None:
    lines = [line("compound", "3.0"), line("reno", "150.0"), line("vegas", "4.0"), line("cubic", "4.0")]
    unhurt = [line(control, "0.0", "10") for control in ("compound", "reno", "vegas", "cubic")]
    found = of_all_cells(lines + unhurt)
    assert found["compound_first"] == 1
    assert found["compound_similar"] == found["reno_far"] == [1]
    assert found["vegas_far"] == [0]
    slow = [line("compound", "30.0", "1000"), *(line(name, "10.0", "1000") for name in ("cubic", "reno", "vegas"))]
    assert of_all_cells(lines + slow) == {
        "none": 0, "compound_first": 1, "compound_similar": [1, 0], "reno_far": [1, 0], "vegas_far": [0, 0]
    }  # fmt: skip


def test_statements_on_phases_and_cells_are_counted(tmp_path: Path) -> None:
    """One move in the smallest cell stands for ten: it dips by nothing."""
    cell = cell_of("b.toml", changes("sender-r1") | {"sweep.run.duration": '["8s"]'}, tmp_path)
    found = judge(find("hybrid").claim("hybrid.B.500"), reordering._of_moves([cell, cell]))
    assert [region.said for region in found.regions] == ["in all of 2 set-ups"]
    found = judge(find("hybrid").claim("hybrid.D.resending"), drops._measured([cell, cell], [cell]))
    assert [region.said for region in found.regions] == ["in none of 2 set-ups"] * 2
    times = {"compound_back": 1.0, "cubic_back_twice": 2.0, "reno_back": 3.0, "vegas_back": 3.0}
    found = judge(find("hybrid").claim("hybrid.other"), {**times, **of_all_cells(read_table(TABLE))})
    assert len(found.regions) == 3 and all(region.tried > 10 for region in found.regions)


@pytest.mark.parametrize(
    ("set_", "taken_back"),
    [
        ({"flow.undo": "true", "flow.timestamps": "true"}, True),
        ({"flow.undo": "false", "flow.timestamps": "true"}, False),
    ],
)
def test_undo_takes_back_what_the_move_made_the_sender_believe(
    set_: dict[str, str], taken_back: bool, tmp_path: Path
) -> None:
    cell = cell_of("b.toml", changes("sender-r1") | set_, tmp_path)
    assert (cell.record.metrics["spurious_recoveries"] > 0) is taken_back
    assert cell.record.metrics["fast_retransmits"] == 1


def test_every_scenario_of_the_grid_has_a_claim() -> None:
    files = {runs.file for claim in find("hybrid").claims for runs in claim.runs}
    assert {f"{key}.toml" for key in ("a", "b", "c1", "c2", "d")} <= files


def test_the_manager_moves_the_elephants_and_the_ip_level_is_spared(tmp_path: Path) -> None:
    short = {"run.repetitions": 1, "run.duration": "32s", "flow.backup.stop": "20s"}
    (record,) = elephan.run(folder() / "hybrid" / managed.FILE, short, store=str(tmp_path / "store.sqlite"))
    measured = managed.measured_of(record)
    assert measured["elephants"] == measured["elephants_moved"] == 2
    assert measured["load_carrying"] < measured["load_idle"]
    # The backup had the core's 100 Mbit/s at most, with others beside it.
    assert measured["backup_before"] < 100 < 300 < measured["backup_after"]
    assert measured["wasted"] < measured["moves"]


def test_ns2_runs_a_cell_and_its_rows_are_read() -> None:
    """Scenario B at 100 Mbit/s and 10 ms: 33 packets come before their turn, and 33 copies follow."""
    try:
        ns2_version()
    except Unavailable as error:
        pytest.skip(str(error))
    small = {"beta": "1e8", "limit_bps": "1e8", "rtt_s": "0.01", "initial_ssthresh": "100", "seconds": "1.2"}
    found = dict(zip(ns2.HEADS, ns2.measure(ns2.Run("b", ns2.B | small)), strict=True))
    assert 60 <= int(found["duplicate_acks"]) <= 70 and found["dropped_sender"] == found["dropped_r3"] == "0"
    assert 90 < float(found["least_second_mbps"]) <= float(found["first_second_mbps"]) < 100


def test_ns2s_state_is_that_of_the_second_approach() -> None:
    queue, dropped = [500, 350, 500, 20, 340, 350], [9, 9, 12, 12, 12, 12]
    samples = [
        {"now_s": 30.0 + 2 * place, "queue": packets, "dropped": lost}
        for place, (packets, lost) in enumerate(zip(queue, dropped, strict=True))
    ]
    assert ns2.state(samples) == ["34.0", "40.0", "350"]
    keys = [tuple(run.key) for run in ns2.runs()]
    assert len(set(keys)) == len(keys) == 17

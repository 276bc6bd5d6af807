"""The goals of the mitigations, in two of the table's cells, and that a cell's mitigation is in its run."""

from __future__ import annotations

import pytest

from evaluation.mitigation import page
from evaluation.mitigation.cells import MITIGATIONS, WRONG, Cell
from evaluation.mitigation.measuring import measured
from evaluation.mitigation.page import dip
from evaluation.runner import Runner

RUNNER = Runner(None)


def test_the_page_says_what_the_table_says() -> None:
    assert page.FILE.read_text() == page.text(page.committed()), "python -m evaluation.mitigation --write-only"


@pytest.mark.parametrize("mitigation", [*MITIGATIONS, *WRONG])
def test_a_cells_mitigation_is_in_its_specification(mitigation: str) -> None:
    (action,) = (
        event["action"]
        for event in Cell("B", "100M", 10, 4, mitigation).job().spec["events"]
        if event["action"]["kind"] == "move"
    )
    assert ("mitigation" in action) is (mitigation != "none")


def test_where_nothing_moves_nothing_is_lost_or_out_of_order() -> None:
    for numbers in measured(RUNNER, [Cell(scenario, "100M", 100, 1, "stay") for scenario in ("B", "D")]):
        assert (numbers["dropped_after"], numbers["duplicate_acks"]) == (0, 0)
        assert abs(dip(numbers)) < 0.1


def test_a_hold_takes_reordering_away_where_the_senders_line_is_the_limit() -> None:
    plain, held = measured(RUNNER, [Cell("B", "100M", 100, 1, mitigation) for mitigation in ("none", "hold_buffer")])
    # 40 ms at 100 Mbit/s are 333 packets of 1500 B; what is sent again takes 4 % of a second.
    assert plain["duplicate_acks"] == 333 and dip(plain) == pytest.approx(4, abs=0.5)
    assert held["duplicate_acks"] == held["retransmitted"] == held["dropped_after"] == 0
    assert dip(held) < 1
    assert held["held_bytes"] == pytest.approx(333 * 1500, rel=0.02)


def test_a_reduced_window_takes_the_loss_away_where_the_receivers_line_is_the_limit() -> None:
    cells = [Cell("D", "1G", 100, 1, mitigation) for mitigation in ("none", "hold+reduction")]
    plain, reduced = measured(RUNNER, cells)
    assert plain["dropped_soon"] > 2000 and dip(plain) > 80
    assert reduced["dropped_after"] == reduced["duplicate_acks"] == 0
    assert dip(reduced) < 5


@pytest.mark.parametrize("flows", [1, 16])
def test_a_paced_hold_takes_the_loss_away_whatever_the_number_of_flows(flows: int) -> None:
    (numbers,) = measured(RUNNER, [Cell("D", "1G", 100, flows, "paced hold")])
    assert numbers["dropped_after"] == numbers["duplicate_acks"] == 0
    assert dip(numbers) < 0.1
    # 40 ms at 1 Gbit/s are 5 MB, and no window was cut.
    assert numbers["held_bytes"] == pytest.approx(5e6, rel=0.01)
    assert numbers["held_s"] == pytest.approx(0.04, rel=0.01)

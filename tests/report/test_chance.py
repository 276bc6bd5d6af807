"""Notes on what numbers hang on."""

from collections.abc import Callable
from typing import Any

from elephan.record import Record
from elephan.report.chance import FEW, few_losses

Make = Callable[..., Record]

AT_RANDOM = {"kind": "independent", "probability_e12": 10**6}


def record_of(make_record: Make, lost: int, loss: dict[str, Any] | None = None) -> Record:
    record = make_record()
    for flow in record.flows:
        flow["dropped_packets"] = lost
    record.spec["links"][0]["loss"] = loss or {"kind": "none"}
    return record


def test_few_random_losses_are_not_significant(make_record: Make) -> None:
    assert few_losses([record_of(make_record, 12, AT_RANDOM)]) == (
        "only 12 losses: too few to be significant; use repetitions (run.repetitions)"
    )
    assert (few_losses([record_of(make_record, 1, AT_RANDOM)]) or "").startswith("only 1 loss: ")
    assert few_losses([record_of(make_record, FEW, AT_RANDOM)]) is None


def test_losses_of_all_repetitions_count_together(make_record: Make) -> None:
    assert few_losses([record_of(make_record, 10, AT_RANDOM)] * 3) is None
    assert few_losses([record_of(make_record, 4, AT_RANDOM)] * 3) == (
        "only 12 losses in 3 repetitions: too few to be significant; use more repetitions"
    )


def test_no_loss_is_worth_a_note_only_where_the_line_loses_at_random(make_record: Make) -> None:
    assert few_losses([record_of(make_record, 0)]) is None
    note = few_losses([record_of(make_record, 0, AT_RANDOM)])
    assert note is not None and note.startswith("no loss on a line that loses packets at random: ")


def test_repetitions_are_not_advised_where_nothing_is_drawn(make_record: Make) -> None:
    note = few_losses([record_of(make_record, 3)])
    assert note == "only 3 losses: the numbers hang on where the run ends; a longer run (run.duration) says more"


def test_a_random_loss_that_an_event_brings_counts(make_record: Make) -> None:
    record = record_of(make_record, 3)
    record.spec["events"] = [{"action": {"kind": "loss", "link": 0, "loss": AT_RANDOM}}]
    assert "too few to be significant" in (few_losses([record]) or "")


def test_where_flows_do_not_know_their_losses_those_of_the_links_count(make_record: Make) -> None:
    record = record_of(make_record, 0, AT_RANDOM)
    for flow in record.flows:
        del flow["dropped_packets"]
    assert few_losses([record]) is None, "its two links dropped 97 each"

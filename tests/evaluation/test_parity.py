"""The table of docs/results/parity.md, of comparisons that are given."""

from __future__ import annotations

from elephan.congestion_control import congestion_controls
from elephan.parity.windows import Windows
from evaluation.fidelity import parity


def windows(simulated: tuple[int, ...], recorded: tuple[int, ...], median: float = 0.01) -> Windows:
    return Windows(simulated, recorded, median, 2 * median)


def test_controls_that_react_to_more_than_loss_are_there() -> None:
    assert set(parity.BY_DELAY_OR_RATE) < {cc.name for cc in congestion_controls()}


def test_equal_runs_stand_once_and_others_with_their_number() -> None:
    same, other = windows((104, 57), (104, 57)), windows((104, 57), (104, 55), 0.03)
    text = parity.text({"reno": [same, other, same], "vegas": [other, other, other]})
    assert "| reno | 104, 57 | as simulated (2); 104, 55 (1) | 1.0 to 3.0 % | 2.0 to 6.0 % |" in text
    assert "| vegas | 104, 57 | 104, 55 | 3.0 % | 6.0 % |" in text
    assert "packets 200, 1,500 and 4,000 over" in " ".join(text.split())


def test_the_verdict_is_of_the_controls_that_react_to_loss_alone() -> None:
    same, other = windows((104, 57), (104, 57)), windows((104, 57), (104, 55))
    more = windows((104,), (104, 57))
    assert parity.verdict({"reno": [same, same], "vegas": [other, other]}).endswith(
        "In all 2 runs of these every threshold is the simulator's."
    )
    text = parity.verdict({"reno": [same, other], "bic": [more, same]})
    assert "In 2 of 4 runs of these every threshold is the simulator's; apart: " in text
    assert text.endswith("apart: reno by 2 segments, bic has 2 instead of 1.")

"""The page says of a claim's runs how many draws of chance they are."""

from __future__ import annotations

import pytest

import elephan
from elephan.api import Overrides, load
from elephan.papers.catalogue import folder
from elephan.papers.chance import is_random


@pytest.mark.parametrize(
    ("file", "changes", "found"),
    [
        ("hybrid/b.toml", {}, False),
        ("hybrid/udp.toml", {}, False),
        ("hybrid/manager.toml", {}, True),
        ("dr/window.toml", {}, False),
        ("dr/window.toml", {"path.loss": 1e-3}, True),
        ("dr/window.toml", {"path.jitter": "1ms"}, True),
        ("dr/window.toml", {"flow.send_overhead": "1ms"}, True),
        ("dr/operations.toml", {}, True),
    ],
)
def test_what_draws_a_random_number_is_random(file: str, changes: Overrides, found: bool) -> None:
    assert is_random(load(folder() / file, changes).points()[0].to_spec()) is found


def test_runs_without_chance_are_alike_whatever_the_seed() -> None:
    first, second = (elephan.run(folder() / "dr" / "window.toml", seed=seed, store="none") for seed in (1, 2))
    assert [record.metrics["goodput_bps"] for record in first] == [record.metrics["goodput_bps"] for record in second]

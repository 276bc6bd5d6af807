"""The core takes every example's specification, and runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from elephan.core import native
from elephan.scenario import load

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.toml"))


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_the_first_point_of_every_example_runs(file: Path) -> None:
    point = load(file, ["measure.series=false"]).points()[0]
    result = native.simulate(json.dumps(point.to_spec()), None, 1.0)
    # Reads of a session go the other way.
    assert result.metrics["goodput_bps"] + result.metrics.get("reverse_goodput_bps", 0) > 1e6
    assert len(result.flows) == len(point.to_spec()["flows"])

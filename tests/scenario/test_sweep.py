"""Points of a scenario: sweeps, repetitions, overrides, flat parameters."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from elephan.scenario import ScenarioError, expand
from elephan.scenario.combinations import LOOKED_AT_MAX, Run, Runs
from elephan.scenario.document import Document
from elephan.scenario.problem import Problem
from elephan.scenario.sweep import Axis, parse_axes
from tests.scenario.conftest import BASE, Load


def values(**table: object) -> tuple[object, ...]:
    """Values of one axis."""
    axes, _ = parse_axes({"x.y": table})
    return tuple(axes[0].values)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({"from": 1, "to": 4, "step": 1}, (1, 2, 3, 4)),
        ({"from": 0.1, "to": 0.4, "step": 0.1}, (0.1, 0.2, 0.3, 0.4)),
        ({"from": 4, "to": 1, "step": -1}, (4, 3, 2, 1)),
        ({"from": 1, "to": 4.5, "step": 2}, (1, 3)),
        ({"from": 1e-6, "to": 1e-3, "factor": 10}, (1e-6, 1e-5, 1e-4, 1e-3)),
        ({"from": 16, "to": 1, "factor": 0.25}, (16, 4, 1)),
        ({"from": 0, "to": 1, "count": 5}, (0, 0.25, 0.5, 0.75, 1)),
        ({"from": 1, "to": 1000, "count": 4, "spacing": "log"}, (1, 10, 100, 1000)),
        ({"from": "10ms", "to": "50ms", "step": "20ms"}, ("10ms", "30ms", "50ms")),
        ({"from": "10 %", "to": "30 %", "step": "10 %"}, ("10%", "20%", "30%")),
        ({"from": "0.5ms", "to": "1.5ms", "count": 3}, ("0.5ms", "1ms", "1.5ms")),
    ],
)
def test_ranges_are_exact(table: dict[str, object], expected: tuple[object, ...]) -> None:
    assert values(**table) == expected


def test_a_grid_runs_its_last_axis_fastest_and_a_zip_runs_in_step() -> None:
    table = {"a": {"x": [1, 2], "y": ["p", "q"]}}
    axes, mode = parse_axes(table)
    assert [axis.key for axis in axes] == ["a.x", "a.y"]
    runs = Runs(axes, mode, [1], None)
    assert [tuple(runs.values(n).values()) for n in range(len(runs))] == [(1, "p"), (1, "q"), (2, "p"), (2, "q")]
    axes, mode = parse_axes({"mode": "zip", **table})
    runs = Runs(axes, mode, [1], None)
    assert [tuple(runs.values(n).values()) for n in range(len(runs))] == [(1, "p"), (2, "q")]


def test_axes_of_a_zip_are_equally_long() -> None:
    with pytest.raises(Problem, match='2 values, as "a.x", because mode is "zip"'):
        parse_axes({"mode": "zip", "a.x": [1, 2], "a.y": [1, 2, 3]})


LARGE = """
[sweep]
"path.loss" = { from = 0.0001, to = 0.1, count = 1000 }
"path.rtt" = { from = "1ms", to = "1000ms", step = "1ms" }
"""


def counted(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Get an entry for each validation of a document that follows."""
    made: list[None] = []
    whole = Document.model_validate

    def counting(*given: Any, **options: Any) -> Any:
        made.append(None)
        return whole(*given, **options)

    monkeypatch.setattr(Document, "model_validate", counting)
    return made


def test_a_million_points_are_counted_and_not_made(scenario: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each was validated, twice, before the first output."""
    made = counted(monkeypatch)
    loaded = scenario(BASE + LARGE, "run.repetitions=1")
    assert len(loaded.points()) == 1_000_000
    assert LOOKED_AT_MAX // 2 < len(made) == len(loaded.looked_at) <= LOOKED_AT_MAX
    assert {0, 999_999} < set(loaded.looked_at)
    assert loaded.points()[-1].swept == {"path.loss": 0.1, "path.rtt": "1000ms"}
    assert len(made) == len(loaded.looked_at) + 1


def test_memory_does_not_grow_with_points_that_nobody_asked_for(scenario: Load) -> None:
    def peak(text: str) -> int:
        tracemalloc.start()
        loaded = scenario(BASE + text)
        assert all(point.seed for point in loaded.points()[:3])
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    small = peak(LARGE.replace("1000ms", "2ms"))
    assert peak(LARGE) < 2 * small + 1_000_000


def test_every_value_of_a_very_large_sweep_that_is_looked_at_is_validated(scenario: Load) -> None:
    with pytest.raises(ScenarioError, match=r"path.loss = 1\.\d+: a probability"):
        scenario(BASE + LARGE.replace("to = 0.1,", "to = 2,"))


def test_more_runs_than_allowed_are_refused_and_one_key_allows_them(scenario: Load) -> None:
    with pytest.raises(ScenarioError, match=r"at most 1000000 runs, not 2000000; max_runs in \[sweep\] allows more"):
        scenario(BASE + LARGE, "run.repetitions=2")
    loaded = scenario(BASE + LARGE, "run.repetitions=2", "sweep.max_runs=2_000_000")
    assert len(loaded.points()) == 2_000_000
    assert loaded.swept == ["path.loss", "path.rtt"]
    with pytest.raises(ScenarioError, match="max_runs"):
        scenario(BASE + LARGE, 'sweep.max_runs="many"')


def test_repetitions_can_be_swept(scenario: Load) -> None:
    loaded = scenario(BASE, "sweep.path.loss=[0, 0.1]", "sweep.run.repetitions=[1, 3]", "sweep.run.seed=[4, 5]")
    found = [(*point.swept.values(), point.repetition, point.seed) for point in loaded.points()]
    assert len(loaded.points()) == len(found) == 16
    assert found == [
        (loss, repetitions, seed, repetition, seed + repetition)
        for loss in (0, 0.1)
        for repetitions in (1, 3)
        for seed in (4, 5)
        for repetition in range(repetitions)
    ]
    assert [point.index for point in loaded.points()] == list(range(16))


def test_a_sample_has_both_ends_and_values_of_each_axis() -> None:
    axes = [Axis("a", range(100), ()), Axis("b", range(200), ()), Axis("c", range(5), ())]
    runs = Runs(axes, "grid", [1], None)
    looked = runs.sample(700)
    assert len(looked) <= 700 and looked[0] == 0 and looked[-1] == len(runs) - 1
    assert {runs.values(one)["a"] for one in looked} == set(range(100))
    assert {runs.values(one)["c"] for one in looked} == set(range(5))
    assert runs.run(99_999) == Run(99_999, 0)
    assert runs.sample(10**6) == list(range(100_000))
    assert Runs([Axis("a", range(10**6), ())], "zip", [1], None).sample(3) == [0, 499_999, 999_999]


def test_one_point_without_a_sweep(scenario: Load) -> None:
    (point,) = expand(scenario())
    assert (point.index, point.repetition, point.seed, dict(point.swept)) == (0, 0, 1, {})
    assert point.parameters == {"run.duration": "10s", "path.bandwidth": "1Gbit/s", "path.rtt": "67ms"}


def test_repetitions_stand_together_and_have_seeds_in_a_row(scenario: Load) -> None:
    loaded = scenario(BASE, "run.repetitions=3", "run.seed=7", "sweep.path.loss=[0, 0.1]")
    assert [(p.index, p.swept["path.loss"], p.repetition, p.seed) for p in loaded.points()] == [
        (0, 0, 0, 7),
        (1, 0, 1, 8),
        (2, 0, 2, 9),
        (3, 0.1, 0, 7),
        (4, 0.1, 1, 8),
        (5, 0.1, 2, 9),
    ]


SWEEP = (
    BASE
    + """
[[flow]]
name = "other"

[sweep]
"flow.congestion_control" = ["reno", { name = "storage_friendly", reduction = "1/8" }]
path.loss = [0, 1e-4]
"""
)


def test_swept_keys_go_where_they_say(scenario: Load) -> None:
    loaded = scenario(SWEEP)
    assert loaded.swept == ["flow.congestion_control", "path.loss"]
    last = loaded.points()[-1]
    spec = last.to_spec()
    assert [flow["transport"]["congestion_control"] for flow in spec["flows"]] == [
        "storage_friendly",
        "storage_friendly",
    ]
    assert spec["links"][0]["loss"]["probability_e12"] == 10**8


def test_parameters_are_flat_swept_first_and_as_written(scenario: Load) -> None:
    last = scenario(SWEEP, "flow.other.window=8MB").points()[-1]
    assert list(last.parameters.items()) == [
        ("flow.congestion_control", "storage_friendly(reduction=1/8)"),
        ("path.loss", 1e-4),
        ("run.duration", "10s"),
        ("path.bandwidth", "1Gbit/s"),
        ("path.rtt", "67ms"),
        ("flow.other.window", "8MB"),
    ]


def test_parts_of_a_short_form_can_be_swept(scenario: Load) -> None:
    text = (
        BASE + 'congestion_control = "storage_friendly"\n[sweep]\nflow.congestion_control.reduction = ["1/2", "1/8"]\n'
    )
    half, eighth = (p.to_spec()["flows"][0]["transport"]["parameters"]["reduction"] for p in scenario(text).points())
    assert half == 4 * eighth


def test_a_part_of_a_default_can_be_set(scenario: Load) -> None:
    text = BASE + '[defaults]\ncongestion_control = "storage_friendly"\n'
    (point,) = scenario(text, "flow.congestion_control.reduction=1/4").points()
    transport = point.to_spec()["flows"][0]["transport"]
    assert transport["congestion_control"] == "storage_friendly"
    assert transport["parameters"].keys() == {"reduction"}


@pytest.mark.parametrize("key", ["flow.window", "flow.*.window", "flow.backup.window", "flow.0.window"])
def test_ways_to_name_a_flow(scenario: Load, key: str) -> None:
    (point,) = scenario(BASE, f"{key}=8MB").points()
    assert point.to_spec()["flows"][0]["transport"]["window_bytes"] == 8_000_000


def test_an_override_of_a_swept_key_ends_its_sweep(scenario: Load) -> None:
    loaded = scenario(SWEEP, "flow.congestion_control=cubic")
    assert loaded.swept == ["path.loss"]
    assert loaded.overrides == ("flow.congestion_control=cubic",)
    assert {point.to_spec()["flows"][1]["transport"]["congestion_control"] for point in loaded.points()} == {"cubic"}
    assert scenario(SWEEP, "path.loss=0").swept == ["flow.congestion_control"], "nested or quoted"


def test_an_override_can_sweep(scenario: Load) -> None:
    loaded = scenario(SWEEP, "sweep.path.loss=[0.1, 0.2, 0.3]", "sweep.run.seed=[1, 2]")
    assert loaded.swept == ["flow.congestion_control", "path.loss", "run.seed"]
    assert len(loaded.points()) == 12


def test_values_on_the_command_line_need_no_quotes(scenario: Load) -> None:
    (point,) = scenario(
        BASE, "path.bandwidth=100Mbit/s", "flow.congestion_control=reno", "flow.ecn=true", "path.loss=1e-3"
    ).points()
    assert point.parameters["path.bandwidth"] == "100Mbit/s"
    assert point.parameters["flow.backup.ecn"] is True
    assert point.parameters["path.loss"] == 1e-3


def test_names(scenario: Load) -> None:
    loaded = scenario()
    assert (loaded.name, loaded.title, loaded.description) == ("demo", "demo", "")
    loaded = scenario('name = "oltp"\ntitle = "A title"\ndescription = "Why"\n' + BASE)
    assert (loaded.name, loaded.title, loaded.description) == ("oltp", "A title", "Why")


def test_an_override_by_another_name_ends_a_sweep_too(scenario: Load) -> None:
    text = BASE + '[sweep]\n"flow.backup.congestion_control" = ["reno", "cubic"]\n'
    assert scenario(text, "flow.congestion_control=cubic").swept == []
    text = (
        BASE
        + '[sweep]\n"flow.congestion_control.reduction" = ["1/2", "1/8"]\n'
        + '[defaults]\ncongestion_control = "storage_friendly"\n'
    )
    assert scenario(text, "flow.congestion_control=storage_friendly").swept == []


@pytest.mark.parametrize(
    ("sweep", "override", "message"),
    [
        (
            '"flow.congestion_control" = ["reno", "cubic"]',
            "flow.congestion_control.beta=0.7",
            "flow.congestion_control.beta = 0.7: a key that is not swept; "
            'the sweep of "flow.congestion_control" would undo it',
        ),
        (
            '"flow.congestion_control.beta" = [0.7, 0.8]\n"flow.congestion_control" = ["reno", "cubic"]',
            "run.seed=1",
            'sweep.flow.congestion_control = ["reno", "cubic"]: '
            'a key that does not undo "flow.congestion_control.beta", which stands before it',
        ),
        (
            '"flow.congestion_control" = ["reno"]\n"flow.backup.congestion_control" = ["cubic"]',
            "run.seed=1",
            'sweep.flow.backup.congestion_control = ["cubic"]: '
            'a key that does not undo "flow.congestion_control", which stands before it',
        ),
    ],
)
def test_nothing_that_was_asked_for_is_undone(scenario: Load, sweep: str, override: str, message: str) -> None:
    with pytest.raises(ScenarioError) as error:
        scenario(BASE + f"[sweep]\n{sweep}\n", override)
    assert str(error.value).endswith(message)


def test_a_transport_and_then_its_parameter_can_be_swept(scenario: Load) -> None:
    sweep = (
        '[sweep]\n"flow.congestion_control" = ["storage_friendly"]\n'
        '"flow.congestion_control.reduction" = ["1/2", "1/8"]\n'
    )
    reductions = [
        point.to_spec()["flows"][0]["transport"]["parameters"]["reduction"] for point in scenario(BASE + sweep).points()
    ]
    assert reductions[0] == 4 * reductions[1]

"""Documents that are generated from the models are current, and examples shown to users run."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from elephan.scenario import document, flow, host_cost, line, line_type, load, path, reference, run, schema, workload
from elephan.scenario.table import Table
from tests.scenario.conftest import Load

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.toml"))
MODELS = sorted(
    {
        model
        for module in (document, flow, host_cost, line, line_type, path, run, workload)
        for model in vars(module).values()
        if isinstance(model, type) and issubclass(model, Table) and model is not Table
    },
    key=lambda model: model.__name__,
)


def test_the_schema_file_is_what_the_models_say() -> None:
    assert schema.FILE.read_text(encoding="utf-8") == schema.text(), (
        "write it: python -m elephan.scenario.schema --write"
    )


def test_the_reference_is_what_the_models_say() -> None:
    expected = "write it: python -m elephan.scenario.reference --write"
    assert reference.FILE.read_text(encoding="utf-8") == reference.text(), expected


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema.schema())


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_key_says_what_it_means_and_its_examples_are_right(model: type[Table]) -> None:
    from pydantic import TypeAdapter

    for name, field in model.model_fields.items():
        assert schema.meanings(model).get(name), f"{model.__name__}.{name} says nothing"
        adapter: TypeAdapter[Any] = TypeAdapter(field.rebuild_annotation())
        for example in field.examples or []:
            adapter.validate_python(example)


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_every_example_can_run(file: Path) -> None:
    scenario = load(file)
    assert scenario.title != scenario.name, "an example has a title"
    assert scenario.description, "an example says what it is to show"
    assert scenario.points()
    text = file.read_text(encoding="utf-8")
    assert text.startswith("#:schema ../docs/reference/scenario.schema.json\n"), "editors find the schema"
    jsonschema.validate(tomllib.loads(text), schema.schema())


def test_there_are_examples() -> None:
    assert {file.stem for file in EXAMPLES} >= {
        "bulk",
        "dumbbell",
        "events",
        "offered",
        "replicate-oltp",
        "sweep",
        "two-way",
    }


def test_the_example_trace_offers_what_its_scenario_says() -> None:
    writes = [
        (int(arrival), int(sectors) * 512)
        for arrival, _, _, sectors, kind in (
            row.split() for row in (ROOT / "examples/traces/tpcc-small.trace").read_text().splitlines()
        )
        if kind == "0"
    ]
    recorded_bps = sum(size for _, size in writes) * 8e9 / (writes[-1][0] - writes[0][0])
    assert recorded_bps == pytest.approx(1.37e9, rel=0.01)
    point = load(ROOT / "examples/replicate-oltp.toml").points()[0]
    time_scale = point.to_spec()["flows"][0]["workload"]["trace"]["time_scale_e6"] / 1e6
    assert recorded_bps / time_scale == pytest.approx(300e6, rel=0.03)


REFERENCE_BLOCKS = re.findall(r"```toml\n(.*?)```", reference.FILE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("block", REFERENCE_BLOCKS, ids=range(len(REFERENCE_BLOCKS)))
def test_every_piece_of_toml_in_the_reference_is_right(scenario: Load, block: str) -> None:
    parsed = tomllib.loads(block)
    missing = "" if "run" in parsed else '[run]\nduration = "60s"\n'
    missing += "" if "path" in parsed or "link" in parsed else '[path]\nbandwidth = "1Gbit/s"\nrtt = "10ms"\n'
    missing += "" if "flow" in parsed else "[[flow]]\n"
    assert scenario(block + missing).points()


def test_the_messages_in_the_reference_are_what_is_said(scenario: Load) -> None:
    from elephan.scenario import ScenarioError

    messages = re.findall(r"^demo\.toml:\d+: (path.*)$", reference.FILE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(messages) == 2
    base = '[run]\nduration = "60s"\n[path]\nbandwidth = "10Mbit/s"\nrtt = "1ms"\n[[flow]]\n'
    for message in messages:
        key, _, value = message.partition(":")[0].partition(" = ")
        with pytest.raises(ScenarioError) as error:
            scenario(base, f"{key}={value}")
        assert str(error.value).endswith(message)

"""docs/reference/scenario.md, from the models: every key with type, default, meaning and example.

`python -m elephan.scenario.reference --write` writes it anew; `--check` fails when it has drifted.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Any

from elephan.scenario.schema import schema, write_or_check
from elephan.scenario.toml import format_value

FILE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "scenario.md"
_TEXT = Path(__file__).with_name("reference.md")
_COLUMNS = 120

#: Sections in reading order: heading, model, where it stands in a file.
_SECTIONS = [
    ("[run]", "Run"),
    ("[path]", "Path"),
    ("[path.reverse]", "ReverseLine"),
    ("[[node]]", "Node"),
    ("[[link]]", "Link"),
    ("[link.reverse]", "ReverseLink"),
    ("Queue: droptail", "DropTail"),
    ("Queue: red", "Red"),
    ("Queue: codel", "Codel"),
    ("Queue: fq_codel", "FqCodel"),
    ("Loss: independent", "IndependentLoss"),
    ("Loss: Gilbert-Elliott", "GilbertElliottLoss"),
    ("Loss: periodic", "PeriodicLoss"),
    ("Loss: bit errors", "BitErrorLoss"),
    ("Loss: listed", "ListedLoss"),
    ("Jitter", "Jitter"),
    ("[[flow]]", "Flow"),
    ("Workload: bulk", "Bulk"),
    ("Workload: offered", "ConstantRate"),
    ("Workload: replicate", "Replicate"),
    ("Write sizes: fixed", "FixedSize"),
    ("Write sizes: mix", "MixedSizes"),
    ("Write sizes: lognormal", "LognormalSizes"),
    ("Write sizes: Pareto", "ParetoSizes"),
    ("Arrivals: constant", "ConstantArrivals"),
    ("Arrivals: poisson", "PoissonArrivals"),
    ("Arrivals: on_off", "OnOffArrivals"),
    ("Workload: iscsi", "Iscsi"),
    ("Requests of iscsi: mix", "Mix"),
    ("Requests of iscsi: trace", "TraceSource"),
    ("Requests of iscsi: postmark", "Postmark"),
    ("Workload: program", "Program"),
    ("Workload: short_flows", "ShortFlows"),
    ("[[background]]", "Background"),
    ("[[event]]", "Event"),
    ("When a flow reaches a rate", "FlowReaches"),
    ("Mitigation: hold", "HoldBuffer"),
    ("Mitigation: equalise", "DelayEqualization"),
    ("Mitigation: trim", "CwndReduction"),
    ("Mitigation: tolerate", "ReorderingTolerance"),
    ("[manager]", "Manager"),
    ("[[lightpath]]", "Lightpath"),
    ("[measure]", "Measure"),
]
#: Models that another section covers: [defaults] takes a flow's keys.
_ELSEWHERE = {"FlowSettings": "[[flow]]"}


def text() -> str:
    """The reference as Markdown."""
    generated = schema()
    models = generated["$defs"]
    headings = {model: heading for heading, model in _SECTIONS} | _ELSEWHERE
    missing = models.keys() - headings.keys()
    assert not missing, f"models without a section in the reference: {sorted(missing)}"
    parts = [_section("Top level", generated, headings)]
    parts += [_section(heading, models[model], headings) for heading, model in _SECTIONS]
    return _TEXT.read_text(encoding="utf-8").replace("<!-- keys -->\n", "\n".join(parts))


def _section(heading: str, model: dict[str, Any], headings: dict[str, str]) -> str:
    required = set(model.get("required", []))
    described = textwrap.fill(_cell(model.get("description", "")), _COLUMNS, break_long_words=False)
    lines = [f"### {_heading(heading)}", "", described, ""]
    lines += ["| Key | Type | Default | Meaning | Example |", "|---|---|---|---|---|"]
    for key, item in sorted(model["properties"].items(), key=lambda entry: _rank(entry[0])):
        default = "**required**" if key in required else _code(item["default"]) if "default" in item else "–"
        examples = ", ".join(_code(example) for example in item.get("examples", []))
        meaning = _cell(item.get("description", ""))
        lines.append(f"| `{key}` | {_type(item, headings)} | {default} | {meaning} | {examples} |")
    return "\n".join(lines) + "\n"


def _rank(key: str) -> int:
    """Return the sort key of an entry: names and ends first; all else stays in the models' order."""
    first = ("name", "title", "description", "from", "to", "route", "return_route")
    return first.index(key) if key in first else len(first)


def _heading(heading: str) -> str:
    return f"`{heading}`" if heading.startswith("[") else heading


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _code(value: Any) -> str:
    return f"`{format_value(value)}`" if value not in ({}, []) else "–"


def _type(item: dict[str, Any], headings: dict[str, str]) -> str:
    if "x-type" in item:
        return str(item["x-type"])
    if "$ref" in item:
        return f"table {_link(item['$ref'], headings)}"
    if "anyOf" in item:
        refs = [_link(choice["$ref"], headings) for choice in item["anyOf"] if "$ref" in choice]
        simple = [choice["type"] for choice in item["anyOf"] if "type" in choice]
        short = "text or number" if ["string", "number"] in simple else "text" if simple else ""
        return " or ".join(part for part in (short, "table: " + ", ".join(refs)) if part)
    if "enum" in item:
        return ", ".join(_code(choice) for choice in item["enum"])
    if "const" in item:
        return _code(item["const"])
    if item.get("type") == "array":
        return f"list of {_type(item['items'], headings)}"
    return {"boolean": "true or false", "string": "text"}[item["type"]]


def _link(reference: str, headings: dict[str, str]) -> str:
    heading = headings[reference.rpartition("/")[2]]
    anchor = "".join(c for c in heading.lower() if c.isalnum() or c in " -_").replace(" ", "-")
    return f"[{heading.replace('[', '').replace(']', '')}](#{anchor})"


if __name__ == "__main__":
    sys.exit(write_or_check(FILE, text(), sys.argv[1:]))

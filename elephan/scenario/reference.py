"""docs/reference/scenario.md, from the models: every key with type, default, meaning and example.

`python -m elephan.scenario.reference --write` writes it anew; `--check` fails when it has drifted.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Set
from pathlib import Path
from typing import Any

from elephan.scenario.line_type import table
from elephan.scenario.schema import schema, write_or_check
from elephan.scenario.toml import format_value

FILE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "scenario.md"
_TEXT = Path(__file__).with_name("reference.md")
_COLUMNS = 120
_ABSENT = re.compile(r" ?When absent: (.*?)\.(?= [A-Z]|$)")
#: A bound that is only the width of the core's field.
_WIDTH = re.compile(r"^(integer) (\d+) to (?:4294967295|18446744073709551615)$")
_AS_FORWARD = "When absent: as forward."
#: Types whose notation the page shows once.
_SHOWN = re.compile(
    r"(time|rate|size|probability|probability per bit|share|whole number|number|integer|boolean|string)\b(?! or)"
)

#: Sections in reading order: heading, model, where it stands in a file.
_SECTIONS = [
    ("[run]", "Run"),
    ("[path]", "Path"),
    ("[path.reverse]", "ReverseLine"),
    ("[[node]]: host", "Node"),
    ("[[node]]: gateway", "Gateway"),
    ("send, of a host", "SendCost"),
    ("receive, of a host", "ReceiveCost"),
    ("[[link]]", "Link"),
    ("[link.reverse]", "ReverseLink"),
    ("Queue: droptail", "DropTail"),
    ("Queue: red", "Red"),
    ("Queue: codel", "Codel"),
    ("Queue: fq_codel", "FqCodel"),
    ("Loss: independent", "IndependentLoss"),
    ("Loss: Gilbert-Elliott", "GilbertElliottLoss"),
    ("Loss: runs", "RunsLoss"),
    ("Loss: periodic", "PeriodicLoss"),
    ("Loss: bit errors", "BitErrorLoss"),
    ("Loss: listed", "ListedLoss"),
    ("Jitter", "Jitter"),
    ("Line", "Line"),
    ("Policer", "Policer"),
    ("[[flow]]", "Flow"),
    ("Send overhead", "SendOverhead"),
    ("Workload: bulk", "Bulk"),
    ("Workload: constant_rate", "ConstantRate"),
    ("Workload: replicate", "Replicate"),
    ("Workload: copy", "Copy"),
    ("Files of a copy", "Files"),
    ("Workload: iscsi", "Iscsi"),
    ("Workload: fc", "Fc"),
    ("Workload: fcp", "Fcp"),
    ("Workload: program", "Program"),
    ("Workload: short_flows", "ShortFlows"),
    ("Write sizes: fixed", "FixedSize"),
    ("Write sizes: mix", "MixedSizes"),
    ("Write sizes: lognormal", "LognormalSizes"),
    ("Write sizes: Pareto", "ParetoSizes"),
    ("Arrivals: constant", "ConstantArrivals"),
    ("Arrivals: poisson", "PoissonArrivals"),
    ("Arrivals: on_off", "OnOffArrivals"),
    ("Active: periods", "Periods"),
    ("Active: hours of the day", "Hours"),
    ("Requests of iscsi and fcp: mix", "Mix"),
    ("Requests of iscsi and fcp: trace", "TraceSource"),
    ("Requests of iscsi and fcp: postmark", "Postmark"),
    ("[[background]]", "Background"),
    ("[[event]]", "Event"),
    ("When a flow reaches a rate", "FlowReaches"),
    ("Mitigation: hold_buffer", "HoldBuffer"),
    ("Mitigation: delay_equalization", "DelayEqualization"),
    ("Mitigation: cwnd_reduction", "CwndReduction"),
    ("Mitigation: reordering_tolerance", "ReorderingTolerance"),
    ("[manager]", "Manager"),
    ("[[lightpath]]", "Lightpath"),
    ("[hosts]", "Hosts"),
    ("[measure]", "Measure"),
    ("Window of a measurement", "Window"),
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
    parts = [section("Top level", generated, headings)]
    group = ""
    for heading, model in _SECTIONS:
        if _group(heading) not in ("", group):
            parts.append(_forms(_group(heading), models, headings))
        group = _group(heading)
        shared = _shared(group, models) if group else set()
        parts.append(section(heading, models[model], headings, shared))
    return (
        _TEXT.read_text(encoding="utf-8")
        .replace("<!-- keys -->\n", "\n".join(parts))
        .replace("<!-- lines -->\n", table())
    )


def _group(heading: str) -> str:
    """Return what several tables are forms of, as `Queue`; nothing for the others."""
    group, colon, _ = heading.partition(": ")
    return group if colon else ""


def _shared(group: str, models: dict[str, Any]) -> set[str]:
    """Return the keys that are the same in every form of a table."""
    forms = [models[model]["properties"].items() for heading, model in _SECTIONS if _group(heading) == group]
    return {key for key, item in forms[0] if all((key, item) in form for form in forms[1:])}


def _forms(group: str, models: dict[str, Any], headings: dict[str, str]) -> str:
    """Return the section of a table that has several forms: what these share."""
    first = next(models[model] for heading, model in _SECTIONS if _group(heading) == group)
    shared = _shared(group, models)
    items = [_item(key, item, False, headings) for key, item in first["properties"].items() if key in shared]
    return "\n".join([f"### {group}", *(["", "Every form has:", "", *items] if items else [])]) + "\n"


def section(heading: str, model: dict[str, Any], headings: dict[str, str], shared: Set[str] = frozenset()) -> str:
    """Return the section of a table: what it is, and each key with type, default and meaning."""
    required = set(model.get("required", []))
    properties = model["properties"]
    fixed = [
        f"`{key} = {format_value(item['const'])}`{', the default' if 'default' in item else ''}."
        for key, item in properties.items()
        if "const" in item
    ]
    described = " ".join([*fixed, _cell(model.get("description", ""))])
    level = "####" if _group(heading) else "###"
    lines = [f"{level} {_heading(heading)}", "", _filled(described), ""]
    entries = [
        (key, item)
        for key, item in sorted(properties.items(), key=lambda entry: _rank(entry[0]))
        if "const" not in item and key not in shared
    ]
    # A way back has most settings of the way there, described where that is.
    same = [key for key, item in entries if _AS_FORWARD in item.get("description", "")]
    lines += [_item(key, item, key in required, headings) for key, item in entries if key not in same]
    if same:
        lines.append(_filled(f"- {', '.join(f'`{key}`' for key in same)}: as forward when absent.", "  "))
    return "\n".join(lines).rstrip() + "\n"


def _item(key: str, item: dict[str, Any], required: bool, headings: dict[str, str]) -> str:
    """Return a key's entry. An example stands where neither the type nor the default shows the notation."""
    meaning = _cell(item.get("description", ""))
    absent = _ABSENT.search(meaning)
    if required:
        default = ", **required**"
    elif item.get("default", {}) not in ({}, []):
        default = f"; {_code(item['default'])}"
    elif absent:
        default = f"; {absent.group(1)}"
        meaning = meaning[: absent.start()] + meaning[absent.end() :]
    else:
        default = ""
    kind = _type(item, headings)
    examples = [] if _SHOWN.match(kind) or "enum" in item else [*filter(_is_form, item.get("examples", []))]
    as_in = "".join(f" {'As' if place == 0 else 'or'} {_code(example)}" for place, example in enumerate(examples))
    return _filled(f"- `{key}` ({kind}{default}): {meaning}{as_in}", "  ")


def _filled(text: str, indent: str = "") -> str:
    return textwrap.fill(text, _COLUMNS, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _is_form(example: Any) -> bool:
    """Return whether an example is more than a number or a quantity."""
    return not (isinstance(example, (int, float)) or (isinstance(example, str) and example[0].isdigit()))


def _rank(key: str) -> int:
    """Return the sort key of an entry: names and ends first; all else stays in the models' order."""
    first = ("name", "title", "description", "from", "to", "route", "return_route")
    return first.index(key) if key in first else len(first)


def _heading(heading: str) -> str:
    return f"`{heading}`" if heading.startswith("[") else heading


def _cell(text: str) -> str:
    return " ".join(text.split())


def _code(value: Any) -> str:
    return f"`{format_value(value)}`" if value not in ({}, []) else "–"


def _type(item: dict[str, Any], headings: dict[str, str]) -> str:
    if "x-type" in item:
        return _WIDTH.sub(r"\1 from \2", str(item["x-type"]))
    if "$ref" in item:
        return _link(item["$ref"], headings)
    if "anyOf" in item:
        refs = [headings[choice["$ref"].rpartition("/")[2]] for choice in item["anyOf"] if "$ref" in choice]
        # Several forms are found under the heading that they share.
        tables = dict.fromkeys(_group(heading) or heading for heading in refs)
        simple = [choice["type"] for choice in item["anyOf"] if "type" in choice]
        short = "string or number" if ["string", "number"] in simple else "string" if simple else ""
        return " or ".join(part for part in (short, *(_to(heading) for heading in tables)) if part)
    if "enum" in item:
        return ", ".join(_code(choice) for choice in item["enum"])
    if "const" in item:
        return _code(item["const"])
    if item.get("type") == "array":
        return f"list of {_type(item['items'], headings)}"
    return {"boolean": "boolean", "string": "string"}[item["type"]]


def _link(reference: str, headings: dict[str, str]) -> str:
    return _to(headings[reference.rpartition("/")[2]])


def _to(heading: str) -> str:
    anchor = "".join(c for c in heading.lower() if c.isalnum() or c in " -_").replace(" ", "-")
    return f"[{heading.replace('[', '').replace(']', '')}](#{anchor})"


if __name__ == "__main__":
    sys.exit(write_or_check(FILE, text(), sys.argv[1:]))

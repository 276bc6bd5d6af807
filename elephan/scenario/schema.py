"""The JSON schema of a scenario file, from the models, for editors and checkers.

`python -m elephan.scenario.schema --write` writes docs/reference/scenario.schema.json; `--check` fails when it has
drifted.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from elephan.scenario.document import Document
from elephan.scenario.table import INNER_TABLE, Table

FILE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "scenario.schema.json"


def schema() -> dict[str, Any]:
    """The schema, JSON Schema 2020-12. `x-type` names a quantity's type as docs/reference/scenario.md does."""
    # A monitor's file has tables of its own, of the same names.
    own = __name__.rpartition(".")[0]
    tables = {table.__name__: table for table in _tables(Table) if table.__module__.startswith(own)}
    definitions: dict[str, Any] = {}
    generated = schema_of(Document, tables, definitions)
    generated = without_null({"$defs": dict(sorted(definitions.items())), **generated})
    generated["title"] = "elephan scenario"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **generated}


def schema_of(table: type[Table], tables: dict[str, type[Table]], definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a table; those of the tables inside it go to `definitions`."""
    generated = table.model_json_schema(by_alias=True)
    properties = generated["properties"]
    for field, text in meanings(table).items():
        key = table.model_fields[field].alias or field
        # Sorted, as pydantic would have it.
        properties[key] = dict(sorted({**properties[key], "description": text}.items()))

    def with_references(node: Any) -> Any:
        if isinstance(node, list):
            return [with_references(item) for item in node]
        if not isinstance(node, dict):
            return node
        node = {key: with_references(item) for key, item in node.items()}
        inner = node.pop(INNER_TABLE, None)
        if inner is None:
            return node
        if inner not in definitions:
            definitions[inner] = {}
            definitions[inner] = schema_of(tables[inner], tables, definitions)
        return {"$ref": f"#/$defs/{inner}", **node}

    result: dict[str, Any] = with_references(generated)
    return result


def _tables(table: type[Table]) -> Iterator[type[Table]]:
    for inner in table.__subclasses__():
        yield inner
        yield from _tables(inner)


def meanings(table: type[Table]) -> dict[str, str]:
    """Return the description of each field of a table, by its name in Python."""
    texts: dict[str, str] = {}
    for base in reversed(table.__mro__):
        texts |= _docstrings(base.__module__).get(base.__name__, {}) if issubclass(base, Table) else {}
    return texts


@cache
def _docstrings(module: str) -> dict[str, dict[str, str]]:
    """The docstrings below the fields of each class of a module: Python keeps none of them."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    found: dict[str, dict[str, str]] = {}
    for item in tree.body:
        if not isinstance(item, ast.ClassDef):
            continue
        for field, text in pairwise(item.body):
            match field, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                    found.setdefault(item.name, {})[name] = inspect.cleandoc(said)
    return found


def without_null(node: Any) -> Any:
    """TOML has no null: a key that may be absent is just not required."""
    if isinstance(node, list):
        return [without_null(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: without_null(item) for key, item in node.items() if not _says_nothing(key, item)}
    choices = node.get("anyOf")
    if isinstance(choices, list) and {"type": "null"} in choices:
        rest = [choice for choice in choices if choice != {"type": "null"}]
        node = {key: item for key, item in node.items() if key != "anyOf"}
        node = {**rest[0], **node} if len(rest) == 1 else {**node, "anyOf": rest}
    return node


def _says_nothing(key: str, item: Any) -> bool:
    generated_title = key == "title" and isinstance(item, str)
    return generated_title or (key == "default" and item is None) or (key == "examples" and item == [])


def text() -> str:
    """The schema as the file holds it."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def write_or_check(file: Path, content: str, arguments: list[str]) -> int:
    """`--write` the generated `content` to `file`, or `--check` that it is there; the exit code."""
    if arguments == ["--write"]:
        file.write_text(content, encoding="utf-8")
        return 0
    if arguments == ["--check"]:
        if file.is_file() and file.read_text(encoding="utf-8") == content:
            return 0
        print(f"{file}: not what the models say; write it anew with --write", file=sys.stderr)
        return 1
    print("one of --write, --check", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(write_or_check(FILE, text(), sys.argv[1:]))

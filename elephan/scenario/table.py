"""Base of all tables of a scenario: no unknown key, no silent conversion, no change afterwards."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    StringConstraints,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from elephan.renamed import KINDS, new_key
from elephan.scenario.problem import renamed, unknown, wrong

INNER_TABLE = "x-table"
"""Stands in a table's JSON schema for the table of that name."""

_inside_a_table: ContextVar[bool] = ContextVar("_inside_a_table", default=False)
"""True if the validator of a table is being built, in this thread."""


class Table(BaseModel):
    """A TOML table. A field's docstring is its documentation in the reference and in the JSON schema.

    These are read when they are asked for (`elephan.scenario.schema`), and a table's validator is built when the first
    such table is met: to build all at each start would take longer than to read a scenario.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, validate_default=True, defer_build=True)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        if _inside_a_table.get():
            return core_schema.no_info_plain_validator_function(cls.model_validate)
        token = _inside_a_table.set(True)
        try:
            return handler(source)
        finally:
            _inside_a_table.reset(token)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        # `elephan.scenario.schema` puts its definition beside the others.
        return {INNER_TABLE: cls.__name__} if schema["type"] == "function-plain" else handler(schema)

    @classmethod
    @cache
    def keys(cls) -> tuple[str, ...]:
        """The keys as a user writes them."""
        return tuple(field.alias or name for name, field in cls.model_fields.items())

    @classmethod
    def renamed_key(cls, key: str) -> str | None:
        """Return what to write in place of `key` where version 0.1.0 called a key of this table so; else None."""
        now = new_key([table.__name__ for table in cls.__mro__], key)
        return None if now is None else renamed(key, now)

    @model_validator(mode="before")
    @classmethod
    def _no_unknown_key(cls, value: Any) -> Any:
        # Before the fields: a misspelt key is the reason for the missing one.
        if isinstance(value, dict):
            known = cls.keys()
            for key in value:
                if key not in known:
                    raise wrong(cls.renamed_key(key) or unknown("key", key, known), key)
        return value


def setting(default: Any = ..., *, examples: list[Any], alias: str | None = None) -> Any:
    """A key, its default as a user would write it (validated as if written), and examples for the reference."""
    return Field(default, alias=alias, examples=examples)


def _usable_name(value: str) -> str:
    if not value or any(c.isspace() or c in '."*' for c in value) or value.isdigit():
        raise wrong('a name without spaces, dots, quotes or "*", and not only digits, such as "backup"')
    return value


#: A name that dotted keys can hold.
Name = Annotated[str, StringConstraints(strict=True), AfterValidator(_usable_name)]


@dataclass(frozen=True, eq=False)
class Tagged:
    """Annotates a union of tables that one key tells apart: its value, or which of several keys is there.

    `kinds` maps the value of `key` (or the telling key itself, when `key` is None) to the table; `default` is the kind
    of a table that does not say; a text or number instead of a table stands for `{ short = value }`.
    """

    kinds: tuple[tuple[str, type[Table]], ...]
    key: str | None
    default: str | None
    short: str | None
    expected: str
    numbers: bool = False
    """True if the short form may be a number."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        # Tags begin with "~": they are no keys of the file, and messages leave them out.
        choices = {f"~{kind}": handler.generate_schema(table) for kind, table in self.kinds}
        union = core_schema.tagged_union_schema(choices, discriminator=self._tag)
        return core_schema.no_info_before_validator_function(self._as_table, union)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        inner: dict[str, Any] = dict(handler(schema))
        inner.pop("discriminator", None)
        tables = inner.get("oneOf") or inner.get("anyOf") or [inner]
        short = [{"type": ["string", "number"] if self.numbers else "string"}] if self.short else []
        return {"anyOf": [*short, *tables]}

    def _tag(self, value: Any) -> str:
        return f"~{self._kind(value)}"

    def _kind(self, value: dict[str, Any]) -> str | None:
        if self.key is not None:
            return value.get(self.key, self.default)
        return next((kind for kind, _ in self.kinds if kind in value), self.default)

    def _as_table(self, value: Any) -> Any:
        if isinstance(value, str | int | float) and not isinstance(value, bool) and self.short is not None:
            value = {self.short: value}
        if not isinstance(value, dict):
            raise wrong(self.expected)
        kind = self._kind(value)
        known = [name for name, _ in self.kinds]
        if kind not in known:
            if self.key is None or (self.key not in value):
                raise wrong(self.expected)
            if KINDS.get(str(kind)) in known:
                raise wrong(renamed(str(kind), KINDS[str(kind)]), self.key)
            raise wrong("one of " + ", ".join(f'"{name}"' for name in known), self.key)
        return value


def one_of(value: dict[str, Any], keys: tuple[str, ...]) -> list[str]:
    """Return those of these keys that a table has."""
    return [key for key in keys if key in value]

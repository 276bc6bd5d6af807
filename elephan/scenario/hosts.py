"""The two hosts of a run on the backend hosts, by their names in the user's book (elephan/hosts/book.py)."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema, model_validator

from elephan.scenario.problem import wrong
from elephan.scenario.table import Table, setting

HOST_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
"""As a label of a host name (RFC 1123, 2.1), with dots and underscores: no comma, which separates two."""


def _name(value: Any) -> str:
    if not isinstance(value, str) or not HOST_NAME.fullmatch(value):
        raise wrong('a name of elephan hosts, such as "nyc"')
    return value


_Name = Annotated[str, PlainValidator(_name), WithJsonSchema({"type": "string", "x-type": "name of elephan hosts"})]


class Hosts(Table):
    """Two machines of `elephan hosts`, for `--on hosts` alone. The keys of the path are then what is expected of the
    real one. `--hosts LEFT,RIGHT` counts more."""

    left: _Name = setting(examples=["nyc"])
    """The host at the left site; in the long form, at `from` of the first flow."""
    right: _Name = setting(examples=["lax"])
    """The host at the other end."""

    @model_validator(mode="after")
    def _two(self) -> Hosts:
        if self.left == self.right:
            raise wrong("another host than left", "right")
        return self

"""A paper's claims, as data: `claims.toml` in the paper's folder, read and checked once.

A claim is a sentence of the paper with the numbers in it. Each number is a `Value` (paper's value and how far a
measured one may be off), each statement about sizes an `Order`. Code measures quantities by name, each as one number or
as one per repetition; `elephan.papers.verdict` holds them against the claim. No number of a paper stands anywhere else.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from elephan import user_files
from elephan.errors import InputError
from elephan.papers.spread import Measured, Spread

FORMAT = 1
"""Form of claims.toml; raise it when a key changes its meaning."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Outcome(Enum):
    """Measured sizes beside a stated order."""

    HOLDS = "holds"
    NOT_DECIDED = "not decided"
    """The ranges of repetitions overlap, whatever the medians are."""
    BROKEN = "does not hold"


class Value(_Table):
    """A number in the paper."""

    name: str
    """Key of the measured quantity."""
    label: str
    """The measured quantity, as a reader sees it: "RTT 80 ms"."""
    paper: float
    tolerance: float = Field(ge=0)
    """Largest relative deviation that still counts as the same; 0 = equal."""
    unit: str | None = None
    """None: the claim's."""

    def holds(self, measured: float) -> bool:
        """Return True if a measured number, of repetitions the median, is the paper's within the tolerance."""
        # 1e-9: a count that went through a division stays a count.
        return abs(measured - self.paper) <= self.tolerance * abs(self.paper) + 1e-9


class Order(_Table):
    """A statement about sizes: the quantities grow from left to right."""

    label: str
    rising: tuple[str, ...] = Field(min_length=2)
    equal_within: float = Field(default=0, ge=0)
    """For "at least": relative difference up to which two medians count as equal. 0: each is larger than the last."""
    unit: str | None = None
    """Of its sizes; without it the claim's, "" for ratios."""

    def outcome(self, measured: Sequence[Spread]) -> Outcome:
        """Return what sizes, in the order of `rising`, say of it: the weakest of what each two neighbours say."""
        found = {self._of_two(left, right) for left, right in pairwise(measured)}
        return next(one for one in (Outcome.BROKEN, Outcome.NOT_DECIDED, Outcome.HOLDS) if one in found)

    def _of_two(self, left: Spread, right: Spread) -> Outcome:
        if self.equal_within:
            within = left.median <= right.median + self.equal_within * abs(right.median)
            return Outcome.HOLDS if within else Outcome.BROKEN
        if left.is_below(right):
            return Outcome.HOLDS
        return Outcome.BROKEN if left.low >= right.high else Outcome.NOT_DECIDED


class Region(_Table):
    """A statement whose truth depends on what the paper does not state."""

    name: str
    """Key of the measured quantity: a number for each set-up tried, 1 where it holds and 0 where it does not."""
    label: str
    on: tuple[str, ...] = Field(min_length=1)
    """Parameters that the paper leaves open and that were varied: "the switch's queue"."""


class Runs(_Table):
    """A scenario file of the paper and what is changed in it."""

    file: str
    set: dict[str, bool | int | float | str] = Field(default_factory=dict)
    """Dotted keys and values, as `elephan run --set` takes them."""


class OnKernel(_Table):
    """Runs that measure a claim over a real kernel's TCP as well."""

    runs: tuple[Runs, ...] = Field(min_length=1)
    differs: str = ""
    """Differences of its set-up from the claim's own runs, and their reasons."""


class Claim(_Table):
    """One claim of a paper."""

    id: str
    title: str
    text: str
    """The claim in a sentence."""
    source: str
    """Place in the paper: "Table 1"."""
    unit: str = ""
    runs: tuple[Runs, ...] = ()
    """Scenario files of its folder that measure it."""
    kernel: OnKernel | None = None
    """Absent: not measured there."""
    value: tuple[Value, ...] = ()
    order: tuple[Order, ...] = ()
    region: tuple[Region, ...] = ()
    why: str = ""
    """Reasons for the measured numbers: prose, no numbers that a run could change."""
    not_yet: str = ""
    """The part that is missing before it can be measured; empty when it is measured."""
    held_by: str = ""
    """For a statement without numbers: the file of tests that hold it, from the repository's root."""

    @model_validator(mode="after")
    def _consistent(self) -> Claim:
        if (self.not_yet or self.held_by) and (self.value or self.order or self.region or self.runs):
            raise ValueError(f"{self.id}: what is not measured has no scenarios and no values")
        if self.not_yet and self.held_by:
            raise ValueError(f"{self.id}: either not_yet or held_by")
        if not (self.not_yet or self.held_by) and not (self.value or self.order or self.region):
            raise ValueError(f"{self.id}: has neither a value nor an order nor a region: nothing could refute it")
        names = [item.name for item in self.value]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ValueError(f"{self.id}: the value {', '.join(sorted(twice))} is there twice")
        return self

    def paper_value(self, name: str) -> float:
        """Return the paper's number by name. Raises KeyError."""
        for item in self.value:
            if item.name == name:
                return item.paper
        raise KeyError(name)


class Reference(_Table):
    """A measurement from elsewhere that is drawn beside ours."""

    id: str
    claim: str = ""
    """Id of the claim with these quantities; a run on this machine's kernel takes their place."""
    label: str
    provenance: str
    unit: str
    value: dict[str, Measured]
    """By quantity: one number, or one per repetition."""

    def median(self, name: str) -> float:
        """Return one number by quantity, of repetitions the median. Raises KeyError."""
        return Spread.of(self.value[name]).median


class Paper(_Table):
    """A paper and what it claims."""

    format: Literal[1]
    id: str
    title: str
    authors: tuple[str, ...]
    venue: str
    summary: str
    claims: tuple[Claim, ...] = Field(alias="claim")
    references: tuple[Reference, ...] = Field(default=(), alias="reference")
    folder: Path

    def claim(self, claim_id: str) -> Claim:
        """Return one claim. Raises KeyError."""
        for item in self.claims:
            if item.id == claim_id:
                return item
        raise KeyError(claim_id)

    def reference(self, reference_id: str) -> Reference:
        """Return one reference. Raises KeyError."""
        for item in self.references:
            if item.id == reference_id:
                return item
        raise KeyError(reference_id)


def read(folder: Path) -> Paper:
    """Read `folder`/claims.toml. Raises `InputError` that names the file and what is wrong."""
    file = folder / "claims.toml"
    try:
        data: dict[str, Any] = tomllib.loads(user_files.read_text(file, user_files.TOML))
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: {error}") from error
    try:
        paper = Paper.model_validate({**data, "folder": folder})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{file}: {place}: {first['msg']}") from error
    if paper.id != folder.name:
        raise InputError(f'{file}: id: "{paper.id}" is not the name of its folder, {folder.name}')
    return paper

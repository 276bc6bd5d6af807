"""Content of a line test's report, apart from its drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from elephan.line.tables import Table
from elephan.report.figures import Figure


@dataclass(frozen=True)
class Page:
    """Content of a report."""

    title: str
    lead: str
    """The result in a sentence."""
    tables: Sequence[Table]
    figures: Sequence[Figure] = ()
    facts: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()
    """Limits of what was measured."""

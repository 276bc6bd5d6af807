"""The revisions of a store's tables."""

from __future__ import annotations

REVISIONS = ("0001", "0002")
"""All in `migrations/versions`, oldest first; a test holds the newest against Alembic's own."""

HEAD = REVISIONS[-1]
"""Revision of a store that this elephan writes."""

ADDED = {"0002": {"run": {"sha256"}}}
"""Columns that a revision added to those of the one before."""

"""The revisions of a store's tables."""

from __future__ import annotations

REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006")
"""All in `migrations/versions`, oldest first; a test holds the newest against Alembic's own."""

HEAD = REVISIONS[-1]
"""Revision of a store that this elephan writes."""

ADDED = {"0002": {"run": {"sha256"}}, "0006": {"backup_run": {"sequence"}}}
"""Columns that a revision added to those of the one before."""

RENAMED = {"0003": {"run": {"ground": "backend"}}}
"""Columns that a revision gave another name: the one before and its own."""

TABLES = {
    "0004": {"monitor_path", "monitor_summary", "monitor_outcome", "monitor_alert"},
    "0005": {"backup_job", "backup_run", "backup_attempt"},
}
"""Tables that a revision added."""

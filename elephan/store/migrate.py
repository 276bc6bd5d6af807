"""Bring a database to this elephan's tables, or say why that cannot be done."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from elephan.errors import StoreError

HEAD = "0001"
"""Newest revision in `migrations/versions`; a test holds it against Alembic's own."""


def revision(connection: Connection) -> str | None:
    """Return the revision that the database is at, None when it is empty."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("select version_num from alembic_version")).scalar()
    return None if found is None else str(found)


def migrate(connection: Connection) -> None:
    """Upgrade the database to `HEAD`. Raises `StoreError` when it is newer than this elephan."""
    found = revision(connection)
    if found == HEAD:
        return
    # Imported here: most calls find the store at HEAD, and Alembic takes a third of a second to load.
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if found is not None and found not in known:
        raise StoreError(
            f"the store has revision {found}; this elephan knows up to {HEAD}: it was written by a newer one, update"
        )
    config.attributes["connection"] = connection
    command.upgrade(config, "head")

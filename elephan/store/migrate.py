"""Bring a database to this elephan's tables, or say why that cannot be done.

**Invariant: a database has all tables of a revision and that revision's number, or is repaired when next opened.**
On SQLite and PostgreSQL a creation or an upgrade is one transaction. MariaDB commits after each statement that makes a
table: there the number is written last, and steps can be repeated (see `migrations/versions`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy import Connection, Engine, func, inspect, select, text
from sqlalchemy.exc import SQLAlchemyError

from elephan.errors import StoreError
from elephan.store.place import Place
from elephan.store.revision import ADDED, HEAD, RENAMED, REVISIONS, TABLES
from elephan.store.schema import Base, RunRow
from elephan.store.sql import Fault, engine_of
from elephan.units import pluralize

MIGRATIONS = Path(__file__).parent / "migrations"

LOCK_TIMEOUT_S = 30
"""Time to wait for another command that makes or upgrades the tables, s: either takes less than one."""


def bring_up_to_date(place: Place) -> None:
    """Make or upgrade the tables, one command at a time.

    Raises `StoreError` when the database is newer than this elephan, is not elephan's, or cannot be repaired; `Fault`.
    """
    engine = engine_of(place)
    try:
        with _locked(engine) as connection:
            # Another command may have been first.
            if revision(connection) != HEAD:
                _repair(connection)
                upgrade(connection)
    except SQLAlchemyError as error:
        raise Fault(getattr(error, "orig", None) or error) from error
    finally:
        engine.dispose()


def revision(connection: Connection) -> str | None:
    """Return the revision of the database, None if it has none."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("select version_num from alembic_version")).scalar()
    return None if found is None else str(found)


@contextmanager
def _locked(engine: Engine) -> Iterator[Connection]:
    """Give a connection in a transaction that no other command's can overlap; commit at the end."""
    kind = engine.dialect.name
    if kind == "sqlite":
        with engine.execution_options(begin="begin immediate").begin() as connection:
            yield connection
    elif kind == "postgresql":
        with engine.begin() as connection:
            connection.execute(text(f"set local lock_timeout = '{LOCK_TIMEOUT_S}s'"))
            connection.execute(text("select pg_advisory_xact_lock(hashtext('elephan'))"))
            yield connection
    else:
        with engine.connect() as connection:
            # A name of a lock is the whole server's, and has at most 64 characters.
            database = hashlib.sha256(str(engine.url.database).encode()).hexdigest()[:32]
            asked = {"name": f"elephan-{database}", "seconds": LOCK_TIMEOUT_S}
            if connection.execute(text("select get_lock(:name, :seconds)"), asked).scalar() != 1:
                raise StoreError(
                    f"another command has been changing the store's tables for {LOCK_TIMEOUT_S} s; try again later"
                )
            connection.rollback()
            try:
                yield connection
                connection.commit()
            finally:
                # The lock goes with the connection too.
                with suppress(SQLAlchemyError):
                    connection.rollback()
                    connection.execute(text("select release_lock(:name)"), {"name": asked["name"]})


def _repair(connection: Connection) -> None:
    """Remove tables that a creation left which was cut short: they are there, hold nothing, and no revision is."""
    if revision(connection) is not None:
        return
    tables = inspect(connection)
    present = set(tables.get_table_names())
    found = {
        name: {column["name"] for column in tables.get_columns(name)}
        for name in Base.metadata.tables
        if name in present
    }
    for name, columns in found.items():
        own = Base.metadata.tables[name]
        before = {old for renamed in RENAMED.values() for old in renamed.get(name, {})}
        if (
            not {column.name for column in own.primary_key}
            <= columns
            <= {column.name for column in own.columns} | before
        ):
            raise StoreError(
                f"the database has a table {name} that is not elephan's; give elephan a database of its own"
            )
    runs = connection.scalar(select(func.count()).select_from(RunRow)) if "run" in found else 0
    if runs:
        raise StoreError(_without_revision(int(runs), found, "alembic_version" in present))
    for table in reversed(Base.metadata.sorted_tables):
        if table.name in found:
            table.drop(connection)


def _without_revision(runs: int, found: dict[str, set[str]], has_version_table: bool) -> str:
    """Return the treatment of a store that holds runs and has no revision of its tables."""
    text = f"the store holds {pluralize(runs, 'run')}, but not the revision of its tables"
    columns = {name: {column.name for column in table.columns} for name, table in Base.metadata.tables.items()}
    for number in reversed(REVISIONS):
        if found == columns:
            make = "" if has_version_table else "create table alembic_version (version_num varchar(32) primary key); "
            return (
                f"{text}. They are those of revision {number}: make a copy of the database, then tell it so in SQL: "
                f"{make}insert into alembic_version values ('{number}')"
            )
        for name in TABLES.get(number, ()):
            del columns[name]
        for name, added in ADDED.get(number, {}).items():
            columns[name] = columns[name] - added
        for name, renamed in RENAMED.get(number, {}).items():
            columns[name] = columns[name] - set(renamed.values()) | set(renamed)
    return f"{text}, and these are not whole: use a backup of the database, or name another store"


def upgrade(connection: Connection, target: str = HEAD) -> None:
    """Upgrade the tables to a revision. Raises `StoreError` when they are newer than this elephan."""
    # Imported here: most calls find the store at HEAD, and Alembic takes a third of a second to load.
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    found = revision(connection)
    if found is not None and found not in known:
        raise StoreError(
            f"the store has revision {found}; this elephan knows up to {HEAD}: it was written by a newer one, update"
        )
    config.attributes["connection"] = connection
    command.upgrade(config, target)

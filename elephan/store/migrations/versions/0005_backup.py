"""Tables of a backup: jobs, their runs with receipt and forecast, the attempts of each."""

from typing import TypedDict

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


class TextOptions(TypedDict):
    """Keywords of a table that only these servers read."""

    mysql_charset: str
    mysql_collate: str
    mariadb_charset: str
    mariadb_collate: str


# As in `elephan.store.schema`.
TEXT_OPTIONS: TextOptions = {
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": "utf8mb4_bin",
}
LONG_TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")


def _of(table: str, column: str) -> sa.Column[int]:
    return sa.Column(column, sa.BigInteger, sa.ForeignKey(f"{table}.id", ondelete="CASCADE"), nullable=False)


def upgrade() -> None:
    """Make the three tables; MariaDB commits after each, so that some may be there."""
    present = set(sa.inspect(op.get_bind()).get_table_names())
    for name in ("backup_attempt", "backup_run", "backup_job"):
        # Left by an upgrade that was cut short, and empty: the revision is written last.
        if name in present:
            op.drop_table(name)
    op.create_table(
        "backup_job",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("backup", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("settings", LONG_TEXT, nullable=False),
        sa.Column("created", sa.Float(53), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("next_due", sa.Float(53)),
        sa.Column("forecast", LONG_TEXT),
        sa.Column("changed", sa.BigInteger, nullable=False),
        **TEXT_OPTIONS,
    )
    op.create_table(
        "backup_run",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        _of("backup_job", "job_id"),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("version", sa.String(64)),
        sa.Column("due", sa.Float(53)),
        sa.Column("missed", sa.Integer, nullable=False),
        sa.Column("begun", sa.Float(53), nullable=False),
        sa.Column("ended", sa.Float(53)),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("files", sa.BigInteger),
        sa.Column("bytes", sa.BigInteger),
        sa.Column("sent_bytes", sa.BigInteger),
        sa.Column("seconds", sa.Float(53)),
        sa.Column("removed", sa.Float(53)),
        sa.Column("text", LONG_TEXT),
        sa.Column("progress", LONG_TEXT),
        sa.Column("receipt", LONG_TEXT),
        sa.Column("forecast", LONG_TEXT),
        sa.Column("changed", sa.BigInteger, nullable=False),
        **TEXT_OPTIONS,
    )
    op.create_index("backup_run_job", "backup_run", ["job_id", "begun"])
    op.create_table(
        "backup_attempt",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        _of("backup_run", "run_id"),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("begun", sa.Float(53), nullable=False),
        sa.Column("ended", sa.Float(53)),
        sa.Column("outcome", sa.String(16), nullable=False),
        sa.Column("sent_bytes", sa.BigInteger),
        sa.Column("text", LONG_TEXT),
        **TEXT_OPTIONS,
    )
    op.create_index("backup_attempt_run", "backup_attempt", ["run_id", "number"])

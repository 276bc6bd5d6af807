"""Tables of a monitor: paths, summaries of their samples, outcomes of path tests, alerts."""

from typing import TypedDict

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0004"
down_revision = "0003"
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


def _of_path(primary_key: bool = False) -> sa.Column[int]:
    return sa.Column(
        "path_id",
        sa.BigInteger,
        sa.ForeignKey("monitor_path.id", ondelete="CASCADE"),
        primary_key=primary_key,
        nullable=False,
    )


def upgrade() -> None:
    """Make the four tables; MariaDB commits after each, so that some may be there."""
    present = set(sa.inspect(op.get_bind()).get_table_names())
    for name in ("monitor_alert", "monitor_outcome", "monitor_summary", "monitor_path"):
        # Left by an upgrade that was cut short, and empty: the revision is written last.
        if name in present:
            op.drop_table(name)
    op.create_table(
        "monitor_path",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("monitor", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("settings", LONG_TEXT, nullable=False),
        sa.Column("created", sa.String(32), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("changed", sa.BigInteger, nullable=False),
        **TEXT_OPTIONS,
    )
    op.create_table(
        "monitor_summary",
        _of_path(primary_key=True),
        sa.Column("quantity", sa.String(64), primary_key=True),
        sa.Column("seconds", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("start", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("lost", sa.Integer, nullable=False),
        *(sa.Column(name, sa.Float(53)) for name in ("min", "p05", "p50", "p95", "max", "mean")),
        **TEXT_OPTIONS,
        # SQLite keeps the key once then, and not in an index of its own: a third of the file.
        sqlite_with_rowid=False,
    )
    op.create_table(
        "monitor_outcome",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        _of_path(),
        sa.Column("test", sa.String(32), nullable=False),
        sa.Column("at", sa.Float(53), nullable=False),
        sa.Column("outcome", LONG_TEXT, nullable=False),
        **TEXT_OPTIONS,
    )
    op.create_index("monitor_outcome_path", "monitor_outcome", ["path_id", "test", "at"])
    op.create_table(
        "monitor_alert",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        _of_path(),
        sa.Column("quantity", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("since", sa.Float(53), nullable=False),
        sa.Column("found", sa.Float(53), nullable=False),
        sa.Column("ended", sa.Float(53)),
        sa.Column("text", LONG_TEXT, nullable=False),
        sa.Column("evidence", LONG_TEXT, nullable=False),
        sa.Column("cause", sa.String(255)),
        sa.Column("forecast", LONG_TEXT, nullable=False),
        **TEXT_OPTIONS,
    )
    op.create_index("monitor_alert_path", "monitor_alert", ["path_id", "found"])

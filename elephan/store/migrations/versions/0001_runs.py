"""Runs with their metrics and parameters."""

from typing import TypedDict

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0001"
down_revision = None
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


def upgrade() -> None:
    """Make the three tables."""
    op.create_table(
        "run",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("format", sa.Integer, nullable=False),
        sa.Column("created", sa.String(32), nullable=False),
        sa.Column("scenario", sa.String(255), nullable=False),
        sa.Column("ground", sa.String(16), nullable=False),
        sa.Column("version", sa.String(64), nullable=False),
        sa.Column("build", sa.String(64), nullable=False),
        sa.Column("seed", sa.String(20), nullable=False),
        sa.Column("record", LONG_TEXT, nullable=False),
        sa.Column("flow_series", sa.String(255)),
        sa.Column("link_series", sa.String(255)),
        **TEXT_OPTIONS,
    )
    op.create_index("ix_run_created", "run", ["created"])
    op.create_index("ix_run_scenario", "run", ["scenario"])
    op.create_table(
        "metric",
        sa.Column("run_id", sa.String(64), sa.ForeignKey("run.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("name", sa.String(255), primary_key=True),
        sa.Column("value", sa.Float(53)),
        **TEXT_OPTIONS,
    )
    op.create_index("metric_name_value", "metric", ["name", "value"])
    op.create_table(
        "parameter",
        sa.Column("run_id", sa.String(64), sa.ForeignKey("run.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("name", sa.String(255), primary_key=True),
        sa.Column("value", LONG_TEXT, nullable=False),
        **TEXT_OPTIONS,
    )
    op.create_index("parameter_name", "parameter", ["name"])

"""A digest beside each record, for `elephan results check`. Records of before have none."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    present = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("run")}
    if "sha256" not in present:
        op.add_column("run", sa.Column("sha256", sa.String(64)))

"""A run's `ground` is called `backend`. Its records keep the words of their format; they are read in the present
one."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Rename the column."""
    present = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("run")}
    if "ground" in present:
        op.alter_column(
            "run", "ground", new_column_name="backend", existing_type=sa.String(16), existing_nullable=False
        )

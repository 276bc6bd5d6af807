"""Order of a backup's runs beside the wall clock, which is set back at times."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column, filled by the clock of then; MariaDB commits after each step, so that some may be done."""
    inspected = sa.inspect(op.get_bind())
    if "sequence" not in {column["name"] for column in inspected.get_columns("backup_run")}:
        op.add_column("backup_run", sa.Column("sequence", sa.BigInteger, nullable=False, server_default="0"))
    # Not by a product in SQL: each database rounds it in its own way.
    runs = sa.table("backup_run", sa.column("id"), sa.column("begun"), sa.column("sequence"))
    connection = op.get_bind()
    for id_, begun in connection.execute(sa.select(runs.c.id, runs.c.begun).where(runs.c.sequence == 0)).all():
        connection.execute(sa.update(runs).where(runs.c.id == id_).values(sequence=round(begun * 1e9)))
    present = {index["name"] for index in inspected.get_indexes("backup_run")}
    if "backup_run_order" not in present:
        op.create_index("backup_run_order", "backup_run", ["job_id", "sequence"])
    if "backup_run_job" in present:
        op.drop_index("backup_run_job", "backup_run")

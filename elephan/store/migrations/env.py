"""Run by Alembic; the connection is handed over by `elephan.store.migrate`."""

from alembic import context

from elephan.store.schema import Base

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=Base.metadata, render_as_batch=True)
context.run_migrations()

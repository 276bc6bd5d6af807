"""Alembic's folder: how the store of an older elephan becomes that of this one."""

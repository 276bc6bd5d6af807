"""Errors that a person can act on. The command prints them as one line and never with a traceback.

Everything else that is raised is a fault of elephan and keeps its traceback.
"""

from __future__ import annotations


class ElephanError(Exception):
    """Base of errors that a user can cause and repair; `exit_code` is the command's."""

    exit_code = 1


class InputError(ElephanError):
    """The input is wrong: a file, a key, a value, an id. The text names the fault and the expected value."""

    exit_code = 2


class StoreError(ElephanError):
    """A result could not be written or read: no permission, disk full, a store of a newer elephan."""


class StoreAway(StoreError):
    """The server of a store cannot be reached, or has ended the connection; it may come back."""


class StoreUnusable(StoreError):
    """The place that was named for the store cannot be one: not a database, no such folder, read only."""

    exit_code = 2


class CoreMissing(ElephanError):
    """The native core is not built or does not fit this interpreter."""


class RunError(ElephanError):
    """A run could not be done on its backend."""

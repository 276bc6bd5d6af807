"""The backend `kernel`: the same scenario over this machine's real Linux TCP (docs/howto/kernel-backend.md)."""

from elephan.backends.kernel.backend import BACKEND, check, missing, require, run

__all__ = ["BACKEND", "check", "missing", "require", "run"]

"""The ground `kernel`: the same scenario over this machine's real Linux TCP (docs/howto/kernel-backend.md)."""

from elephan.grounds.kernel.controls import sweep
from elephan.grounds.kernel.ground import GROUND, check, missing, require, run

__all__ = ["GROUND", "check", "missing", "require", "run", "sweep"]

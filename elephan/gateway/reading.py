"""Read the file of a gateway: TOML in, validated tables out, one clear error where it cannot be."""

from __future__ import annotations

from pathlib import Path

from elephan.gateway.checks import faults
from elephan.gateway.config import Config
from elephan.scenario.validated import validated


def load(file: Path) -> Config:
    """Read the file of a gateway. Raises `InputError` with file, key, value and what would be right."""
    return validated(file, Config, lambda config: faults(file, config))

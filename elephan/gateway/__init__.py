"""A Fibre Channel gateway on real interfaces: its file, its run, its statistics. The protocols are the core's."""

from elephan.gateway.config import Config
from elephan.gateway.reading import load
from elephan.gateway.run import run

__all__ = ["Config", "load", "run"]

"""A scenario's path on this machine: two network namespaces with the link model between them, in wall-clock time."""

from elephan.path.report import Report
from elephan.path.shell import run
from elephan.path.testbed import clean

__all__ = ["Report", "clean", "run"]

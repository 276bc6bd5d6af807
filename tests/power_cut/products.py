"""Products that write to the disk, by name."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tests.power_cut.backups import Backups
from tests.power_cut.copies import Copies
from tests.power_cut.iscsi_image import IscsiImage
from tests.power_cut.monitor_journal import MonitorJournal
from tests.power_cut.result_store import ResultStore

if TYPE_CHECKING:
    from tests.power_cut.recording import Recorder


class Product(Protocol):
    """A product of elephan's that reports data as durable."""

    def prepare(self, work: Path, draw: random.Random) -> None:
        """Write the plan into `work`, and files into `places.SOURCES`, which is mounted."""

    def record(self, recorder: Recorder) -> None:
        """In the virtual machine: do the plan, with marks."""

    def judge(self, work: Path, marks: list[str]) -> list[str]:
        """Return what is wrong with `places.DISK`, a disk as the power cut after `marks` has left it, a line each.

        Called in the order of the log.
        """


PRODUCTS: dict[str, Product] = {
    "copy": Copies(),
    "backup": Backups(),
    "iscsi": IscsiImage(),
    "store": ResultStore(),
    "monitor": MonitorJournal(),
}

"""In the virtual machine: one product writes to a disk whose every write is logged.

    python -m tests.power_cut.recording WORK PRODUCT

WORK is the folder that `tests.power_cut` prepared. Disks: /dev/vda is only read, /dev/vdb loses its power, /dev/vdc
gets the log. The product calls `Recorder.mark` when something was reported as durable.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from tests.power_cut import places
from tests.power_cut.products import PRODUCTS

NAME = "logged"


class Recorder:
    """Marks in the log."""

    def __init__(self, work: Path) -> None:
        """`work`: what was prepared."""
        self.work = work
        self._lock = threading.Lock()

    def mark(self, text: str) -> None:
        """Write a mark into the log: what was acknowledged before is durable from here on."""
        # A message has words, and a mark is one of them.
        with self._lock:
            places.run("dmsetup", "message", NAME, "0", "mark", text.replace(" ", "_"))
        print(f"mark: {text}", flush=True)


def main() -> int:
    """Record."""
    work, product = Path(sys.argv[1]), sys.argv[2]
    places.mount("/dev/vda", places.SOURCES, "ro")
    sectors = int(Path("/sys/block/vdb/size").read_text())
    places.run("dmsetup", "create", NAME, "--table", f"0 {sectors} log-writes /dev/vdb /dev/vdc")
    try:
        places.mount(f"/dev/mapper/{NAME}", places.DISK)
        try:
            PRODUCTS[product].record(Recorder(work))
        finally:
            places.unmount(places.DISK)
    finally:
        # The end of the device writes the end of the log.
        places.run("dmsetup", "remove", NAME)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Power cuts: the disks that one may leave, mounted and compared with what was reported as durable.

    make power-cut                                               # all products on ext4 and XFS, as root
    python -m tests.power_cut --products copy --fs ext4 --points 50 --seed 7

A virtual machine runs each product on a disk below dm-log-writes. The log is then replayed here up to every flush and
to random points between, with a random part of what no flush has made durable; each of these disks is mounted, held
against the marks that were made before that point, and used again. "errors" is a copy in the machine, below dm-flakey:
its disk fails while it runs (`tests.power_cut.errors`). Exit code 1 if something is wrong.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from collections import Counter
from importlib import import_module
from pathlib import Path

from tests.copy.model import command
from tests.copy.model.places import private_mounts
from tests.power_cut import places
from tests.power_cut.copies import Copies
from tests.power_cut.products import PRODUCTS, Product
from tests.power_cut.write_log import Disk, cuts

TREE = Path(__file__).resolve().parents[2]
SCRIPT = TREE / "scripts" / "power_cut.sh"
LOG_MB = 4096
"""Room for the log; the file is sparse."""
SOURCES_MB = 256
PRELOADED = ("elephan.cli.backup", "elephan.backup.daemon", "elephan.backup.restoring", "elephan.backup.planning",
             "elephan.store.migrate", "elephan.store.check", "sqlite3", "alembic", "sqlalchemy")  # fmt: skip
ERRORS = "errors"
LINES = 8
"""Of a failure, printed at most."""
FAILURES = 10
"""After so many a product is left."""


def main() -> int:
    """Record and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--products", default=",".join((*PRODUCTS, ERRORS)), metavar="NAMES", help="(default: all)")
    parser.add_argument("--fs", default="ext4,xfs", metavar="NAMES", help="(default: ext4,xfs)")
    parser.add_argument("--points", type=int, default=500, help="random points between flushes (default: 500)")
    parser.add_argument("--seed", type=int, default=None, help="(default: the time)")
    parser.add_argument("--plant", action="store_true", help="plant a fault: nothing is synced (no_sync.c)")
    parser.add_argument("--again", action="store_true", help="judge the recordings that are there")
    chosen = parser.parse_args()
    seed = int(time.time()) if chosen.seed is None else chosen.seed
    if chosen.plant:
        library = TREE / "target" / "power_cut" / "no_sync.so"
        library.parent.mkdir(parents=True, exist_ok=True)
        places.run("cc", "-shared", "-fPIC", "-o", library, TREE / "tests" / "power_cut" / "no_sync.c")
        os.environ["PRELOAD"] = str(library)
    private_mounts()
    places.ROOT.mkdir(parents=True, exist_ok=True)
    # Images in memory, without a trace when this process ends.
    places.run("mount", "-t", "tmpfs", "-o", "size=4g", "power-cut", places.ROOT)
    command.load(places.ROOT)
    # For commands of backups and of results, each in a child of this process.
    for module in PRELOADED:
        import_module(module)
    failed = 0
    for name in chosen.products.split(","):
        for kind in chosen.fs.split(","):
            work = TREE / "target" / "power_cut" / f"{name}-{kind}"
            work.mkdir(parents=True, exist_ok=True)
            if name == ERRORS:
                prepare(Copies(), name, kind, work, seed)
                failed += machine(work, "errors") != 0
                print(f"errors on {kind}:\n{(work / 'console.txt').read_text()}")
                continue
            if not chosen.again:
                record(name, kind, work, seed)
            failed += judged(name, kind, work, chosen.points, seed)
    return 1 if failed else 0


def prepare(product: Product, name: str, kind: str, work: Path, seed: int) -> None:
    """Make the disks of a product."""
    places.make_image(work / "sources.img", "ext4", SOURCES_MB)
    places.mount(work / "sources.img", places.SOURCES, "loop")
    try:
        product.prepare(work, random.Random(f"{name} {kind} {seed}"))
    finally:
        places.unmount(places.SOURCES)
    places.make_image(work / "begin.img", kind, places.SIZE_MB[kind])
    places.run("cp", "--sparse=always", work / "begin.img", work / "disk.img")
    (work / "log.img").unlink(missing_ok=True)
    with (work / "log.img").open("wb") as file:
        file.truncate(LOG_MB << 20)


def machine(work: Path, *words: str) -> int:
    """Run a module in the virtual machine; its output is in `console.txt`. Returns the exit code."""
    done = subprocess.run([SCRIPT, words[0], work, *words[1:]], cwd=TREE, capture_output=True, text=True)
    (work / "console.txt").write_text(done.stdout + done.stderr)
    return done.returncode


def record(name: str, kind: str, work: Path, seed: int) -> None:
    """Let a product write to its disk in the virtual machine."""
    prepare(PRODUCTS[name], name, kind, work, seed)
    if machine(work, "recording", name) != 0:
        raise SystemExit(f"{name} on {kind}: the recording failed:\n{(work / 'console.txt').read_text()[-3000:]}")


def judged(name: str, kind: str, work: Path, points: int, seed: int) -> int:
    """Judge the cuts of a recording; return the number of wrong ones."""
    image, scratch = places.ROOT / "disk.img", places.ROOT / "cut.img"
    places.run("cp", "--sparse=always", work / "begin.img", image)
    places.mount(work / "sources.img", places.SOURCES, "loop,ro")
    disk = Disk(image, work / "log.img")
    counts: Counter[str] = Counter()
    began_s, failed = time.monotonic(), 0
    try:
        for cut in cuts(disk.entries, points, seed):
            disk.cut(cut, scratch)
            counts[cut.kind] += 1
            if lines := one(PRODUCTS[name], kind, work, scratch, disk.marks(cut)):
                failed += 1
                last = disk.marks(cut)[-1:]
                print(f"{name} on {kind}, {cut}, behind {last}: {lines[0]}")
                for line in lines[1:LINES]:
                    print(f"    {line}")
                if failed == FAILURES:
                    break
    finally:
        disk.close()
        places.unmount(places.SOURCES)
    parts = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
    marks = sum(entry.mark is not None for entry in disk.entries)
    print(
        f"{name} on {kind}: {len(disk.entries)} entries, {marks} marks; cuts: {parts}; {failed} failed; "
        f"{time.monotonic() - began_s:.0f} s; seed {seed}",
        flush=True,
    )
    return failed


def one(product: Product, kind: str, work: Path, image: Path, marks: list[str]) -> list[str]:
    """Mount the disk of a cut and judge it."""
    options = "loop" if kind == "ext4" else "loop,nouuid"
    try:
        places.mount(image, places.DISK, options)
    except RuntimeError as error:
        return [f"cannot be mounted: {error}"]
    try:
        return product.judge(work, marks)
    finally:
        places.unmount(places.DISK)


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())

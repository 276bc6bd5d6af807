"""Statements of a copy about itself, each held against the trees: receipts, what it leaves, and rsync's opinion."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from tests.copy.model import command, judge
from tests.copy.model.command import Result
from tests.copy.model.predict import CAPABILITY, STATE, Prediction
from tests.copy.model.request import Request
from tests.copy.model.walk import Tree

if TYPE_CHECKING:
    from tests.copy.model.sequence import World

VERIFIED_REMOTE = 3
"""Of copies between hosts one in so many is verified by its receipt."""


def check_receipts(world: World, code: int) -> None:
    """No receipt replaces an older one, whatever the clock says."""
    found = {path.name: path.read_bytes() for path in (world.state / "elephan" / "receipts").glob("[!.]*")}
    gone = [name for name, content in world.receipts.items() if found.get(name) != content]
    if code == 0 and len(found) <= len(world.receipts):
        world.fail([f"no receipt is kept: {sorted(found)}"])
    world.receipts = found
    if gone:
        world.fail([f"receipts are gone, or others now: {sorted(gone)}"])


def check_receipt(world: World, request: Request, prediction: Prediction, result: Result, file: Path) -> None:
    """A receipt is a promise: it has the numbers of the prediction, and both sides agree with it."""
    try:
        receipt = json.loads(file.read_text())
    except FileNotFoundError:
        if result.code == 0:
            world.fail(["no receipt"])
        return
    if result.code != 0:
        if not receipt["faults"]:
            world.fail(["the receipt lists no fault"])
        return
    lines = []
    # Each source whose content is copied has an entry for the destination itworld.
    contents = sum(source.endswith(b"/") for source in request.sources)
    wanted = {
        "entries": len(prediction.entries) + max(0, contents - 1),
    }
    sizes = {node.inode: node.size for node in prediction.entries.values() if node.kind == "file"}
    wanted |= {"files": len(sizes), "bytes": sum(sizes.values())}
    is_known = not world.is_disturbed and not prediction.vague
    if is_known:
        wanted["removed"] = len(prediction.removed)
    if "removals" in receipt and is_known:
        there = sorted(receipt["removals"])
        if len(there) != len(prediction.removed):
            lines.append(f"the receipt lists removals {there}, should be {len(prediction.removed)}")
    for key, value in wanted.items():
        if receipt[key] != value:
            lines.append(f"the receipt has {key} {receipt[key]}, should be {value}")
    if receipt["faults"]:
        lines.append(f"the receipt lists {receipt['faults'][:2]}")
    if lines:
        world.fail(lines)
    if prediction.settled or world.stealth:
        # Sides differ that size and time call the same.
        return
    if request.user is not None and any(node.mode & 0o500 != 0o500 for node in prediction.entries.values()):
        # Files that need not be copied, and that the user may not read.
        return
    world.machine.counts["by number"] += 1
    if request.ends and world.machine.counts["by number"] % VERIFIED_REMOTE:
        # Each costs two sessions more.
        return
    verify = [b"copy", b"verify", os.fsencode(file)]
    verified = command.start([verify, [*verify, b"--side=source"]], world.state, request.user).wait()
    if verified.code != 0:
        world.fail([f"elephan copy verify: exit code {verified.code}: {verified.output.strip()[-500:]}"])
    world.machine.counts["verified"] += 1
    check_refutation(world, request, prediction, verify)


def check_refutation(world: World, request: Request, prediction: Prediction, verify: list[bytes]) -> None:
    """A receipt does not agree with a file of another byte or size, whatever its time says."""
    files = [
        path
        for path, node in prediction.tree.items()
        if path in prediction.entries and node.kind == "file" and node.size and path not in prediction.choices
    ]
    number, is_due = divmod(world.machine.counts["by number"], 8)
    if not files or is_due:
        return
    path = world.root + b"/" + files[len(world.steps) % len(files)]
    if CAPABILITY in os.listxattr(path):
        # A write removes it.
        return
    what = ("another byte", "a byte more", "a byte less")[number % 3]
    found = os.lstat(path)
    handle = os.open(path, os.O_RDWR)
    try:
        at = found.st_size - 1
        byte = os.pread(handle, 1, at)
        if what == "another byte":
            os.pwrite(handle, bytes([byte[0] ^ 1]), at)
        else:
            os.truncate(handle, found.st_size + (1 if what == "a byte more" else -1))
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
        result = command.start([verify], world.state, request.user).wait()
        os.truncate(handle, found.st_size)
        os.pwrite(handle, byte, at)
    finally:
        os.close(handle)
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    world.machine.counts["refuted"] += 1
    # Of a file without a hash the size is known.
    if result.code == 0 and (what != "another byte" or "without" not in result.output):
        world.fail([f"elephan copy verify agrees with {what} in {judge.shown(path)}: {result.output.strip()}"])


def check_state(world: World) -> None:
    """Nothing is left with the user but receipts, manifests and journals, and copies that were not run again."""
    left = sorted(world.states() - world.unfinished)
    left += [path.name for path in (world.state / "elephan" / "receipts").glob(".*")]
    if left:
        world.fail([f"left in the user's state: {left}"])


def check_rsync(world: World, request: Request, prediction: Prediction, after: Tree) -> None:
    """rsync, too, finds nothing to do, where its options say the same."""
    plain = request.switches <= {
        "mirror",
        "checksum",
        "whole",
        "verify_read",
        "quic",
        "one_stream",
        "many_streams",
        "slow",
        "no_sparse",
    }
    if not plain or request.exclude or prediction.faults or prediction.excess or request.user is not None:
        return
    if shutil.which("rsync") is None or request.destination != b"dst" or len(request.sources) > 1:
        return
    # It would copy names that a copy leaves out.
    areas = {source.split(b"/")[0] for source in request.sources}
    odd = [
        path
        for path, node in after.items()
        if path.split(b"/")[0] in areas and (STATE in path or node.kind == "socket")
    ]
    if odd or after[request.sources[0].rstrip(b"/")].kind != "folder":
        return
    options = ["-aHAXni"] + (["-c"] if request.on("checksum") else [])
    world.machine.counts["by rsync"] += 1
    if lines := judge.by_rsync(world.root, request.sources, request.destination, set(), options):
        world.fail(lines)

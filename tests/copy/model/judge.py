"""Differences between the tree that a copy left and the one that it had to leave."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterable

from tests.copy.model.predict import CAPABILITY, SET_ID, STATE, Prediction
from tests.copy.model.walk import Node, Tree, below, parent

FIELDS = ("kind", "mode", "uid", "gid", "modified_ns", "xattrs", "content", "size")
ACL = "system.posix_acl_access"
ACL_OWNER, ACL_GROUP, ACL_MASK, ACL_OTHERS = 0x01, 0x04, 0x10, 0x20
"""Tags of entries (linux/posix_acl.h)."""
HOLE_BYTES = 128 << 10
"""A hole of this size stays one on every file system: their blocks, and what they allocate ahead, are smaller."""


def shown(path: bytes) -> str:
    """Return a path as text."""
    return ascii(path.decode("latin-1"))[1:-1]


def differences(prediction: Prediction, after: Tree, before: Tree, scope: bytes) -> list[str]:
    """Return what is wrong after a copy, one line each. Below `scope` inodes may be new, elsewhere not."""
    lines = []
    # The folder of the world itself changes with what is beside the destination.
    for path in sorted((prediction.tree.keys() | after.keys() | prediction.choices.keys()) - {b""}):
        if path in prediction.choices:
            choices = prediction.choices[path]
        else:
            choices = [prediction.tree.get(path)]
        lines += _differs(path, choices, after.get(path))
    lines += _links(prediction, after, before, scope)
    lines += _holes(prediction, after)
    for path, older in prediction.linked.items():
        if path in after and older in after and after[path].inode != after[older].inode:
            lines.append(f"{shown(path)}: is the same as {shown(older)}, and no hard link to it")
    return lines


def _differs(path: bytes, choices: list[Node | None], found: Node | None) -> list[str]:
    problems: list[list[str]] = []
    for expected in choices:
        if expected is None and found is None:
            return []
        if expected is None:
            assert found is not None
            temporary = " (a name of the copy's own)" if STATE in path else ""
            problems.append([f"{shown(path)}: a {found.kind} is there{temporary}, nothing should be"])
        elif found is None:
            problems.append([f"{shown(path)}: is missing, a {expected.kind} should be there"])
        else:
            wrong = fields_that_differ(expected, found)
            if not wrong:
                return []
            problems.append([f"{shown(path)}: {line}" for line in wrong])
    return min(problems, key=len)


def fields_that_differ(expected: Node, found: Node) -> list[str]:
    """Return what is wrong with an entry."""
    if expected.kind != found.kind:
        return [f"is a {found.kind}, should be a {expected.kind}"]
    wrong = []
    if expected.owners and found.uid not in expected.owners:
        wrong.append(f"uid {found.uid}, should be {' or '.join(map(str, sorted(expected.owners)))}")
    if "few_xattrs" in expected.unjudged:
        more = {name for name in found.xattrs if not name.startswith("system.")} - expected.xattrs.keys()
        if more:
            wrong.append(f"has attributes {sorted(more)}, which it should not get")
        if ACL in found.xattrs and "inherited_acl" not in expected.unjudged:
            if found.xattrs[ACL] != _by_mode(expected.xattrs, found.mode).get(ACL):
                wrong.append(f"has the ACL {found.xattrs[ACL]!r}, which it should not get")
    for name in FIELDS:
        if name in expected.unjudged:
            continue
        want, have = getattr(expected, name), getattr(found, name)
        if name == "mode" and "set_id" in expected.unjudged and not _is_of_owners(expected, found):
            want &= ~SET_ID
        if name == "xattrs" and "capability" in expected.unjudged:
            want, have = ({key: value for key, value in found.items() if key != CAPABILITY} for found in (want, have))
        if name == "xattrs" and "acl_by_mode" in expected.unjudged:
            want = _by_mode(want, found.mode)
        if want == have:
            continue
        if name == "mode":
            wrong.append(f"mode {have:04o}, should be {want:04o}")
        elif name == "content":
            size = f", size {found.size}" if found.size != expected.size else ""
            wrong.append(f"content {have[:6].hex()}, should be {want[:6].hex()}{size}")
        else:
            wrong.append(f"{name} {have!r}, should be {want!r}")
    return wrong


def _is_of_owners(expected: Node, found: Node) -> bool:
    """Return True if owner and group are the source's: with others, a program would run with their rights."""
    return (found.uid, found.gid) == expected.source_owners


def _by_mode(xattrs: dict[str, bytes], mode: int) -> dict[str, bytes]:
    """Return attributes whose ACL is that of a mode (acl(5)): owner, mask or else group, others."""
    if ACL not in xattrs:
        return xattrs
    head, entries = xattrs[ACL][:4], list(struct.iter_unpack("<HHI", xattrs[ACL][4:]))
    has_mask = any(tag == ACL_MASK for tag, _, _ in entries)
    bits = {ACL_OWNER: mode >> 6 & 7, ACL_MASK if has_mask else ACL_GROUP: mode >> 3 & 7, ACL_OTHERS: mode & 7}
    return xattrs | {
        ACL: head + b"".join(struct.pack("<HHI", tag, bits.get(tag, may), who) for tag, may, who in entries)
    }


def _links(prediction: Prediction, after: Tree, before: Tree, scope: bytes) -> list[str]:
    """Names of the same file are those that have to be, and no file outside of the copy became another."""
    lines = []
    labels: dict[tuple[object, ...], set[tuple[object, ...]]] = {}
    inodes: dict[tuple[object, ...], set[tuple[object, ...]]] = {}
    names: dict[tuple[object, ...], list[bytes]] = {}
    for path, expected in prediction.tree.items():
        found = after.get(path)
        if path in prediction.choices or found is None or expected.kind != "file" or found.kind != "file":
            continue
        is_outside = path != scope and not path.startswith(scope + b"/")
        if is_outside and found.inode != before[path].inode:
            lines.append(f"{shown(path)}: is another file now")
        if "inode" in expected.unjudged:
            continue
        labels.setdefault(expected.inode, set()).add(found.inode)
        names.setdefault(expected.inode, []).append(path)
        # A name that is no entry may stay one of a file that stays.
        if not is_outside and path in prediction.entries:
            inodes.setdefault(found.inode, set()).add(expected.inode)
    for label, found_inodes in labels.items():
        if len(found_inodes) > 1:
            lines.append(f"{', '.join(map(shown, names[label]))}: names of one file at the sources, of several here")
    for merged in inodes.values():
        if len(merged) > 1:
            paths = [shown(path) for label in merged for path in names[label]]
            lines.append(f"{', '.join(sorted(paths))}: names of one file, should be of several")
    return lines


def _holes(prediction: Prediction, after: Tree) -> list[str]:
    lines = []
    for path, expected in prediction.tree.items():
        found = after.get(path)
        if found is None or expected.kind != "file" or "extents" in expected.unjudged or path in prediction.choices:
            continue
        at = 0
        for begin, end in (*expected.extents, (expected.size, expected.size)):
            if begin - at >= HOLE_BYTES:
                filled = sum(max(0, min(b, begin) - max(a, at)) for a, b in found.extents)
                if filled >= HOLE_BYTES:
                    lines.append(f"{shown(path)}: {filled} bytes of the hole from {at} to {begin} are no hole")
            at = end
    return lines


def torn(
    prediction: Prediction,
    before: Tree,
    after: Tree,
    scope: bytes,
    *,
    lenient: bool = False,
    later: Prediction | None = None,
) -> list[str]:
    """Return what is wrong after a copy that was killed or failed: each name is wholly old or wholly new.

    `lenient`: a file may lack metadata, since setting them has failed. `later`: another end that is as right.
    """
    lines = []
    for path in sorted(prediction.tree.keys() | before.keys() | after.keys()):
        if is_own(path, scope) or not path:
            continue
        old, new, found = before.get(path), prediction.tree.get(path), after.get(path)
        if not (path == scope or path.startswith(scope + b"/")):
            if path == parent(scope) and old is not None:
                old = old.but(unjudged=old.unjudged | {"modified_ns"})
            lines += _differs(path, [old], found)
        elif found is None:
            # A file is replaced in one step; an entry that changes its type, or is removed, may be missing.
            if (later is not None and path not in later.tree) or None in prediction.choices.get(path, ()):
                continue
            if old is not None and new is not None and (old.kind == "folder") == (new.kind == "folder"):
                if (
                    parent(path) in after
                    and after[parent(path)].kind == "folder"
                    and not path_changes(path, before, prediction)
                ):
                    lines.append(f"{shown(path)}: is missing, was there before")
        else:
            lines += _half(path, old, new, found, prediction, lenient, later)
    return lines


def path_changes(path: bytes, before: Tree, prediction: Prediction) -> bool:
    """Return True if a folder above a path changes its type."""
    while path := parent(path):
        old, new = before.get(path), prediction.tree.get(path)
        if old is None or new is None or old.kind != new.kind:
            return True
    return False


def is_own(path: bytes, scope: bytes) -> bool:
    """Return True for names of the copy's own, which an interrupted copy may leave below its destination."""
    inside = path.startswith(scope + b"/") or path.startswith(parent(scope) + b"/" if parent(scope) else b"")
    return inside and any(name.startswith(STATE) for name in path.split(b"/"))


def _half(
    path: bytes,
    old: Node | None,
    new: Node | None,
    found: Node,
    prediction: Prediction,
    lenient: bool,
    later: Prediction | None,
) -> list[str]:
    ends = [prediction] if later is None else [prediction, later]
    choices = [node for end in ends for node in (old, end.tree.get(path), end.entries.get(path)) if node is not None]
    for node in choices:
        # Times and modes of folders are set at the end.
        if node.kind == found.kind and (node.kind == "folder" or not fields_that_differ(node, found)):
            return []
    if not choices:
        return [f"{shown(path)}: a {found.kind} is there, which neither side had"]
    same = [node for node in choices if node.kind == found.kind and node.content == found.content]
    if not same:
        return [f"{shown(path)}: is torn: neither its old nor its new content, size {found.size}"]
    if lenient:
        return []
    if old in same and new is not None and (new.content == old.content if old is not None else False):
        # Metadata of a file whose content stays are set one after the other.
        return []
    return [f"{shown(path)}: half of its metadata: {'; '.join(fields_that_differ(same[0], found))}"]


def by_rsync(
    root: bytes, sources: Iterable[bytes], destination: bytes, extras: set[bytes], options: list[str]
) -> list[str]:
    """Return what `rsync --dry-run` would change, but for removals of `extras`, paths below the destination."""
    # XFS shows root each ACL a second time, under this name.
    words: list[bytes] = [b"rsync", b"--filter=-x trusted.SGI_ACL_*", *map(str.encode, options)]
    words += [root + b"/" + source for source in sources] + [root + b"/" + destination + b"/"]
    done = subprocess.run(words, capture_output=True)
    if done.returncode != 0:
        return [f"rsync: {done.stderr.decode(errors='replace').strip()}"]
    lines = []
    for line in done.stdout.split(b"\n"):
        if line.startswith(b"*deleting"):
            continue
        if line.strip():
            lines.append(f"rsync would change: {ascii(line.decode('latin-1'))}")
    return lines


def folders_below(tree: Tree, scope: bytes) -> list[bytes]:
    """Return the folders of a tree below a path."""
    return [path for path in [scope, *below(tree, scope)] if path in tree and tree[path].kind == "folder"]

"""Steps drawn at random: changes of trees and copies with their options, disturbed or not."""

from __future__ import annotations

import os
import random
import re
from dataclasses import replace
from typing import Any

from tests.copy.model.changes import BOUNDARIES, CHUNK, Step
from tests.copy.model.request import CARRIED, SWITCHES, Request

NAMES = (
    b"a", b"b", b"c", b"d", b"x.tmp", b"cache", b"-dash", b"--mirror", b"new\nline", b"\xff\xfe", b"sp ace ", b".hid",
    b"..x", b"\xe2\x82\xac", b"a:b", b"back\\slash", b"*", b"[a]", b"tab\t", b"n" * 255, b"\x01\x7f", b"%s%n", b"$(x)",
)  # fmt: skip
PATTERNS = ("*.tmp", "cache/", "/a", "a/*", "**/b", "[ab]", "c", "/d/*.tmp", "b/", "?", "*", "/cache/**")
MODES = (0o644, 0o600, 0o640, 0o755, 0o700, 0o4755, 0o2755, 0o6711, 0o1777, 0o000, 0o444, 0o555, 0o777, 0o2770)
MODES_OF_OWNERS = (None, None, 0o4755, 0o2755, 0o6711, 0o2770)
"""Of an entry whose owner is changed: bits that hold for one owner alone are drawn with the owner."""
OWNERS = (0, 0, 1, 1000, 1001, 65534, 70_000, 4_000_000_000)
USER = 12_345
"""A user without rights, in some sequences."""
THEN = ("no_owners", "no_xattrs", "no_sparse", "checksum", "whole", "verify_read")
"""Options that the next run of a copy may have or not, though the killed one was made otherwise."""
WITHOUT: set[str] = set()
SLOW_SHARE = 0.04
"""Of copies with a rate, which therefore make several commits."""
QUIC_SHARE = 0.2
FORGET_SHARE, FORGET_NAME_SHARE = 0.25, 0.5
"""Of killed copies: those that are given up; of the few that give one file another name the larger share."""
RESTARTS_SHARE = 0.2
"""Of killed copies: those whose files are removed before the next attempt, which is killed too."""
DAY_S = 86_400
CLOCK_STEPS_S = (1, -1, 3600, -3600, DAY_S, -DAY_S, 40 * DAY_S, -40 * DAY_S, 4000 * DAY_S, -4000 * DAY_S)
"""Steps of the wall clock, s."""
KILLS_MAX = 160
"""Changing system calls of a copy of some twenty changed entries."""

CUTS_MAX = 50
"""Changing system calls of both ends before which a connection is cut: most copies reach them."""
KILLS_SENDER_MAX = 16
"""The same of an end that only sends."""


class Draw:
    """Draws steps for one world, of which it sees the names."""

    def __init__(
        self,
        seed: int,
        root: bytes,
        kinds: dict[str, float],
        options: frozenset[str],
        remote_share: float = 0.0,
        has_clock: bool = False,
    ) -> None:
        """`kinds`: weights of how copies are disturbed. `options`: names that this version of elephan knows.
        `remote_share`: probability that copies are between two hosts. `has_clock`: the clock can be set.
        """
        self.random = random.Random(seed)
        self.root = root
        self.kinds = kinds
        self.options = options
        self.number = 0
        self.user = USER if self.random.random() < 0.12 else None
        self.stealth = self.random.random() < 0.3
        """Changes that size and time do not show are drawn, and so some hashes are of an earlier content."""
        self.is_remote = self.random.random() < remote_share
        self.has_clock = has_clock

    def names(self, area: bytes) -> tuple[list[bytes], list[bytes]]:
        """Return folders and other entries of an area, relative to the world."""
        folders, others = [area], []
        pending = [area]
        while pending:
            folder = pending.pop()
            try:
                found = sorted(os.listdir(self.root + b"/" + folder))
            except OSError:
                continue
            for name in found:
                path = folder + b"/" + name
                full = self.root + b"/" + path
                if os.path.isdir(full) and not os.path.islink(full):
                    folders.append(path)
                    pending.append(path)
                else:
                    others.append(path)
        return sorted(folders), sorted(others)

    def seed(self) -> int:
        """Return a seed that no other step has."""
        self.number += 1
        return self.number * 1009 + self.random.randrange(1000)

    def size(self) -> int:
        """Return a size of a file: mostly small, or at a boundary."""
        draw = self.random
        return draw.choice(
            (
                draw.choice(BOUNDARIES),
                draw.randrange(200),
                draw.randrange(9000),
                draw.randrange(9000),
                draw.randrange(5 * CHUNK),
            )
        )

    def create(self, area: bytes) -> Step:
        """Return a step that makes an entry."""
        draw = self.random
        folders, _ = self.names(area)
        folder = draw.choice(folders)
        if folder.count(b"/") > 6:
            folder = area
        path = text(folder + b"/" + draw.choice(NAMES))
        kind = draw.choices(
            ("file", "folder", "symlink", "fifo", "socket", "character device", "block device"),
            (60, 22, 8, 3, 1, 2, 1),
        )[0]
        if kind != "file":
            return ["create", path, kind, self.seed()]
        holes = draw.choice(("", "", "", "", "end", "begin", "middle", "all", "many"))
        size = draw.randrange(2 * CHUNK, 5 * CHUNK) if holes == "many" else self.size()
        return ["file", path, self.seed(), size, holes]

    def change(self, area: bytes) -> Step:
        """Return a step that changes an area."""
        draw = self.random
        folders, others = self.names(area)
        files = [
            path
            for path in others
            if os.path.isfile(self.root + b"/" + path) and not os.path.islink(self.root + b"/" + path)
        ]
        entries = folders[1:] + others
        if not entries or draw.random() < 0.22:
            return self.create(area)
        path = draw.choice(entries)
        if files and draw.random() < 0.5:
            return self.change_file(draw.choice(files), files, folders)
        kind = draw.choice(
            ("swap", "move", "type", "remove", "chmod", "chown", "attribute", "attribute", "touch", "chmod")
        )
        if self.user is not None and kind in ("chown", "attribute"):
            kind = "chmod"
        if kind == "swap":
            return ["swap", text(path), text(draw.choice(entries))]
        if kind == "move":
            return ["move", text(path), text(draw.choice(folders) + b"/" + draw.choice(NAMES))]
        if kind == "type":
            return ["type", text(path), draw.choice(("file", "folder", "symlink", "fifo", "folder")), self.seed()]
        if kind == "chmod":
            return ["chmod", text(path), draw.choice(MODES)]
        if kind == "chown":
            return ["chown", text(path), draw.choice(OWNERS), draw.choice(OWNERS), draw.choice(MODES_OF_OWNERS)]
        if kind == "remove":
            return ["remove", text(path)]
        return [kind, text(path), self.seed()]

    def change_file(self, path: bytes, files: list[bytes], folders: list[bytes]) -> Step:
        """Return a step that changes a file."""
        draw = self.random
        size = os.lstat(self.root + b"/" + path).st_size
        kind = draw.choice(
            (
                "shrink",
                "shrink",
                "grow",
                "rewrite",
                "rewrite",
                "punch",
                "preallocate",
                "link",
                "link",
                "break",
                "replace",
                "boundary",
                "touch",
            )
        )
        stealth = self.stealth and draw.random() < 0.25
        shown = text(path)
        if kind == "shrink":
            return ["resize", shown, draw.choice((0, size // 2, size - 1, size - 4096)), self.seed(), False]
        if kind == "grow":
            return [
                "resize",
                shown,
                size + draw.choice((1, 4096, draw.randrange(1, 70_000), CHUNK)),
                self.seed(),
                False,
            ]
        if kind == "boundary":
            return ["resize", shown, draw.choice(BOUNDARIES), self.seed(), False]
        if kind == "rewrite":
            return ["rewrite", shown, draw.randrange(size + 1), draw.choice((1, 100, 5000)), self.seed(), stealth]
        if kind == "punch":
            return ["punch", shown, draw.randrange(size + 1), draw.choice((4096, 70_000, 2 * CHUNK)), self.seed()]
        if kind == "preallocate":
            return ["preallocate", shown, draw.choice((1, 5000, 300_000)), self.seed()]
        if kind == "link":
            return ["link", shown, text(draw.choice(folders) + b"/" + draw.choice(NAMES))]
        if kind == "break":
            linked = [one for one in files if os.lstat(self.root + b"/" + one).st_nlink > 1]
            return ["break", text(draw.choice(linked or [path])), self.seed(), draw.random() < 0.6]
        if kind == "replace":
            return ["replace", shown, self.seed(), self.size()]
        return ["touch", shown, self.seed()]

    def change_unseen(self) -> Step:
        """Return a change of a source that size and time do not show."""
        draw = self.random
        folders, others = self.names(b"src")
        files = [path for path in others if is_plain(path, self.root)]
        path = draw.choice(files or folders)
        kind = draw.choice(("break", "break", "chmod", "chown", "attribute"))
        if kind == "break":
            linked = [one for one in files if os.lstat(self.root + b"/" + one).st_nlink > 1]
            return ["break", text(draw.choice(linked or [path])), self.seed(), True]
        if kind == "chmod" or self.user is not None:
            return ["chmod", text(path), draw.choice(MODES)]
        if kind == "chown":
            return ["chown", text(path), draw.choice(OWNERS), draw.choice(OWNERS), draw.choice(MODES_OF_OWNERS)]
        return ["attribute", text(path), self.seed()]

    def large(self) -> Step:
        """Return a step that makes a file of several chunks: a copy that is killed has records of some of them."""
        return ["file", "src/large", self.seed(), self.random.randrange(3 * CHUNK, 6 * CHUNK), ""]

    def beginning(self) -> list[str]:
        """Return the areas in which a new world gets an entry each."""
        return [
            *(["src"] * self.random.randrange(4, 18)),
            *(["src2"] * 3),
            *(["sib"] * 2),
            *(["dst"] * self.random.choice((0, 0, 3))),
        ]

    def area(self) -> bytes:
        """Return the area that the next change is in."""
        return self.random.choices((b"src", b"src2", b"dst", b"sib"), (72, 5, 19, 4))[0]

    def mount(self) -> Step:
        """Return a step that mounts something at a folder, which may be a new one."""
        draw = self.random
        kind = draw.choice(("tmpfs", "bind", "twin"))
        folders, _ = self.names(b"src" if kind == "twin" else draw.choice((b"src", b"dst", b"dst")))
        folder = draw.choice(folders)
        if draw.random() < 0.5:
            folder += b"/mount"
        return ["mount", text(folder), kind]

    def copy(self, has_older: bool) -> Step:
        """Return a step that copies."""
        request = self.request(has_older)
        how = self.how(request)
        if (
            how.get("between", [[""]])[0][0] in ("rewrite all", "cut parts")
            and "slow" not in WITHOUT
            and self.random.random() < 0.7
        ):
            # Both ends have records of some chunks of a file: they are told of one commit before the next one.
            request = replace(request, switches=request.switches | {"slow"})
            how["kill"][0] = ["fdatasync", self.random.randrange(2, 9)]
            how |= {"sides": [receiver(request), *how["sides"][1:]]} if request.ends else {}
        return ["copy", request.as_step(), how]

    def request(self, has_older: bool) -> Request:
        """Return a copy with random options."""
        draw = self.random
        form = draw.choices(("content", "folder", "two", "two contents", "file"), (60, 14, 8, 7, 11))[0]
        sources: tuple[bytes, ...] = (b"src/",)
        destination = b"dst"
        if form == "folder":
            sources = (b"src",)
        elif form == "two":
            sources = (b"src", b"src2")
        elif form == "two contents":
            sources = (b"src/", b"src2/")
        elif form == "file" and self.user is None:
            _, others = self.names(b"src")
            others = [path for path in others if is_plain(path, self.root)]
            if others:
                sources = (draw.choice(others),)
                if draw.random() < 0.5:
                    destination = b"dst/" + draw.choice((b"a", b"b", b"new"))
        switches: set[str] = set()
        if draw.random() < 0.65:
            names = sorted(set(SWITCHES) - {"mirror", "quic", "slow"} - WITHOUT)
            switches |= set(draw.sample(names, draw.randrange(1, 4)))
        if {"one_stream", "many_streams"} <= switches:
            switches.discard("one_stream")
        if draw.random() < SLOW_SHARE and "slow" not in WITHOUT:
            switches.add("slow")
        if draw.random() < QUIC_SHARE and "quic" not in WITHOUT:
            switches.add("quic")
        if form != "file" and draw.random() < 0.45:
            switches.add("mirror")
        exclude = tuple(draw.sample(PATTERNS, draw.randrange(1, 3))) if draw.random() < 0.15 else ()
        if "mirror" in switches and draw.random() < 0.25 and (removed := self.removed_below()):
            # Excluded entries stay, with the folders above.
            exclude = (*exclude[:1], draw.choice(removed))
        link_to = b"old" if has_older and draw.random() < 0.5 else None
        removals = None
        if "mirror" in switches and "--max-removals" in self.options:
            removals = draw.choice((None, None, None, 1000, 1000, 1000, 0, 1, 3))
        ends, carried = "", None
        if self.is_remote:
            ends = draw.choices(("destination", "source", "both", ""), (45, 40, 7, 8))[0]
        if ends and draw.random() < 0.4:
            carried = draw.choice(CARRIED)
            if "quic" in switches and carried != "--listen=local" or ends == "both":
                carried = None
        return Request(sources, destination, frozenset(switches), exclude, link_to, removals, self.user, ends, carried)

    def removed_below(self) -> list[str]:
        """Return patterns of names in folders of the destination that the sources do not have."""
        folders, others = self.names(b"dst")
        lead = len(b"dst/")
        gone = [path for path in folders[1:] if not os.path.lexists(self.root + b"/src/" + path[lead:])]
        found = {path.rpartition(b"/")[2] for path in folders + others if path.rpartition(b"/")[0] in gone}
        return sorted(name.decode() for name in found if re.fullmatch(rb"[.\w]+", name))

    def device(self) -> Step:
        """Return a step that copies to a block device, or from one."""
        draw = self.random
        at = kill_at(draw) if draw.random() < 0.5 else None
        return ["device", draw.choice(("to", "to", "both", "from")), self.seed(), at, draw.random() < 0.4]

    def clock(self) -> Step:
        """Return a step that sets the clock."""
        return ["clock", self.random.choice(CLOCK_STEPS_S)]

    def how(self, request: Request) -> dict[str, Any]:
        """Return how a copy is disturbed."""
        how = self.disturbance(request)
        if self.has_clock and self.random.random() < 0.12:
            how["clock"] = [self.random.randrange(1, 60), self.random.choice(CLOCK_STEPS_S)]
        return how

    def disturbance(self, request: Request) -> dict[str, Any]:
        """Return how a copy is disturbed, but for the clock."""
        draw = self.random
        kind = draw.choices(list(self.kinds), list(self.kinds.values()))[0]
        if kind == "cut" and not request.ends:
            kind = "kill"
        if kind == "cut":
            what = draw.choice(("link", "link", "data", "one", "all"))
            seconds = draw.choice((0.05, 0.3, 1.0, 2.5)) if what == "link" else 0.0
            return {"cut": [draw.randrange(1, CUTS_MAX), what, seconds]}
        if kind == "kill":
            if is_new_name(request) and draw.random() < FORGET_NAME_SHARE:
                # One file makes few calls.
                at = draw.choice((["pwrite64", 1], ["fdatasync", 1], ["renameat", 1], draw.randrange(1, 40)))
                return {"kill": [at], "forget": True} | ({"sides": [receiver(request)]} if request.ends else {})
            # Two in a row: the second one meets what the first has left.
            count = draw.choice((1, 1, 1, 2, 3))
            how: dict[str, Any] = {"kill": [kill_at(draw) for _ in range(count)]}
            if request.ends:
                how["sides"] = [draw.choice(("here", "there", "there")) for _ in range(count)]
                for number, side in enumerate(how["sides"]):
                    # A sender changes its own state alone.
                    if side != receiver(request):
                        how["kill"][number] = draw.randrange(1, KILLS_SENDER_MAX)
                if draw.random() < 0.3:
                    # The same command runs at once, before the other end knows that this one is gone.
                    how["hasty"] = True
            if draw.random() < RESTARTS_SHARE:
                # A user removes the files after each attempt. One is killed when some of them have names, the next
                # one when new parts have their length, and not all of their chunks.
                renames = [["renameat", draw.randrange(1, 4)], ["renameat", draw.randrange(2, 12)]]
                how["kill"] = [*renames, ["pwrite64", draw.randrange(1, 12)]]
                how["sides"] = [receiver(request)] * 3
                how["between"] = [["remove files", "dst", self.seed()]]
            elif draw.random() < (0.6 if self.stealth else 0.35):
                # The sources change before the same command runs again.
                how["between"] = [
                    self.change(draw.choice((b"src", b"src", b"dst"))) for _ in range(draw.randrange(1, 4))
                ]
                if draw.random() < 0.15:
                    # Records of the journal are of chunks that the part lost.
                    how["between"] = [["cut parts", "dst", self.seed()]]
                elif self.stealth and draw.random() < 0.7:
                    # Of chunks that are durable some are of another content now, which size and time do not show.
                    how["between"] = [["rewrite all", "src", self.seed()]]
            elif draw.random() < 0.3:
                # The same copy with other options.
                others = draw.sample(THEN, draw.randrange(1, 3))
                how["then"] = sorted(request.switches.symmetric_difference(others))
            elif draw.random() < FORGET_SHARE:
                how["forget"] = True
            return how
        if kind == "error":
            error = [kill_at(draw), draw.choice(("ENOSPC", "EIO"))]
            return {"error": [*error, draw.choice(("here", "there"))] if request.ends else error}
        if kind == "change":
            change = self.change(b"src")
            which = draw.random()
            if which < 0.4:
                # All of the file that is being read.
                change = ["rewrite", "", 0, 1 << 30, self.seed(), False]
            elif which < 0.7:
                # The file at the destination that is being compared.
                change = ["rewrite", "", draw.randrange(1 << 20), draw.choice((1, 5000)), self.seed(), False]
                return {"change": [draw.randrange(1, 6), change, "dst"]}
            # Most copies read some files only.
            return {"change": [int(30 ** draw.random()), change]}
        if kind == "busy":
            return {"busy": draw.randrange(1, 8)}
        if kind == "damage":
            return {"damage": draw.randrange(1, 12)}
        if kind == "full":
            return {"full": draw.choice((0, 8192, 65536, 300_000, 1_000_000))}
        if kind in ("same", "sibling"):
            return {"second": kind}
        return {} if kind == "none" else {kind: True}


PHASES = ("renameat", "renameat", "fdatasync", "fsync", "linkat", "unlinkat")
"""Calls between which something is durable and something else is not yet."""


def kill_at(draw: random.Random) -> int | list[Any]:
    """Return the changing system call before which a copy ends: early ones are as likely as late ones.

    It is a number, or a name and the number of its call.
    """
    if draw.random() < 0.3:
        return [draw.choice(PHASES), draw.randrange(1, 7)]
    return int(KILLS_MAX ** draw.random()) if draw.random() < 0.4 else draw.randrange(1, KILLS_MAX)


def receiver(request: Request) -> str:
    """Return the side that receives in a copy between hosts."""
    return "here" if request.ends == "source" else "there"


def is_new_name(request: Request) -> bool:
    """Return True for a copy that gives one file another name."""
    return len(request.sources) == 1 and not request.sources[0].endswith(b"/") and b"/" in request.destination


def is_plain(path: bytes, root: bytes) -> bool:
    """Return True for a source that a command line can name, and that is a file or a symbolic link."""
    full = root + b"/" + path
    try:
        path.decode()
    except UnicodeDecodeError:
        return False
    return os.path.isfile(full) and not os.path.islink(full)


def text(path: bytes) -> str:
    """Return a path as JSON can hold it."""
    return path.decode("latin-1")

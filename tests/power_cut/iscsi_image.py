"""The image of an iSCSI target: writes by libiscsi, some with FUA, some made durable by SYNCHRONIZE CACHE."""

from __future__ import annotations

import json
import os
import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.iscsi.conftest import Target
from tests.iscsi.test_durable import BLOCK, Session, library
from tests.power_cut import places

if TYPE_CHECKING:
    from tests.power_cut.recording import Recorder

SESSIONS = 3
"""Initiators at once, each with a part of the image."""
BLOCKS = 8192
"""Of each part."""
WRITES = 120
"""Of each initiator."""
IMAGE = "lun.img"


@dataclass(frozen=True)
class Write:
    """A command of an initiator; it is durable with FUA, or when a later flush was acknowledged."""

    number: int
    lba: int
    blocks: int
    is_fua: bool
    flushes: bool
    """SYNCHRONIZE CACHE follows."""


def writes(seed: str, session: int) -> Iterator[Write]:
    """Yield the commands of an initiator, in order, from 1."""
    draw = random.Random(f"{seed} {session}")
    for number in range(1, WRITES + 1):
        blocks = draw.choice((1, 1, 2, 8, 8, 64, 256))
        # A third of them meet again in a small range.
        room = 512 if draw.random() < 0.3 else BLOCKS
        lba = session * BLOCKS + draw.randrange(room - blocks)
        yield Write(number, lba, blocks, draw.random() < 0.3, draw.random() < 0.15)


def block(session: int, number: int, at: int) -> bytes:
    """Return a block as a write leaves it."""
    head = b"%d %d %d " % (session, number, at)
    return head + bytes([(number + at) % 251]) * (BLOCK - len(head))


class IscsiImage:
    """Three initiators, one target."""

    def prepare(self, work: Path, draw: random.Random) -> None:
        """Draw the commands."""
        (work / "plan.json").write_text(json.dumps({"seed": str(draw.random())}))

    def record(self, recorder: Recorder) -> None:
        """Write, and mark each acknowledgement of something durable."""
        seed = json.loads((recorder.work / "plan.json").read_text())["seed"]
        image = places.DISK / IMAGE
        with image.open("wb") as file:
            # With holes: a write needs a block of the file system's as well.
            file.truncate(SESSIONS * BLOCKS * BLOCK)
            os.fsync(file.fileno())
        os.sync()
        target = Target(image)
        faults: list[BaseException] = []

        def initiator(number: int) -> None:
            try:
                session = Session(library(), target.url)
                for write in writes(seed, number):
                    blocks = range(write.lba, write.lba + write.blocks)
                    content = b"".join(block(number, write.number, at) for at in blocks)
                    session.write(write.lba, content, fua=write.is_fua)
                    if write.is_fua:
                        recorder.mark(f"fua {number} {write.number}")
                    if write.flushes:
                        session.flush()
                        recorder.mark(f"flush {number} {write.number}")
            except BaseException as error:
                faults.append(error)

        recorder.mark("ready")
        threads = [threading.Thread(target=initiator, args=(number,)) for number in range(SESSIONS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        target.kill()
        if faults:
            raise faults[0]

    def judge(self, work: Path, marks: list[str]) -> list[str]:
        """Each block has its newest durable write, or a later one."""
        if not marks:
            return []
        seed = json.loads((work / "plan.json").read_text())["seed"]
        durable: set[tuple[int, int]] = set()
        flushed = dict.fromkeys(range(SESSIONS), 0)
        for mark in marks:
            what, *place = mark.split()
            if what == "fua":
                durable.add((int(place[0]), int(place[1])))
            elif what == "flush":
                flushed[int(place[0])] = int(place[1])
        image = (places.DISK / IMAGE).read_bytes()
        lines = []
        for session in range(SESSIONS):
            allowed: dict[int, list[int]] = {}
            for write in writes(seed, session):
                for at in range(write.lba, write.lba + write.blocks):
                    if write.number <= flushed[session] or (session, write.number) in durable:
                        allowed[at] = [write.number]
                    else:
                        allowed.setdefault(at, [0]).append(write.number)
            for at, numbers in allowed.items():
                found = image[at * BLOCK : (at + 1) * BLOCK]
                if not any(found == (block(session, number, at) if number else bytes(BLOCK)) for number in numbers):
                    lines.append(f"block {at} of the image has {found[:16]!r}, should be of write {numbers}")
        return lines

"""One sequence of steps in a world of its own: changes, and copies that are judged one after the other."""

from __future__ import annotations

import glob
import os
import shutil
import signal
import stat
import tempfile
import threading
from collections import Counter as Counts
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.copy.model import changes, clock, command, devices, judge, places, statements, tracer
from tests.copy.model.changes import Step
from tests.copy.model.command import Result
from tests.copy.model.draw import Draw
from tests.copy.model.durability import Durability
from tests.copy.model.predict import Prediction, predict
from tests.copy.model.remote import Remote
from tests.copy.model.request import Request
from tests.copy.model.tracer import At, Counter, Damage, Interruption, Observer, Traced
from tests.copy.model.walk import Tree, below, look, walk

AREAS = (b"src", b"src2", b"dst", b"sib")
STEPS = 100
"""Steps of a sequence."""
DEVICE_SHARE = 0.03
"""Of rounds of a sequence: those with a copy to or from a block device."""
WORLD = b"world"
SPACE_BYTES = 1 << 16
CLOCK_MAX_S = 20_000 * 86_400
"""Most that the clock of commands differs from that of the machine: 55 years, so never before 1970."""


class Failed(Exception):
    """A step whose result is wrong."""

    def __init__(self, lines: list[str], step: int) -> None:
        """`step`: its number."""
        super().__init__("; ".join(lines[:3]))
        self.lines = lines
        self.step = step


@dataclass
class Machine:
    """Things that all sequences share: the file system, options that this elephan has, planted faults, counts."""

    folder: Path
    """Of the file system."""
    state: Path
    """For the state of commands: on another file system."""
    options: frozenset[str]
    kinds: dict[str, float]
    plant: list[str] = field(default_factory=list)
    """Names of faults that every copy gets."""
    counts: Counts[str] = field(default_factory=Counts)
    max_steps: int = STEPS
    remote: Remote | None = None
    """The second host."""
    remote_share: float = 0.0
    """Share of sequences whose copies are between both."""
    clock: Path | None = None
    """File of the clock that commands see (`tests.copy.model.clock`); None: that of the machine."""

    def set_clock(self, offset_s: int) -> None:
        """Set the clock that commands see."""
        if self.clock is not None:
            clock.set_offset(self.clock, max(-CLOCK_MAX_S, min(CLOCK_MAX_S, offset_s)))

    def step_clock(self, seconds: int) -> None:
        """Let the clock that commands see go forward or back."""
        if self.clock is not None:
            self.counts["clock steps"] += 1
            self.set_clock(clock.offset(self.clock) + seconds)


class World:
    """Trees of one sequence, and the steps that were made in them."""

    def __init__(self, machine: Machine, user: int | None = None) -> None:
        """Make an empty one. With a user, that user owns all entries and runs the copies."""
        self.user = user
        self.machine = machine
        self.root = os.fsencode(machine.folder) + b"/" + WORLD
        self.steps: list[Step] = []
        self.bound = 0
        """Mounts that were made."""
        self.stealth = False
        """A change that size and time do not show was made: hashes of an earlier content are right."""
        self.is_disturbed = False
        """The copy that is judged was killed or failed before, and may have removed something then."""
        self.written: Tree = {}
        """A file of the destination as another process has left it while the copy ran, by its names."""
        self.unfinished: set[str] = set()
        """States of copies that were killed and not run again."""
        self.receipts: dict[str, bytes] = {}
        """Receipts that are kept, by name."""
        for area in AREAS:
            os.makedirs(self.root + b"/" + area)
        self.state = Path(tempfile.mkdtemp(prefix="state-", dir=machine.state))
        machine.set_clock(0)
        if machine.remote is not None:
            machine.remote.book(self.state / "hosts.toml")
        if user is not None:
            self.give(user)
            os.chown(self.state, user, user)

    def close(self) -> None:
        """Remove it."""
        for mount in reversed(self.mounts):
            with suppress(OSError):
                places.unmount(self.root + b"/" + mount)
        for folder in (self.root, *glob.glob(os.fsencode(self.machine.folder) + b"/bound-*")):
            shutil.rmtree(folder)
        shutil.rmtree(self.state, ignore_errors=True)

    @property
    def mounts(self) -> list[bytes]:
        """Mount points below the world: they move with the folders above."""
        return places.below(self.root) if self.bound else []

    # Steps.

    def do(self, step: Step) -> None:
        """Make a step. Raises `Failed`."""
        self.steps.append(step)
        self.machine.counts["steps"] += 1
        if step[0] == "copy":
            request = Request.of_step(step[1])
            if request.ends and self.machine.remote is None:
                # As a failure leaves it, on a machine that cannot make the second host.
                request = replace(request, ends="", carried=None)
            self.copy(request, dict(step[2]))
        elif step[0] == "clock":
            self.machine.step_clock(int(step[1]))
        elif step[0] == "rotate":
            self.rotate()
        elif step[0] == "mount":
            self.mount(*step[1:])
        elif step[0] == "device":
            self.device(*step[1:])
        else:
            self.stealth |= step[-1] is True and step[0] in ("rewrite", "resize")
            changes.apply(self.root, step)
        if step[0] != "copy" and self.user is not None:
            self.give(self.user)

    def give(self, user: int) -> None:
        """Make all of the world a user's."""
        for folder, folders, files in os.walk(self.root):
            for name in [b".", *folders, *files]:
                path = folder + b"/" + name
                if os.lstat(path).st_uid != user:
                    mode = os.lstat(path).st_mode & 0o7777
                    os.lchown(path, user, user)
                    if not os.path.islink(path):
                        os.chmod(path, mode)

    def rotate(self) -> None:
        """Make the destination the older version of the next one."""
        old, dst = self.root + b"/old", self.root + b"/dst"
        if any(mount.startswith(b"dst/") or mount.startswith(b"old/") for mount in self.mounts):
            return
        if os.path.lexists(old):
            shutil.rmtree(old)
        os.rename(dst, old)
        os.mkdir(dst)

    def mount(self, path: str, kind: str) -> None:
        """Mount a tmpfs, or a folder of the world, at a folder."""
        relative = path.encode("latin-1")
        full = self.root + b"/" + relative
        if not os.path.lexists(full) and os.path.isdir(os.path.dirname(full)):
            os.mkdir(full)
        if not os.path.isdir(full) or os.path.islink(full) or relative in AREAS:
            return
        if kind in ("tmpfs", "twin"):
            places.mount_tmpfs(full, "size=16m")
            changes.create_file(full + b"/file", self.bound + 1, 3000)
            if kind == "twin":
                changes.create_twin(full, self.root + b"/src", self.bound + 1)
        else:
            hidden = os.fsencode(self.machine.folder) + b"/bound-%d" % self.bound
            os.makedirs(hidden + b"/inside", exist_ok=True)
            changes.create_file(hidden + b"/inside/file", self.bound + 1, 5000)
            places.bind(hidden, full)
        self.bound += 1

    # Copies.

    def fail(self, lines: Iterable[str]) -> None:
        """Raise `Failed` for the step that was made last."""
        raise Failed(list(lines), len(self.steps) - 1)

    def copy(self, request: Request, how: dict[str, Any]) -> None:
        """Run a copy, disturbed or not, and judge it."""
        if any(not os.path.lexists(self.root + b"/" + source) for source in request.sources):
            return
        if request.link_to is not None and not os.path.isdir(self.root + b"/" + request.link_to):
            return
        if os.path.islink(self.root + b"/" + request.destination):
            # The destination as the user wrote it may lead over links, and so anywhere.
            return
        if os.path.exists(to := self.root + b"/" + request.destination) and stat.S_ISBLK(os.stat(to).st_mode):
            # A copy would write to the device.
            return
        self.machine.counts["copies"] += 1
        self.machine.counts["copies between hosts"] += bool(request.ends)
        before = walk(self.root)
        mounts = frozenset(self.mounts)
        prediction = predict(before, request, mounts, "--max-removals" in self.machine.options)
        scope = request.destination.rstrip(b"/").split(b"/")[0]
        self.is_disturbed = bool(how.keys() & {"full", "kill", "error", "second", "change", "damage", "busy", "cut"})
        if "full" in how:
            self.disturbed_by_full(request, int(how["full"]), prediction, before, scope)
        if "change" in how:
            self.changing(request, how["change"], prediction, before, scope)
            before = walk(self.root)
            prediction = predict(before, request, mounts, "--max-removals" in self.machine.options)
        if "damage" in how:
            self.damaged(request, int(how["damage"]), prediction, before, scope)
        if "dry" in how:
            self.dry(request, prediction, before)
        if "cut" in how:
            self.cut(request, how["cut"], prediction, before, scope)
        sides = how.get("sides", ())
        for number, at in enumerate(how.get("kill", ())):
            side = sides[number] if request.ends and number < len(sides) else "here"
            self.disturbed(request, Counter.before(at, side=side), prediction, before, scope, bool(how.get("hasty")))
            if "forget" in how:
                self.forgotten(scope)
            if "between" in how:
                for change in how["between"]:
                    changes.apply(self.root, change)
                    self.stealth |= change[-1] is True and change[0] == "rewrite" or change[0] == "rewrite all"
                if self.user is not None:
                    self.give(self.user)
                if any(not os.path.lexists(self.root + b"/" + source) for source in request.sources):
                    self.unfinished |= self.states()
                    return
                before = self.without_parts(walk(self.root), scope)
                prediction = predict(before, request, mounts, "--max-removals" in self.machine.options)
            if "then" in how:
                request = replace(request, switches=frozenset(how["then"]))
                before = self.without_parts(walk(self.root), scope)
                prediction = predict(before, request, mounts, "--max-removals" in self.machine.options)
        if "error" in how:
            at, error, *side = how["error"]
            counter = Counter.before(at, error, side[0] if side and request.ends else "here")
            self.disturbed(request, counter, prediction, before, scope)
        self.whole(request, prediction, before, scope, how)

    def commands(self, request: Request) -> tuple[list[list[bytes]], Path]:
        """Return the command line and the file of its receipt."""
        file = self.state / "receipt.json"
        file.unlink(missing_ok=True)
        extra = (b"--quiet", b"--retry-for=1s", b"--receipt", os.fsencode(file))
        return [request.words(self.root, extra)], file

    def traced(self, request: Request, observers: list[Observer]) -> Result:
        """Run a copy under the eyes of observers, at both ends, and wait for all that it has started."""
        words, _ = self.commands(request)
        result = Traced(observers, has_remote=bool(request.ends)).run(words, self.state, request.user)
        self.nothing_runs(request)
        return result

    def nothing_runs(self, request: Request) -> None:
        """A copy that has ended, however it has, leaves no process at the second host."""
        if request.ends and self.machine.remote is not None and (left := self.machine.remote.wait()):
            self.fail([f"left in the second host: {left}"])

    def cut(self, request: Request, cut: list[Any], prediction: Prediction, before: Tree, scope: bytes) -> None:
        """Run a copy whose connection is cut."""
        at, what, seconds = cut
        remote = self.machine.remote
        if remote is None or not request.ends:
            return
        repairs: list[threading.Timer] = []

        def act() -> None:
            if what != "link":
                remote.reset(what)
                return
            remote.set_link(False)
            repairs.append(threading.Timer(seconds, lambda: remote.set_link(True)))
            repairs[0].start()

        observer = At(at, act)
        try:
            result = self.traced(request, [observer, *self.planted(request)])
        finally:
            for repair in repairs:
                repair.join()
        self.machine.counts["cuts"] += observer.did
        self.sane(result)
        if lines := judge.torn(prediction, before, walk(self.root), scope, lenient=True):
            self.fail([f"cut ({what}) before call {at}: {line}" for line in lines])

    def disturbed(
        self,
        request: Request,
        counter: Counter,
        prediction: Prediction,
        before: Tree,
        scope: bytes,
        hasty: bool = False,
    ) -> None:
        """Run a copy that is killed, or meets an error; no name may have half a file then.

        `hasty`: nothing waits for the other end of a front that is killed.
        """
        if hasty and request.ends and counter.side == "here":
            words, _ = self.commands(request)
            result = Traced([counter, *self.planted(request)], is_hasty=True).run(words, self.state, request.user)
            self.machine.counts["kills"] += bool(counter.did)
            self.sane(result, killed=True)
            return
        result = self.traced(request, [counter, *self.planted(request)])
        if counter.did:
            self.machine.counts["kills" if counter.error is None else "errors"] += 1
            self.machine.counts["kills at the second host"] += counter.error is None and counter.side == "there"
        self.sane(result, killed=counter.error is None)
        after = walk(self.root)
        if lines := judge.torn(prediction, before, after, scope, lenient=counter.error is not None):
            what = "killed before" if counter.error is None else f"{counter.error} at"
            self.fail([f"{what} call {counter.at} ({counter.did}): {line}" for line in lines])

    def without_parts(self, tree: Tree, scope: bytes) -> Tree:
        """Return a tree without what an interrupted copy keeps for its next run."""
        return {path: node for path, node in tree.items() if not judge.is_own(path, scope)}

    def forgotten(self, scope: bytes) -> None:
        """Give the copy up: its parts go."""
        for file in (self.state / "elephan" / "unfinished").glob("[!.]*.json"):
            result = command.start([[b"copy", b"forget", file.stem.encode()]], self.state, self.user).wait()
            self.machine.counts["forgotten"] += 1
            if result.code != 0:
                self.fail([f"elephan copy forget: exit code {result.code}: {result.output.strip()[-300:]}"])
            if left := [path for path in walk(self.root) if judge.is_own(path, scope)]:
                self.fail([f"{judge.shown(path)}: is left by elephan copy forget" for path in left])

    def damaged(self, request: Request, at: int, prediction: Prediction, before: Tree, scope: bytes) -> None:
        """Run a copy whose disk changes a byte, with --verify=read: no name may have it."""
        request = replace(request, switches=request.switches | {"verify_read"})
        damage = Damage(at, os.fsdecode(self.root + b"/" + scope))
        self.sane(self.traced(request, [damage, *self.planted(request)]))
        self.machine.counts["damaged"] += damage.did
        if lines := judge.torn(prediction, before, walk(self.root), scope, lenient=True):
            self.fail([f"a byte was changed behind write {at}: {line}" for line in lines])

    def dry(self, request: Request, prediction: Prediction, before: Tree) -> None:
        """`--dry-run` changes nothing, and names what --mirror would remove."""
        words, _ = self.commands(request)
        words[0].remove(b"--quiet")
        result = command.start([[*words[0], b"--dry-run"]], self.state, request.user).wait()
        self.sane(result)
        self.machine.counts["dry runs"] += 1
        unchanged = Prediction(dict(before))
        if lines := judge.differences(unchanged, walk(self.root), before, b""):
            self.fail([f"--dry-run: {line}" for line in lines])
        if "--max-removals" not in self.machine.options or not request.on("mirror") or result.code != 0:
            return
        listed = [line for line in result.output.splitlines() if line.startswith("would remove ")]
        count = prediction.excess or len(prediction.removed)
        if prediction.codes == {0} and not prediction.vague and len(listed) != count:
            self.fail([f"--dry-run lists {len(listed)} removals, should be {count}: {listed[:5]}"])

    def disturbed_by_full(
        self, request: Request, free: int, prediction: Prediction, before: Tree, scope: bytes
    ) -> None:
        """Run a copy while the disk has so many bytes free."""
        filler = os.fsencode(self.machine.folder) + b"/filler"
        space = os.statvfs(self.machine.folder)
        with suppress(OSError), open(filler, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(1, space.f_bavail * space.f_frsize - free))
        words, _ = self.commands(request)
        try:
            result = command.start(words, self.state, request.user).wait()
        finally:
            with suppress(FileNotFoundError):
                os.unlink(filler)
        self.machine.counts["full disks"] += result.code == 1
        self.sane(result)
        if lines := judge.torn(prediction, before, walk(self.root), scope, lenient=True):
            self.fail([f"a disk with {free} bytes free: {line}" for line in lines])

    def changing(self, request: Request, change: list[Any], prediction: Prediction, before: Tree, scope: bytes) -> None:
        """Run a copy while a source changes: each file is one that the sources had."""
        at, step, *elsewhere = change
        area = os.fsdecode(self.root + b"/" + (elsewhere[0].encode() if elsewhere else b"src"))
        wants = frozenset({"pread64"} if step[1] == "" else {"pread64", "openat2"})
        self.written = {}
        interruption = Interruption(at, area, lambda path: self.change_at(step, path), wants=wants)
        self.sane(self.traced(request, [interruption]))
        self.machine.counts["changes meanwhile"] += interruption.did
        after = walk(self.root)
        now = {path: node for path, node in before.items() if not is_source(path)} | self.written
        now |= {path: node for path, node in after.items() if is_source(path)}
        there = all(source.rstrip(b"/") in now for source in request.sources)
        later = predict(now, request, frozenset(self.mounts)) if there else prediction
        # A file at the destination that another process writes to is the source's, or that process's, and all of it.
        if lines := judge.torn(prediction, now, after, scope, lenient=not self.written, later=later):
            self.fail([f"while a source changed by {step} at read {at}: {line}" for line in lines])

    def change_at(self, step: Step, path: str) -> None:
        """Make a change; one without a path is made to the file that is read."""
        relative = os.fsencode(path)[len(self.root) + 1 :]
        if step[1] == "":
            step = [step[0], relative.decode("latin-1"), *step[2:]]
        changes.apply(self.root, step)
        node = look(os.fsencode(path))
        if node is not None and not is_source(relative):
            # With all of its names.
            tree = walk(self.root)
            self.written = {name: one for name, one in tree.items() if one.inode == node.inode and not is_source(name)}

    def sane(self, result: Result, killed: bool = False) -> None:
        """An end without a traceback and a hang, and with an exit code that the manual has."""
        if "Traceback" in result.output or "panicked" in result.output:
            self.fail([f"a traceback: {result.output.strip()[-600:]}"])
        right = (0, 1, 2, -signal.SIGKILL) if killed else (0, 1, 2)
        if result.code not in right:
            self.fail([f"exit code {result.code}: {result.output.strip()[-400:]}"])

    def planted(self, request: Request) -> list[Observer]:
        """Return the planted faults, for one command."""
        from tests.copy.model import planted

        return [planted.PLANTS[name](os.fsdecode(self.root + b"/" + b"dst")) for name in self.machine.plant]

    def whole(self, request: Request, prediction: Prediction, before: Tree, scope: bytes, how: dict[str, Any]) -> None:
        """Run a copy to its end and hold it to the prediction."""
        words, file = self.commands(request)
        observers = self.planted(request)
        durability = None
        if how.get("record"):
            watched, to = self.root + b"/" + scope, self.root + b"/" + request.destination
            durability = Durability(os.fsdecode(watched), os.fsdecode(to.rstrip(b"/")))
        if durability is not None:
            observers.append(durability)
        refusal: list[Result] = []
        if "clock" in how and self.machine.clock is not None:
            at, seconds = how["clock"]
            observers.append(At(at, lambda: self.machine.step_clock(seconds)))
        if "busy" in how:
            area = os.fsdecode(self.root + b"/src")
            other = [*words[0][:-2], b"--receipt", os.fsencode(self.state / "second.json")]

            def again(_: str) -> None:
                refusal.append(command.start([other], self.state, request.user).wait())

            observers.append(Interruption(int(how["busy"]), area, again, wants=frozenset({"pread64"})))
        second = self.second(request, how)
        if observers:
            result = Traced(observers, has_remote=bool(request.ends)).run(words, self.state, request.user)
        else:
            result = command.start(words, self.state, request.user).wait()
        self.sane(result)
        for end in refusal:
            self.sane(end)
            self.machine.counts["second copies"] += 1
            if end.code != 1 or "another process runs this copy" not in end.output:
                self.fail([f"the same command at once: exit code {end.code}: {end.output.strip()[-300:]}"])
        if second is not None:
            self.second_ended(second, how)
        after = walk(self.root)
        if how.get("second") == "sibling":
            self.judge_sibling(after, request.user)
            after = {path: node for path, node in after.items() if path.split(b"/")[0] != b"twin"}
        if request.user is not None and result.code == 0:
            prediction = predict(before, request, frozenset(self.mounts), prediction.limits, refused=False)
        if result.code == 1 and prediction.codes == {0, 1}:
            prediction = predict(before, request, frozenset(self.mounts), prediction.limits, fails=True)
        if how.keys() & {"error", "full"}:
            # A link to the older version that cannot be made is a copy instead.
            prediction.linked.clear()
        if result.code not in prediction.codes:
            right = " or ".join(map(str, sorted(prediction.codes)))
            self.fail(
                [
                    f"exit code {result.code}, should be {right}: {result.output.strip()[-400:]}",
                    *judge.differences(prediction, after, before, scope),
                ]
            )
        if lines := judge.differences(prediction, after, before, scope):
            self.fail(lines)
        if durability is not None and result.code == 0:
            self.machine.counts["recorded"] += 1
            if lines := durability.at_end():
                self.fail(lines)
        self.machine.counts[f"exit code {result.code}"] += 1
        statements.check_receipts(self, result.code)
        statements.check_receipt(self, request, prediction, result, file)
        statements.check_state(self)
        if result.code == 0:
            statements.check_rsync(self, request, prediction, after)

    # Block devices.

    def device(self, which: str, seed: int, at: int | list[Any] | None, checksum: bool) -> None:
        """Copy `to` a block device, `from` one, or `both`, twice: the source changes, and its size and time do not."""
        folder = Path(os.fsdecode(self.machine.folder)) / "devices"
        folder.mkdir()
        try:
            with devices.Devices(folder, which, seed) as pair:
                for _ in range(2):
                    words = [b"copy", pair.source, pair.target, b"--quiet", *([b"--checksum"] if checksum else [])]
                    if at is not None:
                        counter = Counter.before(at)
                        self.sane(Traced([counter]).run([words], self.state), killed=True)
                        self.machine.counts["kills"] += bool(counter.did)
                    result = command.start([words], self.state).wait()
                    self.sane(result)
                    self.machine.counts["copies of devices"] += 1
                    if result.code != 0 or (wrong := pair.wrong()):
                        told = f"exit code {result.code}: {result.output.strip()[-300:]}"
                        self.fail([f"a copy {which} a block device: {told if result.code else wrong}"])
                    pair.change()
        finally:
            shutil.rmtree(folder)

    # A second copy at once.

    def second(self, request: Request, how: dict[str, Any]) -> command.Child | None:
        """Start another copy, if the step has it."""
        kind = how.get("second")
        if kind is None:
            return None
        self.machine.counts["second copies"] += 1
        twin = request if kind == "same" else Request((b"src/",), b"twin", user=request.user, ends=request.ends)
        extra = (b"--quiet", b"--retry-for=1s", b"--receipt", os.fsencode(self.state / "second.json"))
        return command.start([twin.words(self.root, extra)], self.state, request.user)

    def second_ended(self, child: command.Child, how: dict[str, Any]) -> None:
        """Judge its end."""
        result = child.wait()
        self.sane(result)
        if how["second"] == "sibling" and result.code != 0 and self.user is None:
            self.fail([f"a second copy beside: exit code {result.code}: {result.output.strip()[-300:]}"])

    def judge_sibling(self, after: Tree, user: int | None) -> None:
        """A second copy into a sibling of the destination is complete."""
        prediction = predict(
            {path: node for path, node in after.items() if path.split(b"/")[0] != b"twin"},
            Request((b"src/",), b"twin", user=user),
        )
        lines = judge.differences(prediction, after, after, b"twin")
        shutil.rmtree(self.root + b"/twin")
        if lines:
            self.fail([f"the second copy: {line}" for line in lines])

    def states(self) -> set[str]:
        """Return the names of the files of unfinished copies."""
        return {path.name for path in (self.state / "elephan" / "unfinished").glob("*")}


def is_source(path: bytes) -> bool:
    """Return True for what is below a source."""
    return path.split(b"/")[0] in (b"src", b"src2")


def drawn(machine: Machine, seed: int) -> tuple[list[Step], Failed | None]:
    """Draw and make a sequence; return its steps, and the fault if there is one."""
    has_clock = machine.clock is not None
    root = os.fsencode(machine.folder) + b"/" + WORLD
    draw = Draw(seed, root, machine.kinds, machine.options, machine.remote_share, has_clock)
    world = World(machine, draw.user)
    machine.counts["sequences between hosts"] += draw.is_remote
    try:
        for area in draw.beginning():
            world.do(draw.create(area.encode()))
        while len(world.steps) < machine.max_steps:
            for _ in range(draw.random.choice((1, 2, 4, 8, 16, 32))):
                world.do(draw.change(draw.area()))
            has_older = os.path.isdir(world.root + b"/old")
            if draw.random.random() < 0.12:
                world.do(["rotate"])
                for _ in range(draw.random.choice((0, 1, 2))):
                    world.do(draw.change_unseen())
            if has_clock and draw.random.random() < 0.06:
                world.do(draw.clock())
            if draw.random.random() < DEVICE_SHARE and world.user is None:
                world.do(draw.device())
            if draw.random.random() < 0.08 and world.bound < 3:
                world.do(draw.mount())
            copy = draw.copy(has_older)
            if copy[2].get("between", [[""]])[0][0] in ("rewrite all", "cut parts"):
                world.do(draw.large())
            world.do(copy)
    except Failed as failure:
        return world.steps, failure
    finally:
        world.close()
    return world.steps, None


def replayed(machine: Machine, steps: list[Step]) -> Failed | None:
    """Make given steps; return the fault if there is one."""
    users = [step[1].get("user") for step in steps if step[0] == "copy"]
    world = World(machine, users[0] if users else None)
    try:
        for step in steps:
            world.do(step)
    except Failed as failure:
        return failure
    finally:
        world.close()
    return None


def missing_judges() -> list[str]:
    """Return what this machine lacks to judge all properties."""
    found = [reason] if (reason := tracer.missing()) else []
    if shutil.which("rsync") is None:
        found.append("rsync is missing (Debian package rsync)")
    return found


def of_area(tree: Tree, area: bytes) -> list[bytes]:
    """Return the paths of an area."""
    return [area, *below(tree, area)]

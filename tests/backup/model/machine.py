"""Runs, restores and disturbances of a job of backup, each result held against the model."""

from __future__ import annotations

import calendar
import json
import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.backup.model.records import Records, records_of, wrong_records
from tests.backup.model.restores import How, Restored, fill
from tests.backup.model.rights import denied
from tests.backup.model.world import (
    NAMES,
    Exclusion,
    Inodes,
    Source,
    Tree,
    differences,
    faults_expected,
    inodes,
    is_below,
    links_that_differ,
    unreadable,
    walk,
)
from tests.copy.model import clock, command, places, tracer
from tests.copy.model.command import Result

Step = list[Any]
MARKERS = ".elephan-backup"
CHANGES = ("write", "folder", "link", "hide", "show", "remove", "rename", "gone", "hardlink", "break", "attribute",
           "mount", "unmount")  # fmt: skip
"""Steps that change the source."""
CALLS = 350
"""Calls that change files in a run, about: a kill is drawn among them."""
AGES_S = {"1h": 3600, "48h": 48 * 3600, "7d": 7 * 86_400}
"""Ages up to which versions are kept, as a job has them, s."""
PHASES = ("renameat", "linkat", "fsync", "symlinkat")
"""Calls around which something is durable and something else is not yet."""
PATTERNS = {
    "data/": ["b", "/a", "d/a", "d/e/", "/d/b", "with*", "/c"],
    # A restore to the source's own place copies what is in `data`: some of these would name other entries there.
    "data": ["b", "/data/a", "d/a", "data/d/e/", "/data/d/b", "/*/a", "/*/b", "/*/c", "data/a"],
}
"""Patterns of a job's `exclude`, by the name of its source."""
BYTES = 24 << 20
"""Size of the destination's file system."""


class Failed(Exception):
    """A result that the model does not have."""


@dataclass
class Recorded:
    """A version whose run has ended."""

    tree: Tree
    inodes: Inodes
    is_whole: bool
    faults: set[bytes]
    since_s: float
    """Uptime before which its run did not begin."""


@dataclass
class Machine:
    """A job with its source, destination and store, below a folder of its own."""

    folder: Path
    clock: Path | None
    """File of the clock that commands see (`tests.copy.model.clock`); None: that of the machine."""
    counts: Counter[str] = field(default_factory=Counter)
    kind: str = "incremental"
    keep: object = None
    offset_s: int = 0
    waited_s: int = 0
    """Time that has gone by only for commands: their wall clock and the time since boot are ahead by it."""
    since_s: float | None = None
    """Uptime at the beginning of the first run after the newest version; None: there was none."""
    number: int = 0
    versions: dict[str, Recorded] = field(default_factory=dict)
    gone: dict[str, Recorded] = field(default_factory=dict)
    """Versions that went since the newest one was compared."""
    records: dict[str, Records] = field(default_factory=dict)
    """Of all versions that there were: entries that their runs could not copy."""
    mounted: list[set[bytes]] = field(default_factory=list)
    """Mount points below the source, in the newest run without faults and in each run after it."""
    perhaps_mounted: set[bytes] = field(default_factory=set)
    """Mount points of runs that were killed since the last one: some of these may have come to their end."""
    copied: Tree | None = None
    """Of a mirror: the destination as the last run left it."""
    clock_was_set: bool = False
    """Names of versions need not be the times of their runs."""

    def begin(self, kind: str, keep: object, source: str = "data/", exclude: Sequence[str] = ()) -> None:
        """Begin a world. `source`: the name of the source, with a slash if the copy has its content alone."""
        self.end()
        self.kind, self.keep, self.number = kind, keep, self.number + 1
        self.lead = "" if source.endswith("/") else source
        self.world = self.folder / f"w{self.number}"
        self.world.mkdir()
        self.disk = self.world / "disk"
        self.state = self.world / "state"
        for path in (self.disk, self.state, self.world / "data", self.world / "other"):
            path.mkdir()
        places.mount_tmpfs(os.fsencode(self.disk), f"size={BYTES},nr_inodes=4000,mode=755")
        lead = self.lead.encode() + b"/" if self.lead else b""
        self.source = Source(self.world / "data", exclusion=Exclusion(tuple(exclude), lead))
        self.destination = self.disk / "copies"
        lines = [
            'name = "model"', "[retry]", "attempts = 1", "[[job]]", 'name = "job"', f'kind = "{kind}"',
            f'sources = ["{self.world}/{source}"]', f'destination = "{self.destination}"',
        ]  # fmt: skip
        if keep is not None:
            lines.append(f"keep = {json.dumps(keep)}")
        if exclude:
            lines.append(f"exclude = {json.dumps(list(exclude))}")
        self.file = self.world / "job.toml"
        self.file.write_text("\n".join(lines) + "\n")
        self.versions, self.gone, self.copied = {}, {}, None
        self.records, self.mounted, self.perhaps_mounted = {}, [], set()
        self.waited_s = 0
        self.set_clock(0)
        self.clock_was_set = False
        self.since_s = None
        self.source.apply(["write", NAMES[0].hex(), 1, 100])
        self.source.states = [self.source.tree()]

    def end(self) -> None:
        """Remove the world."""
        if self.number and (self.folder / f"w{self.number}").exists():
            for mount in reversed(places.below(os.fsencode(self.world))):
                places.unmount(os.path.join(os.fsencode(self.world), mount))
            shutil.rmtree(self.world)

    def copy_in(self, folder: Path) -> Path:
        """Return the folder with the source's entries in a copy."""
        return folder / self.lead if self.lead else folder

    def set_clock(self, offset_s: int) -> None:
        """Set the clock that commands see."""
        self.offset_s = offset_s
        if self.clock is not None:
            clock.set_offset(self.clock, offset_s + self.waited_s)

    def uptime_s(self) -> float:
        """Return the time since boot that commands see."""
        return time.clock_gettime(time.CLOCK_BOOTTIME) + self.waited_s

    def show_uptime(self) -> None:
        """Show commands the time since boot."""
        (self.folder / "uptime").write_text(f"{self.uptime_s():.2f} 0.00\n")

    def wait(self, part: float) -> None:
        """Let time go by, in parts of the age up to which versions are kept."""
        if self.clock is not None:
            self.waited_s += int(part * AGES_S.get(str(self.keep), 3600))
            self.set_clock(self.offset_s)

    # Commands.

    def words(self, *words: object, store: str = "store") -> list[bytes]:
        """Return the words of a command."""
        place = self.world / store / "results.sqlite" if store == "other" else self.state / "results.sqlite"
        return [b"backup", *(os.fsencode(str(word)) for word in (self.file, *words, "--store", place))]

    def call(self, *words: object, store: str = "store", observer: tracer.Observer | None = None) -> Result:
        """Run a command to its end."""
        self.counts["commands"] += 1
        self.show_uptime()
        line = [self.words(*words, store=store)]
        if observer is not None:
            with denied():
                found = tracer.Traced([observer]).run(line, self.state)
        else:
            with denied():
                child = command.start(line, self.state)
            found = child.wait()
        if "Traceback" in found.output or "hangs" in found.output:
            raise Failed(f"{words}: {found.output}")
        return found

    # Steps.

    def step(self, step: Step) -> None:
        """Make a step, and compare."""
        what = str(step[0])
        self.counts[what] += 1
        if what in CHANGES:
            self.source.apply(step)
            self.source.states.append(self.source.tree())
        elif what == "clock":
            self.clock_was_set |= int(step[1]) != 0
            self.set_clock(int(step[1]) if self.clock is not None else 0)
        elif what == "wait":
            self.wait(float(step[1]))
        else:
            if self.since_s is None and what not in ("other", "restore"):
                self.since_s = self.uptime_s()
                self.source.states = [self.source.tree()]
            {"run": self._run, "kill": self._kill, "busy": self._busy, "full": self._full, "two": self._two,
             "other": self._other, "restore": self._restore}[what](*step[1:])  # fmt: skip

    def _run(self) -> None:
        self._judge(self.call("run", "job", "--once"))

    def _kill(self, at: int | list[Any], between: Sequence[Step] = ()) -> None:
        """End a run before a call that changes a file, change the source, then run again."""
        observer = tracer.Counter.before(at)
        found = self.call("run", "job", "--once", observer=observer)
        if not observer.did:
            return self._judge(found)
        self.counts["killed"] += 1
        self.perhaps_mounted |= self.source.mounts()
        ended = [name for name, state in self._markers().items() if state in ("complete", "partial")]
        if self.kind != "mirror" and (new := sorted(set(ended) - set(self.versions))):
            # It was killed after the end of its version, which knows nothing of what changes now.
            tree = self.source.tree()
            for name in new:
                self._judge_version(name, found, tree, unreadable(tree), None)
            self.since_s, self.source.states = self.uptime_s(), [tree]
        self._compare_versions(ended)
        for step in between:
            self.step(step)
        return self._run()

    def _busy(self, path: str) -> None:
        """Change a file at each read."""
        full = os.path.join(os.fsencode(self.source.root), bytes.fromhex(path))
        if not os.path.isfile(full) or os.path.islink(full) or os.lstat(full).st_mode & 0o7777 == 0:
            return
        if bytes.fromhex(path) not in self.source.tree():
            # It is left out.
            return

        def act() -> None:
            with open(full, "ab") as file:
                file.write(b"x")

        found = self.call("run", "job", "--once", observer=Rewriter(os.fsdecode(full), act))
        self.source.apply(["write", path, self.source.time, 300])
        # All names of the file have changed with it.
        numbers = inodes(self.source.root, self.source.tree())
        self._judge(found, {name for name, number in numbers.items() if number == numbers[bytes.fromhex(path)]})
        self.source.states = [self.source.tree()]

    def _full(self, free: int, inodes: bool) -> None:
        """Run while the destination is full, then with room."""
        ballast = self.disk / "ballast"
        ballast.mkdir()
        there = os.statvfs(self.disk)
        if inodes:
            for number in range(max(0, there.f_ffree - free)):
                (ballast / str(number)).touch()
        else:
            with (ballast / "file").open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, max(4096, there.f_bavail * there.f_frsize - free * 4096))
        found = self.call("run", "job", "--once")
        shutil.rmtree(ballast)
        if found.code == 0 or "not copied" in found.output:
            return self._judge(found)
        self.counts["was full"] += 1
        if found.code != 1:
            raise Failed(f"exit code {found.code} on a full disk: {found.output}")
        self._compare_versions([])
        return self._run()

    def _two(self) -> None:
        """Run twice at once."""
        self.show_uptime()
        lines = [self.words("run", "job", "--once")]
        with denied():
            first, second = (command.start(lines, self.state) for _ in range(2))
        results = [first.wait(), second.wait()]
        refused = [one for one in results if "runs already" in one.output]
        done = [one for one in results if one not in refused]
        if any(one.code != 2 for one in refused) or not done:
            raise Failed(f"two at once: {results}")
        if self.kind == "mirror" or len(done) == 1:
            return self._judge(done[-1])
        # Both have run, one after the other: the versions of both hold the same.
        return self._judge(done[-1], runs=2)

    def _other(self, what: str) -> None:
        """Run or restore with another store, which is refused."""
        if self.kind == "mirror" or not self.versions:
            return
        before = {name: walk(self.copy_in(self.destination / name)) for name in self.versions}
        if what == "run":
            found = self.call("run", "job", "--once", store="other")
        else:
            found = self.call("restore", "job", "--to", self.world / "other" / "restored", store="other")
        if found.code == 0 or (self.world / "other" / "restored").exists():
            raise Failed(f"another store was not refused: {found}")
        if {name: walk(self.copy_in(self.destination / name)) for name in self.versions} != before:
            raise Failed("another store has changed a version")

    def _restore(self, number: int, how: dict[str, Any] | None = None) -> None:
        """Restore a version, or a mirror."""
        if self.kind == "mirror":
            if self.copied is None:
                return
            expected, is_whole, words = self.copied, True, ["restore", "job"]
            copied = self.copy_in(self.destination)
        else:
            names = sorted(self.versions)
            if not names:
                return
            name = names[number % len(names)]
            expected, is_whole = self.versions[name].tree, self.versions[name].is_whole
            words = ["restore", "job", "--version", name]
            at = (how or {}).get("at")
            if at is not None and not self.clock_was_set:
                words[2:] = ["--at", self._moment(names, name, float(at))]
            copied = self.copy_in(self.destination / name)
        chosen = How(**(how or {}))
        if chosen.place == "own":
            # The source is elsewhere meanwhile, and is put back: later steps change what it was.
            kept = self.world / "kept"
            self.source.root.rename(kept)
            try:
                self._restore_over(words, kept, self.source.root, expected, copied, is_whole, chosen)
            finally:
                shutil.rmtree(self.source.root)
                kept.rename(self.source.root)
            return
        target = self.world / "restored"
        words += ["--to", str(target)]
        if chosen.place == "other":
            self.copy_in(target).parent.mkdir(exist_ok=True)
            self._restore_over(words, self.source.root, self.copy_in(target), expected, copied, is_whole, chosen)
        else:
            restored = Restored(expected, {}, False, Exclusion(), inodes(copied, expected))
            self._judge_restore(self._restored(words, chosen), restored, self.copy_in(target), is_whole, False)
        shutil.rmtree(target, ignore_errors=True)

    def _moment(self, names: Sequence[str], name: str, part: float) -> str:
        """Return a time of which a version is the newest: its own, or a later one before that of the next version."""
        times = [calendar.timegm(time.strptime(one, "version-%Y%m%dT%H%M%SZ")) for one in names]
        at = names.index(name)
        seconds = times[at + 1] - times[at] - 1 if at + 1 < len(names) else 60
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(times[at] + int(part * seconds)))

    def _restored(self, words: list[str], how: How) -> Result:
        """Restore, and again after a kill."""
        if how.kill is not None:
            observer = tracer.Counter.before(how.kill)  # type: ignore[arg-type]
            self.call(*words, observer=observer)
            self.counts["killed"] += bool(observer.did)
        return self.call(*words)

    def _restore_over(
        self, words: list[str], source: Path, place: Path, expected: Tree, copied: Path, is_whole: bool, how: How
    ) -> None:
        """Restore to a place that has entries; `copied`: the folder that is restored."""
        fill(place, source, how.seed)
        restored = Restored(expected, walk(place), how.exact, self.source.exclusion, inodes(copied, expected))
        self.counts["exact restores" if how.exact else "restores over entries"] += 1
        if how.exact:
            words = [*words, "--exact", "--max-removals", "1000"]
        found = self._restored(words, how)
        if found.code == 2 and "--exact" in found.output and (not is_whole or self.kind == "mirror"):
            # It would remove entries that the version lacks.
            if lines := differences(walk(place), restored.before):
                raise Failed("a restore that is refused has changed: " + "; ".join(lines[:5]))
            return
        self._judge_restore(found, restored, place, is_whole, bool(restored.blocked))

    def _judge_restore(self, found: Result, restored: Restored, place: Path, is_whole: bool, is_blocked: bool) -> None:
        """Compare a place with what a restore has to leave there."""
        real = walk(place) if place.exists() else {}
        if not unreadable(restored.version):
            if lines := restored.wrong(real) or links_that_differ(inodes(place, real), restored.inodes):
                raise Failed("a restore differs: " + "; ".join(lines[:5]) + "\n" + found.output)
            if self.kind != "mirror" and found.code != (0 if is_whole and not is_blocked else 1):
                raise Failed(f"exit code {found.code} of a restore of {'a complete' if is_whole else 'another'} "
                             f"version: {found.output}")  # fmt: skip
        elif not is_whole and found.code != 1:
            raise Failed(f"exit code {found.code} of a restore of a version with faults: {found.output}")

    # The judge.

    def _markers(self) -> dict[str, str]:
        folder = self.destination / MARKERS
        found = {}
        for path in folder.glob("*.json") if folder.is_dir() else []:
            told = json.loads(path.read_text())
            found[told["version"]] = told["state"]
        return found

    def _compare_versions(self, new: Sequence[str]) -> None:
        """Compare each version that was there: unchanged, or gone by the rule."""
        if self.kind == "mirror":
            return
        markers = self._markers()
        for name, recorded in list(self.versions.items()):
            path = self.destination / name
            if markers.get(name) in ("complete", "partial"):
                if not path.is_dir():
                    raise Failed(f"{name} is marked {markers[name]}, and is gone")
                if lines := differences(walk(self.copy_in(path)), recorded.tree):
                    raise Failed(f"{name} has changed: " + "; ".join(lines[:5]))
                if inodes(self.copy_in(path), recorded.tree) != recorded.inodes:
                    raise Failed(f"{name} has changed: some of its files are others now")
            else:
                self._may_go(name, new)
                self.gone[name] = self.versions.pop(name)

    def _may_go(self, name: str, new: Sequence[str]) -> None:
        """Raise `Failed` if a version went that the rule keeps."""
        ended = sorted({*self.versions, *new})
        markers = self._markers()
        whole = [one for one in ended if markers.get(one) == "complete"
                 or (one in self.versions and self.versions[one].is_whole)]  # fmt: skip
        if whole and name == whole[-1]:
            raise Failed(f"{name}, the newest without faults, is gone")
        if not isinstance(self.keep, int):
            # Its state is that of each moment until a newer version: one has to be older than the age, by the time
            # that has gone by, whatever the wall clock says.
            age_s, now_s = AGES_S.get(str(self.keep)), self.uptime_s()
            later = [one.since_s for other, one in self.versions.items() if other > name]
            if age_s is None or not any(now_s - since_s > age_s for since_s in later):
                raise Failed(f"{name} is gone, with keep = {self.keep!r}, and no later one is as old")
            return
        if name in ended[-self.keep :]:
            raise Failed(f"{name} is gone, one of the newest {self.keep}")

    def _judge(self, found: Result, busy: set[bytes] | None = None, runs: int = 1) -> None:
        """Compare what a run has left with the model."""
        tree = self.source.tree()
        hidden = unreadable(tree) | (busy or set())
        if self._is_refused(found):
            return None
        if self.kind == "mirror":
            return self._judge_mirror(found, tree, unreadable(tree), busy or set())
        if not walk(self.source.root) and any(one.tree for one in self.versions.values()):
            if found.code == 0:
                # Nothing but the newest version's own source counts.
                newest = max(self.versions)
                if self.versions[newest].tree and unreadable_none(self.versions[newest].tree):
                    raise Failed("an empty source has made a version")
            elif "may_be_empty" in found.output:
                return None
        markers = {name for name, state in self._markers().items() if state in ("complete", "partial")}
        new = sorted(markers - set(self.versions))
        if found.code not in (0, 1) or not new:
            raise Failed(f"exit code {found.code}, new versions {new}: {found.output}")
        if len(new) > runs + 1:
            raise Failed(f"too many versions: {new}")
        for name in new:
            self._judge_version(name, found, tree, hidden, busy)
        self.source.states = [tree]
        self.since_s = None
        self._compare_versions(new)
        # Versions that this run has removed are none that the next one can carry entries over from.
        self.gone.clear()
        self._judge_rule(found)
        status = self.call("status", "--json")
        told = json.loads(status.output.splitlines()[-1])[0]
        newest_whole = self.versions[new[-1]].is_whole
        clock_is_set = bool(told["notes"])
        if (told["state"] == "good") != newest_whole and not clock_is_set:
            raise Failed(f"state {told['state']}, {'without' if newest_whole else 'with'} faults: {found.output}")
        return None

    def _is_refused(self, found: Result) -> bool:
        """Return True if a run was refused, as it has to be, since a file system below the source is not mounted."""
        known = set().union(*self.mounted)
        lost = sorted(path for path in known if self.source.lost(path))
        unmounted = [path for path in known | self.perhaps_mounted if not os.path.ismount(self.source.path(path))]
        if "was a file system of its own" in found.output:
            if found.code != 1 or not unmounted:
                raise Failed(f"refused, and all of {sorted(known)} is mounted: {found.output}")
            self.counts["refused for a mount"] += 1
            return True
        if lost and not self.perhaps_mounted and "may_be_empty" not in found.output:
            raise Failed(f"{lost} had file systems of their own, and a run goes on without: {found.output}")
        return False

    def _note_mounts(self, is_whole: bool) -> None:
        """Note the mount points that the next runs have to find."""
        self.mounted = [*([] if is_whole else self.mounted), self.source.mounts()]
        self.perhaps_mounted = set()

    def _judge_version(self, name: str, found: Result, tree: Tree, hidden: set[bytes], busy: set[bytes] | None) -> None:
        # A run that was killed may have removed what its version was made from.
        known = self.gone | self.versions
        older = [known[one].tree for one in sorted(known, reverse=True) if one < name]
        real = walk(self.copy_in(self.destination / name))
        expected, missing = faults_expected(tree, hidden, older)
        for path in busy or ():
            if path in real and path not in expected:
                expected[path] = real[path]
            elif path in real and real[path] != expected[path]:
                # The run ended while the file was the same for long enough: its copy is consistent.
                expected[path] = real[path]
        lines = []
        for line_path in {*real, *expected}:
            one, other = real.get(line_path), expected.get(line_path)
            # A run that was interrupted and continued has any state of the source between its attempts.
            before = [state.get(line_path) for state in self.source.states]
            is_hidden = any(line_path == path or is_below(line_path, path) for path in hidden)
            if one != other and not (one is not None and one in before and (other is None or is_hidden)):
                if one is not None and other is None and one[0] == "folder" and any(
                    state is not None and state[0] == "folder" for state in before
                ):  # fmt: skip
                    # The killed run had made it, and its mode and time come last.
                    continue
                if one is not None and other is not None and (*one[:3], *one[4:]) == (*other[:3], *other[4:]) and (
                    one[0] == "folder"
                ):  # fmt: skip
                    # Its time changed with an entry that was removed during the run.
                    if len(self.source.states) > 1 or line_path in hidden or any(
                        path.startswith(line_path + b"/") for path in hidden
                    ):  # fmt: skip
                        continue
                if one is None and other is not None and other[:2] == ("folder", 0) and (
                    any(is_below(line_path, path) for path in hidden)
                    or (line_path in hidden and any(name.startswith("user.") for name, _ in other[4]))
                ):  # fmt: skip
                    # The older version could not list it, so it has nothing that could be carried over; or its own
                    # attributes cannot be read (xattr(7)), and so it is not copied itself.
                    continue
                lines.append(f"{line_path!r} is {one}, and not {other}")
        if lines:
            raise Failed(f"{name}: " + "; ".join(lines[:5]) + "\n" + found.output)
        is_partial = self._markers()[name] == "partial"
        if found.code == 0 and is_partial:
            raise Failed(f"{name} has faults, and exit code 0: {found.output}")
        if (hidden - (busy or set())) and not is_partial:
            raise Failed(f"{name} is marked complete, and {sorted(hidden)} could not be read: {found.output}")
        numbers = inodes(self.copy_in(self.destination / name), real)
        if len(self.source.states) == 1 and not busy:
            # Carried-over entries are linked as the older version is.
            copied = {path: number for path, number in inodes(self.source.root, tree).items()
                      if not any(path == one or is_below(path, one) for one in hidden)}  # fmt: skip
            if lines := links_that_differ(numbers, copied):
                raise Failed(f"{name}: " + "; ".join(lines[:5]) + "\n" + found.output)
        self.records[name] = records_of(self.destination / MARKERS, name)
        lead = self.source.exclusion.lead
        lines = wrong_records(
            name,
            self.records,
            {lead + path for path in hidden - (busy or set())},
            {lead + path for path in missing},
            {lead + path for path in real if real[path][0] != "folder"},
            json.loads((self.destination / MARKERS / f"{name}.json").read_text()),
        )
        if lines:
            raise Failed(f"{name}: " + "; ".join(lines[:5]) + "\n" + found.output)
        self.versions[name] = Recorded(real, numbers, not is_partial, hidden, self.since_s or 0.0)
        self._note_mounts(not is_partial)

    def _lacks(self, name: str) -> bool:
        """Return True if something of an older version could not be carried over to this one."""
        told = json.loads((self.destination / MARKERS / f"{name}.json").read_text())
        return bool(told.get("carried") and told["carried"]["failed"])

    def _judge_rule(self, found: Result) -> None:
        """Compare the versions that are left with a rule by number."""
        if not isinstance(self.keep, int):
            return
        names = sorted(self.versions)
        whole = [name for name in names if self.versions[name].is_whole]
        right = {*names[-self.keep :], *whole[-1:]}
        if any(self._lacks(name) for name in names) and right <= set(names):
            # It does not have all that older ones have.
            return
        if set(names) != right:
            raise Failed(f"keep = {self.keep}: {names} are there, and {sorted(right)} should be: {found.output}")

    def _judge_mirror(self, found: Result, tree: Tree, hidden: set[bytes], busy: set[bytes]) -> None:
        if found.code not in (0, 1):
            raise Failed(f"exit code {found.code}: {found.output}")
        if found.code == 1 and ("may_be_empty" in found.output or "max-removals" in found.output
                                or "max_removals" in found.output):  # fmt: skip
            # Nothing was removed, and the rest may have been copied.
            self.copied = walk(self.copy_in(self.destination)) if self.copied is not None else None
            return
        real = walk(self.copy_in(self.destination))
        before = self.copied or {}
        for path in busy:
            # The file has changed since the run: its copy is consistent, or is of an earlier run.
            tree.pop(path, None)
            if path in real:
                tree[path] = real[path]
            above = os.path.dirname(path)
            if above in tree and above in real and real[above][:3] == tree[above][:3]:
                # Its time was changed with the file, after the run.
                tree[above] = real[above]
        if found.code == 0:
            if hidden:
                raise Failed(f"exit code 0, and {hidden} could not be read")
            lines = differences(real, tree)
            if not busy:
                numbers = inodes(self.copy_in(self.destination), real)
                lines += links_that_differ(numbers, inodes(self.source.root, tree))
            if lines:
                raise Failed("a mirror differs: " + "; ".join(lines[:5]) + "\n" + found.output)
        else:
            readable, _ = faults_expected(tree, hidden, [])
            lines = [f"{path!r} is {real.get(path)}, and not {entry}" for path, entry in readable.items()
                     if real.get(path) != entry and entry[0] != "folder"
                     and not any(path.startswith(one + b"/") for one in unreadable(before))]  # fmt: skip
            # Once all sources were read, an entry that cannot be removed is a fault, and others are removed.
            lines += [f"{path!r} was removed" for path in before if hidden and path not in real and path not in readable
                      and not any(path.startswith(one + b"/") for one in readable)]  # fmt: skip
            if lines:
                raise Failed("a mirror with faults differs: " + "; ".join(lines[:5]) + "\n" + found.output)
        self.copied = real
        self._note_mounts(found.code == 0)


def unreadable_none(tree: Tree) -> bool:
    """Return True if nothing in a tree is unreadable."""
    return not unreadable(tree)


@dataclass
class Rewriter(tracer.Observer):
    """Changes a file before each read."""

    path: str
    act: Callable[[], None]
    wants: frozenset[str] = frozenset({"pread64"})

    def enter(self, call: tracer.Call) -> tracer.Act:
        """See `Observer`."""
        if call.file(call.arguments[0]) == self.path:
            self.act()


def drawn(chance: random.Random, length: int) -> tuple[list[Any], list[Step]]:
    """Return the kind and rule of a job, and the steps of a sequence."""
    kind = chance.choices(["incremental", "full", "mirror"], [6, 2, 2])[0]
    keep = None if kind == "mirror" else chance.choice([None, 1, 1, 2, 3, "1h", "48h", "7d"])
    paths = [*NAMES, *(b"d/" + name for name in NAMES[:4]), *(b"d/e/" + name for name in NAMES[:2])]
    steps: list[Step] = [["folder", b"d".hex()], ["folder", b"d/e".hex()]]
    there = chance.sample(paths, 9)
    steps += [["write", path.hex(), number, 1000 * number] for number, path in enumerate(there)]
    free = chance.sample(sorted(set(paths) - set(there)), chance.randrange(4))
    steps += [["hardlink", chance.choice(there).hex(), path.hex()] for path in free]

    def path() -> str:
        return chance.choice(paths).hex()

    def change() -> Step:
        what = chance.choices(["write", "folder", "link", "hide", "show", "remove", "rename", "hardlink", "break",
                               "attribute", "mount", "unmount"], [7, 2, 1, 3, 3, 2, 1, 2, 1, 2, 2, 2])[0]  # fmt: skip
        if what == "write":
            size = chance.choice([0, 1, 100, 4095, 4096, 70_000, 262_144, 300_001])
            return ["write", path(), chance.randrange(1 << 30), size]
        if what == "folder":
            return ["folder", chance.choice([b"d", b"d/e", b"c"]).hex()]
        if what in ("rename", "hardlink"):
            return [what, path(), path()]
        if what == "mount":
            return [what, chance.choice([b"d", b"d/e", b"c"]).hex(), chance.randrange(1 << 30)]
        if what == "unmount":
            return [what, chance.random() < 0.6]
        if what == "attribute":
            return [what, chance.choice([path(), b"d".hex(), b"d/e".hex()]), chance.randrange(1 << 30)]
        if what in ("hide", "show", "remove"):
            return [what, chance.choice([path(), b"d".hex(), b"d/e".hex()])]
        return [what, path(), chance.randrange(9)]

    def kill() -> list[Any]:
        at = [chance.choice(PHASES), chance.randrange(1, 9)] if chance.random() < 0.4 else chance.randrange(1, CALLS)
        if chance.random() < 0.5:
            return [at]
        # Before the run continues, unreadable entries are removed, or any change is made.
        if chance.random() < 0.5:
            # Carried-over entries go with them: they are linked after all else, and made durable by one call.
            name, most = chance.choice((("syncfs", 4), ("linkat", 14)))
            return [[name, chance.randrange(1, most)] if chance.random() < 0.7 else at, [["gone", ""]]]
        return [at, [change() for _ in range(chance.randrange(1, 4))]]

    def restore() -> dict[str, Any]:
        place = chance.choice(["new", "other", "own", "own", "own"])
        how: dict[str, Any] = {"place": place, "seed": chance.randrange(1 << 30)}
        how |= {"exact": chance.random() < 0.6} if place != "new" else {}
        how |= {"at": chance.choice([0, 0, 1, 0.5])} if chance.random() < 0.4 else {}
        return how | ({"kill": kill()[0]} if chance.random() < 0.25 else {})

    source = chance.choice(["data/", "data"])
    exclude = chance.sample(PATTERNS[source], chance.randrange(1, 4)) if chance.random() < 0.6 else []
    while len(steps) < length + 11:
        steps += [change() for _ in range(chance.randrange(4))]
        what = chance.choices(["run", "kill", "busy", "full", "two", "other", "restore", "clock", "wait"],
                              [8, 6, 2, 2, 1, 1, 5, 2, 8 if keep in AGES_S else 1])[0]  # fmt: skip
        more: list[Any] = {
            "kill": kill() if what == "kill" else [], "busy": [path()],
            "full": [chance.randrange(40), chance.random() < 0.5], "other": [chance.choice(["run", "restore"])],
            "restore": [chance.randrange(99), restore()], "wait": [chance.choice([0.3, 0.6, 1.1])],
            "clock": [chance.choice([0, 0, 3600, 86_400, -86_400, 8 * 86_400, 400 * 86_400, -30 * 86_400])],
        }.get(what, [])  # fmt: skip
        steps.append([what, *more])
    return [kind, keep, source, exclude], steps


def replayed(machine: Machine, job: list[Any], steps: list[Step]) -> tuple[int, str] | None:
    """Make the steps; return the number of the one that failed, and how."""
    machine.begin(*job)
    began_s = time.monotonic()
    for number, step in enumerate(steps):
        try:
            machine.step(step)
        except Failed as failure:
            return number, str(failure)
        if time.monotonic() - began_s > 600:
            break
    return None

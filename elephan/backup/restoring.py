"""Restore: a version, or a mirror, back to where it came from or elsewhere, without the job's limits, and verified."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from elephan.backup import versions
from elephan.backup.exclusions import below
from elephan.backup.ledger import Ledger
from elephan.backup.locks import Runs, holder, locked
from elephan.backup.outcome import COPIED, is_lost
from elephan.backup.owner import Owner
from elephan.backup.retention import NAME, Carried, Version, newest_ended
from elephan.backup.running import Runner, Say, Wait, request_of
from elephan.backup.spec import JobSpec, Spec
from elephan.backup.texts import moment
from elephan.copy.api import CopyOutcome, Place, copy
from elephan.errors import InputError
from elephan.printable import one_line
from elephan.units import pluralize

NAMED = 100
"""Entries that a restore names which are not of its version."""
REMOVAL_S = 0.2
"""Time between two looks if older versions are still being removed, s."""


def chosen(found: versions.Found, job: str, version: str | None, at_s: float | None) -> Version:
    """Return the version to restore: a named one, or the newest one up to a time. Raises `InputError`."""
    ended = [one for one in found.own if one.has_ended]
    names = ", ".join(one.name for one in sorted(ended, key=lambda one: one.name)[-5:])
    if not ended and (other := next((one for one in found.versions if one.has_ended), None)) is not None:
        raise InputError(f"{found.path}: its versions are of {owner_text(other)}, not of job {job} with this store: "
                         "right is --store with the store that made them, or --of with its id")  # fmt: skip
    if version is not None:
        fits = next((one for one in ended if one.name == version), None)
        if fits is None:
            wrong = "" if NAME.fullmatch(version) else "; a name is as version-20261126T060000Z"
            raise InputError(f"--version {version}: job {job} has no such complete version{wrong}; there is {names}")
        return fits
    newest = newest_ended(ended, at_s)
    if newest is None and at_s is not None and ended:
        oldest = min(ended, key=lambda one: one.began_s)
        raise InputError(
            f"--at {moment(at_s)}: job {job} has no version of then; the oldest is of {moment(oldest.began_s)}"
        )
    if newest is None:
        raise InputError(f"job {job} has no complete version at {found.path}")
    return newest


def owner_text(version: Version) -> str:
    """Return whose a version is, in words."""
    owner = version.owner or {}
    parts = [f'{name} "{owner[name]}"' for name in ("backup", "job") if owner.get(name)]
    parts += [f"store {owner['store']}"] if owner.get("store") else []
    return ", ".join(parts) + (f" of host {owner['host']}" if owner.get("host") else "") or "another backup"


def differences(version: Version, path: str) -> list[str]:
    """Return a line for each entry that a version has from an older one, or lacks; the first ones and how many more."""
    carried = version.carried
    if version.is_complete or carried is None:
        return []
    lines = []
    for one in [one for one in carried.list if one.get("from") != version.name][:NAMED]:
        if one.get("failed"):
            lines.append(f"{one['path']}: missing: {one['failed']}")
        elif one.get("from") is None:
            lines.append(f"{one['path']}: missing: it could not be copied then, and no older version had it")
        else:
            lines.append(f"{one['path']}: of {one['from']}, older than the version: it could not be copied then")
    if not carried.list and carried.lacks:
        lines.append(f"{pluralize(carried.lacks, 'entry')} could not be copied then: the run's receipt names them")
        return lines
    unnamed = min(int(version.facts.get("faults_more") or 0), carried.failed)
    if (more := carried.older + carried.lacks - unnamed - len(lines)) > 0:
        lines.append(f"{more} more: {path}/.elephan-backup/{version.name}.carried")
    if unnamed:
        lines.append(f"{unnamed} more: missing: the run named its first faults alone")
    return lines


def counts(carried: Carried | None) -> str:
    """Return how many entries a version has from older ones, or lacks."""
    parts = []
    if carried is not None and carried.older:
        parts.append(f"{pluralize(carried.older, 'entry')} older than the version")
    if carried is not None and carried.lacks:
        parts.append(f"{pluralize(carried.lacks, 'entry')} missing")
    return ", ".join(parts)


def pairs_of(
    job: JobSpec, base: Place, kinds: dict[str, str], to: Place | None, base_is_folder: bool = True
) -> list[tuple[Place, Place]]:
    """Return what is copied where: each source of the job from `base` to its own place, or all of it to `to`.

    `kinds` are those of the entries in `base`. Raises `InputError`.
    """
    whole = Place(base.host, f"{base.path.rstrip('/')}/" if base_is_folder else base.path)
    if to is not None:
        return [(whole, to)]
    sources = [Place.parse(one) for one in job.sources]
    if not base_is_folder:
        return [(whole, sources[0])]
    if len(sources) > 1 and any(one.path.endswith("/") for one in sources):
        raise InputError(f"job {job.name}: the contents of its sources lie in one folder; give a place: --to PLACE")
    pairs = []
    for source in sources:
        if source.path.endswith("/"):
            pairs.append((whole, source))
            continue
        name = PurePosixPath(source.path).name
        kind = kinds.get(name, "absent")
        if kind == "absent":
            raise InputError(f"{base}/{name}: job {job.name} has no copy of {source} there")
        end = "/" if kind == "folder" else ""
        pairs.append((Place(base.host, f"{base.path.rstrip('/')}/{name}{end}"), Place(source.host, source.path + end)))
    return pairs


class Restorer(Runner):
    """A restore: attempts as those of a run, at any hour and at any rate."""

    def __init__(
        self, spec: Spec, job: JobSpec, ledger: Ledger, wait: Wait, say: Say, *,
        version: str | None, at_s: float | None, to: Place | None, exact: bool, of: str | None = None,
        max_removals: int | None = None,
    ) -> None:  # fmt: skip
        """`exact`: entries of the restored place that the copy does not have are removed.

        `of`: id of the store whose versions are restored; None: the ledger's. `max_removals`: see `CopyOptions`.
        """
        if job.kind == "mirror" and (version is not None or at_s is not None):
            raise InputError(f"job {job.name} is a mirror, and has no older versions: leave out --at and --version")
        super().__init__(spec, replace(job, windows=(), rate_bps=None), ledger, wait, say)
        self._wanted, self._at_s, self._to, self._exact = version, at_s, to, exact
        self._of, self._max_removals = of, max_removals
        self.differences: list[str] = []
        """Lines about entries that are older than the version, or missing from it: the first ones."""
        self._counts = ""
        """Numbers of all such entries."""
        self._lacks = False

    @property
    def owner(self) -> Owner:
        """See `Runner.owner`."""
        own = super().owner
        return own if self._of is None else replace(own, store=self._of)

    def run(self, due_s: float | None = None, missed: int = 0) -> dict[str, Any]:
        """See `Runner.run`; runs of the job go on meanwhile, and remove no version."""
        with self._locked():
            # A version is chosen once: one that is completed meanwhile changes nothing.
            base, found_kinds, is_folder = self._base()
            if self._exact and self._lacks:
                raise InputError(
                    f"--exact: {base} lacks entries that the sources had, and they would be removed: restore without "
                    f"--exact, or another version; {'; '.join(self.differences[:3])}"
                )
            self._pairs = pairs_of(self.job, base, found_kinds, self._to, is_folder)
            protected = [self._protect(source, base) for source, _ in self._pairs]
            self.row = self.ledger.new_run(self.job.name, "restore", self._wanted, None, 0)
            self._sum = (0, 0.0)
            self._protected = protected
            try:
                self._attempts()
            finally:
                if self.row["ended"] is None:
                    # The same command continues from there.
                    self.ledger.put_run(self.row, state="failed", ended=time.time(), text=self.row["text"] or "stopped")
            return self.row

    def _protect(self, source: Place, base: Place) -> list[str]:
        """Return patterns of entries that the copy lacks and `exact` does not remove. Raises `InputError`."""
        patterns: list[str] = list(self.job.options.get("exclude", [])) if self._exact else []
        path = source.path.rstrip("/")
        return patterns if path == base.path.rstrip("/") else below(patterns, PurePosixPath(path).name)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock that keeps versions; a run that removes older ones now is waited for."""
        place, backup, name = self.ledger.place, self.spec.name, f"{self.job.name}.restore"
        is_said = False
        with ExitStack() as stack:
            while True:
                try:
                    stack.enter_context(locked(place, backup, name))
                    break
                except Runs:
                    who = holder(place, backup, name)
                    if who is not None and who != holder(place, backup, self.job.name):
                        raise
                    if not is_said:
                        is_said = True
                        self._say(f"{self.job.name}: waits until older versions are removed")
                    if self._wait(REMOVAL_S):
                        raise
            yield

    def _base(self) -> tuple[Place, dict[str, str], bool]:
        """Return where the copy is, the kinds of its entries, and if it is a folder."""
        names = [PurePosixPath(Place.parse(one).path).name for one in self.job.sources if not one.endswith("/")]
        if self.job.kind == "mirror":
            try:
                found = versions.look(self.place, names)
            except InputError as error:
                if "versions need a folder" in str(error):
                    return self.place, {}, False
                raise
            if not found.exists:
                raise InputError(f"{self.place}: job {self.job.name} has no copy there")
            self._look_at_mirror()
            return Place(self.place.host, found.path), found.kinds, True
        with versions.opened(self.place, self.owner) as there:
            found = there.look()
            version = chosen(found, self.job.name, self._wanted, self._at_s)
            self._wanted = version.name
            self._lacks = version.carried is not None and version.carried.lacks > 0
            again = there.look([f"{version.name}/{name}" for name in names], version.name)
            kinds = again.kinds
            version = next((one for one in again.own if one.name == version.name), version)
            self.differences, self._counts = differences(version, found.path), counts(version.carried)
        base = Place(self.place.host, f"{found.path}/{version.name}")
        return base, {path.partition("/")[2]: kind for path, kind in kinds.items()}, True

    def _look_at_mirror(self) -> None:
        """Note what the newest run could not copy: the mirror has it of an earlier run, or not at all."""
        runs = [row for row in self.ledger.runs(self.job.name) if row["kind"] != "restore" and row["state"] in COPIED]
        if not runs or runs[0]["state"] != "faults":
            return
        receipt = json.loads(runs[0]["receipt"] or "{}")
        lost = [one for one in receipt.get("faults") or [] if is_lost(one)]
        self._lacks = True
        self.differences = [f"{one['path']}: older than the newest run, or missing: {one['reason']}"
                            for one in lost[:NAMED]]  # fmt: skip
        count = len(lost) + int(receipt.get("faults_more") or 0)
        self._counts = f"{pluralize(count, 'entry')} older than the newest run, or missing"
        if (more := count - len(self.differences)) > 0:
            self.differences.append(f"{more} more: the receipt of the newest run names them")

    def _attempt(self, wait: Wait, rate_bps: int | None) -> CopyOutcome:
        """Copy each pair, with what is there compared byte by byte and what is written read back."""
        if self.row["forecast"] is None:
            self._forecast(True, None)
        options: dict[str, Any] = {"checksum": True, "exclude": [], **({"mirror": True} if self._exact else {})}
        if self._exact and self._max_removals is not None:
            options["max_removals"] = self._max_removals
        done: list[CopyOutcome] = []
        for (source, destination), protect in zip(self._pairs, self._protected, strict=True):
            own = {**options, **({"protect": protect} if protect else {})}
            request = request_of(self.job, [source], destination, own, None)
            done.append(copy(replace(request, verify="read"), self._watch, wait))
        if len(done) == 1:
            return done[0]
        receipt = {
            **{name: sum(int(one.receipt.get(name) or 0) for one in done) for name in ("files", "bytes", "sent_bytes")},
            "parts": [one.receipt for one in done],
        }
        faults = [fault for one in done for fault in one.faults]
        return CopyOutcome(receipt, max(one.exit_code for one in done), max(one.attempts for one in done), faults)

    def _done(self, outcome: CopyOutcome) -> None:
        """See `Runner._done`; what the version has from an older one, or lacks, is a fault of the restore."""
        super()._done(outcome)
        if self.differences:
            names = "; ".join(self.differences[:3])
            text = f"{self._counts}: {names}"
            self.ledger.put_run(self.row, state="faults")
            self._add_text(one_line(text))

    def _remove_older(self) -> None:
        """A restore removes no version."""

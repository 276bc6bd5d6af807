"""Restore: a version, or a mirror, back to where it came from or elsewhere, without the job's limits, and verified."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from elephan.backup import versions
from elephan.backup.ledger import Ledger
from elephan.backup.locks import locked
from elephan.backup.retention import NAME, Version, newest_complete
from elephan.backup.running import Runner, Say, Wait, request_of
from elephan.backup.spec import JobSpec, Spec
from elephan.backup.texts import moment
from elephan.copy.api import CopyOutcome, Place, copy
from elephan.errors import InputError


def chosen(found: versions.Found, job: str, version: str | None, at_s: float | None) -> Version:
    """Return the version to restore: a named one, or the newest complete one up to a time. Raises `InputError`."""
    complete = [one for one in found.versions if one.is_complete]
    names = ", ".join(one.name for one in sorted(complete, key=lambda one: one.name)[-5:])
    if version is not None:
        fits = next((one for one in complete if one.name == version), None)
        if fits is None:
            wrong = "" if NAME.fullmatch(version) else "; a name is as version-20261126T060000Z"
            raise InputError(f"--version {version}: job {job} has no such complete version{wrong}; there is {names}")
        return fits
    newest = newest_complete(complete, at_s)
    if newest is None and at_s is not None and complete:
        oldest = min(complete, key=lambda one: one.name)
        raise InputError(
            f"--at {moment(at_s)}: job {job} has no version of then; the oldest is of {moment(oldest.began_s)}"
        )
    if newest is None:
        raise InputError(f"job {job} has no complete version at {found.path}")
    return newest


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
        raise InputError(f"job {job.name}: the contents of its sources lie in one folder; say where to: --to PLACE")
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
        version: str | None, at_s: float | None, to: Place | None, exact: bool,
    ) -> None:  # fmt: skip
        """`exact`: what the copy does not have goes from the place that it is restored to."""
        if job.kind == "mirror" and (version is not None or at_s is not None):
            raise InputError(f"job {job.name} is a mirror, and has no older versions: leave out --at and --version")
        super().__init__(spec, replace(job, windows=(), rate_bps=None), ledger, wait, say)
        self._wanted, self._at_s, self._to, self._exact = version, at_s, to, exact

    def run(self, due_s: float | None = None, missed: int = 0) -> dict[str, Any]:
        """See `Runner.run`; runs of the job go on meanwhile, and remove no version."""
        with locked(self.ledger.place, self.spec.name, f"{self.job.name}.restore"):
            # A version is chosen once: one that is completed meanwhile changes nothing.
            base, found_kinds, is_folder = self._base()
            self._pairs = pairs_of(self.job, base, found_kinds, self._to, is_folder)
            self.row = self.ledger.new_run(self.job.name, "restore", self._wanted, None, 0)
            self._sum = (0, 0.0)
            try:
                self._attempts()
            finally:
                if self.row["ended"] is None:
                    # The same command goes on from there.
                    self.ledger.put_run(self.row, state="failed", ended=time.time(), text=self.row["text"] or "stopped")
            return self.row

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
            return Place(self.place.host, found.path), found.kinds, True
        with versions.opened(self.place) as there:
            found = there.look()
            version = chosen(found, self.job.name, self._wanted, self._at_s)
            self._wanted = version.name
            kinds = there.look([f"{version.name}/{name}" for name in names]).kinds
        base = Place(self.place.host, f"{found.path}/{version.name}")
        return base, {path.partition("/")[2]: kind for path, kind in kinds.items()}, True

    def _attempt(self, wait: Wait, rate_bps: int | None) -> CopyOutcome:
        """Copy each pair, with what is there compared byte by byte and what is written read back."""
        if self.row["forecast"] is None:
            self._forecast(True, None)
        options: dict[str, Any] = {"checksum": True, "exclude": [], **({"mirror": True} if self._exact else {})}
        done: list[CopyOutcome] = []
        for source, destination in self._pairs:
            request = request_of(self.job, [source], destination, options, None)
            done.append(copy(replace(request, verify="read"), self._watch, wait))
        if len(done) == 1:
            return done[0]
        receipt = {
            **{name: sum(int(one.receipt.get(name) or 0) for one in done) for name in ("files", "bytes", "sent_bytes")},
            "parts": [one.receipt for one in done],
        }
        faults = [fault for one in done for fault in one.faults]
        return CopyOutcome(receipt, max(one.exit_code for one in done), max(one.attempts for one in done), faults)

    def _remove_older(self) -> None:
        """Nothing goes after a restore."""

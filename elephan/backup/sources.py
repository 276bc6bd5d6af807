"""Check of a job's sources before a run: a disk that is not mounted shows an empty folder, not an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from elephan.backup import versions
from elephan.backup.spec import JobSpec
from elephan.copy.api import Place
from elephan.errors import InputError

REMEDY = "mount the disk, or set may_be_empty = true"


class SourceCheck:
    """The sources of a run, looked at once."""

    def __init__(self, job: JobSpec, sources: Sequence[Place]) -> None:
        """Look. Raises `CopyFailed` where the host cannot be asked."""
        self._job = job
        self._found = list(zip(job.sources, versions.look_at(sources), strict=True))

    def facts(self) -> list[dict[str, Any]]:
        """Return what later runs are compared with."""
        return [
            {"source": text, "is_empty": found.is_empty, "is_mount": found.is_mount}
            for text, found in self._found
            if found is not None and found.exists
        ]

    def against(self, earlier: Mapping[str, Any] | None, version: str | None) -> None:
        """Raise `InputError` where a source has become empty, or is a mount point no more, since an earlier run.

        `earlier` has its `sources`, as `facts` returned them, and of versions the number of `files`.
        """
        if self._job.may_be_empty or not self._found:
            return
        if self._is_all_empty() and self._job.kind == "mirror":
            raise InputError(
                f"{', '.join(self._job.sources)}: empty, and a mirror would remove all of {self._job.destination}: "
                f"{REMEDY}"
            )
        if earlier is None:
            return
        before = {one["source"]: one for one in earlier.get("sources") or []}
        of = "the run before" if version is None else version
        for now in self.facts():
            then = before.get(now["source"])
            if then is None:
                continue
            if now["is_empty"] and not then["is_empty"]:
                raise InputError(f"{now['source']}: empty, and it was not for {of}: {REMEDY}")
            if then["is_mount"] and not now["is_mount"]:
                raise InputError(f"{now['source']}: nothing is mounted there, as was for {of}: {REMEDY}")
        if not before and self._is_all_empty() and earlier.get("files"):
            # A version of an earlier release.
            raise InputError(f"{', '.join(self._job.sources)}: empty, and {of} is not: {REMEDY}")

    def _is_all_empty(self) -> bool:
        return all(found is not None and found.exists and found.is_empty for _, found in self._found)

"""Check of a job's sources before a run: a disk that is not mounted shows an empty folder, not an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from elephan.backup import versions
from elephan.backup.spec import JobSpec
from elephan.copy.api import Place
from elephan.errors import InputError

REMEDY = "mount the disk, or set may_be_empty = true"
LOST = {
    "empty": "is empty now",
    "unmounted": "nothing is mounted there now",
    "gone": "no longer exists, nor does the folder above it",
}
"""States of an earlier mount point in which its content would be missing from a copy."""

Earlier = tuple[str, Mapping[str, Any]]
"""An earlier run in words, and its `sources` as `SourceCheck.facts` returned them; of versions also the number of
`files`."""


class SourceCheck:
    """The sources of a run, looked at once."""

    def __init__(self, job: JobSpec, sources: Sequence[Place]) -> None:
        """Look. Raises `CopyFailed` where the host cannot be asked."""
        self._job, self._places = job, sources
        self._found = list(zip(job.sources, versions.look_at(sources), strict=True))

    def facts(self, mounts: Sequence[Mapping[str, Any]] = ()) -> list[dict[str, Any]]:
        """Return what later runs are compared with; `mounts` are those of the copy's receipt."""
        return [
            {
                "source": text,
                "is_empty": found.is_empty,
                "is_mount": found.is_mount,
                "is_link": found.is_link and not text.endswith("/"),
                "mounts": [one["path"] for one in mounts if one["source"] == number],
            }
            for number, (text, found) in enumerate(self._found)
            if found is not None and found.exists
        ]

    def against(self, earlier: Sequence[Earlier]) -> None:
        """Raise `InputError` where a source has become empty, or a file system is not mounted, since an earlier run.

        `earlier`: the newest run, then older ones as far as newer ones could not copy all. A run that could not list a
        folder reports no mount points below it.
        """
        if self._job.may_be_empty or not self._found:
            return
        if self._is_all_empty() and self._job.kind == "mirror":
            raise InputError(
                f"{', '.join(self._job.sources)}: empty, and a mirror would remove all of {self._job.destination}: "
                f"{REMEDY}"
            )
        if not earlier:
            return
        of, facts = earlier[0]
        before = {one["source"]: one for one in facts.get("sources") or []}
        for now in self.facts():
            then = before.get(now["source"])
            if then is None:
                continue
            if now["is_empty"] and not then["is_empty"]:
                raise InputError(f"{now['source']}: empty, and it was not for {of}: {REMEDY}")
            if now["is_link"] and not then.get("is_link", False):
                raise InputError(
                    f"{now['source']}: a symbolic link, and it was a folder for {of}: a copy has the link alone: "
                    "name the folder that it leads to, or set may_be_empty = true"
                )
            if then["is_mount"] and not now["is_mount"]:
                raise InputError(f"{now['source']}: nothing is mounted there, as was for {of}: {REMEDY}")
        if not before and self._is_all_empty() and facts.get("files"):
            # A version of an earlier release.
            raise InputError(f"{', '.join(self._job.sources)}: empty, and {of} is not: {REMEDY}")
        self._check_mounts(earlier)

    def _check_mounts(self, earlier: Sequence[Earlier]) -> None:
        """Compare mount points below the sources: without its file system, such a folder is empty and no error."""
        runs: dict[str, dict[str, str]] = {}
        for of, facts in earlier:
            for one in facts.get("sources") or []:
                for path in one.get("mounts") or []:
                    runs.setdefault(one["source"], {}).setdefault(path, of)
        if not runs:
            return
        paths = [sorted(runs.get(text, ())) for text in self._job.sources]
        lost = []
        for text, found in zip(self._job.sources, versions.look_at(self._places, paths), strict=True):
            states = {} if found is None else found.mounts
            removed = tuple(f"{path}/" for path, state in states.items() if state == "removed")
            for path, state in states.items():
                # A user has removed a mount point whose folder is gone, with all mount points below.
                if state in LOST and not path.startswith(removed):
                    of = runs[text][path]
                    lost.append(f"{text.rstrip('/')}/{path}: was a file system of its own in {of}, and {LOST[state]}")
        if lost:
            more = f" ({len(lost) - 1} more)" if len(lost) > 1 else ""
            raise InputError(f"{lost[0]}{more}: {REMEDY}")

    def _is_all_empty(self) -> bool:
        return all(found is not None and found.exists and found.is_empty for _, found in self._found)

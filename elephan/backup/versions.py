"""Versions at the receiving host: asked for and changed by the core there, at a host by its agent as the user."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from elephan.backup.owner import Owner
from elephan.backup.retention import Carried, Version
from elephan.copy.api import Place
from elephan.copy.faults import LOST, CopyFailed
from elephan.copy.sides import host_of, path_here, path_there
from elephan.core import native
from elephan.errors import ElephanError, InputError
from elephan.hosts.agent import Agent, AgentError, connected

ANSWER_S = 60.0
"""Time for an answer about versions, s: a disk that has been asleep takes some."""
STEP_S = 0.1
"""Time between two looks if a removal is to stop, s."""

BATCH_CHARACTERS = 2_000_000
"""Most characters of paths in one request: a frame of an agent has 16 MiB at most (crates/agent/src/frame.rs), and one
character up to six bytes there. Few requests: each reads the records of all older versions."""

PATH_CHARACTERS = 4
"""Of a path in a request beside its own: quotes, comma and space."""

MustStop = Callable[[], bool]


@dataclass(frozen=True)
class Found:
    """A destination as it is."""

    path: str
    """Absolute, at the receiving host."""
    exists: bool
    is_empty: bool
    versions: tuple[Version, ...]
    latest: str | None
    """Version that the link `latest` points to."""
    kinds: dict[str, str]
    """By path below the destination: "folder", "file", "link", "device", "other" or "absent"."""
    free_bytes: int | None
    is_mount: bool = False
    """True if a file system is mounted there."""
    is_link: bool = False
    """True if its last name is a symbolic link."""
    mounts: dict[str, str] = field(default_factory=dict)
    """State of earlier mount points, by path: "mounted", "empty", "unmounted", "removed", "gone" or "unknown"."""

    @property
    def own(self) -> tuple[Version, ...]:
        """Return the versions of the job that asks."""
        return tuple(one for one in self.versions if one.is_own)


class Versions:
    """The versions of one destination, through one session where it is at a host."""

    def __init__(self, place: Place, agent: Agent | None, owner: Owner | None = None) -> None:
        """`owner`: the job that asks; the receiving host refuses it what is of another one."""
        self.place = place
        self._agent = agent
        self._owner = owner

    def look(self, names: Sequence[str] = (), listed: str | None = None, mounts: Sequence[str] = ()) -> Found:
        """Return the destination's state; of the version `listed` also the entries that it lacks, and the states of
        `mounts`.

        Raises `InputError`, and `CopyFailed` where the host cannot be asked.
        """
        told = self._asked({"do": "look", "names": list(names), "list": listed, "mounts": list(mounts)})
        versions = tuple(_version(one) for one in told["versions"])
        return Found(
            told["path"], told["exists"], told["is_empty"], versions, told["latest"], told["kinds"],
            told.get("free_bytes"), bool(told.get("is_mount")), bool(told.get("is_link")), told["mounts"],
        )  # fmt: skip

    def begin(self, version: str, facts: dict[str, Any]) -> str:
        """Make a version's folder and marker, or go on with it; return its absolute path. Raises as `look`."""
        return str(self._asked({"do": "begin", "version": version, "facts": facts})["path"])

    def carry(self, version: str, paths: Sequence[str], must_stop: MustStop) -> None:
        """Link entries that could not be copied from the newest older version that has them. Raises as `remove`.

        `paths` are those of the faults of a copy.
        """
        for batch in _batches(paths):
            self._asked({"do": "carry", "version": version, "paths": batch}, must_stop)

    def complete(self, version: str, facts: dict[str, Any], unlisted: int = 0) -> Carried | None:
        """Mark a version complete, or partial if entries could not be copied, and have `latest` point to it.

        `unlisted`: entries that could not be copied and that no `carry` named. Return what it lacks. Raises as `look`.
        """
        request = {"do": "complete", "version": version, "facts": facts, "unlisted": unlisted}
        return Carried.of(self._asked(request)["carried"])

    def remove(self, version: str, must_stop: MustStop) -> int:
        """Remove a version; return how many entries went. Raises as `look`, `native.Stopped` where it was stopped.

        The receiving host refuses what no backup made, and the newest complete version.
        """
        return int(self._asked({"do": "remove", "version": version}, must_stop)["removed"])

    def adopt(self) -> int:
        """Make all versions there those of the job that asks; return their number. Raises as `look`."""
        return int(self._asked({"do": "adopt"})["adopted"])

    def _asked(self, request: dict[str, Any], must_stop: MustStop | None = None) -> dict[str, Any]:
        if self._owner is not None:
            request = {**request, "owner": self._owner.as_json()}
        if self._agent is None:
            return _asked_here({**request, "destination": path_here(self.place.path)}, must_stop)
        with _as_faults():
            reply = self._agent.begin("versions", **request, destination=path_there(self.place.path))
            waited_s = 0.0
            while not self._agent.inbox.wait(lambda: reply.has_ended, STEP_S):
                waited_s += STEP_S
                if must_stop is None and waited_s > ANSWER_S:
                    raise CopyFailed(LOST, f"{self._agent.host.name}: no answer within {ANSWER_S:g} s")
                if must_stop is not None and must_stop():
                    # With its session the agent ends, and the next removal goes on.
                    raise native.Stopped
            return reply.result()


def _version(told: dict[str, Any]) -> Version:
    return Version(
        told["version"], told["state"], told["exists"], told["facts"] or {}, Carried.of(told["carried"]), told["own"],
        told["owner"],
    )  # fmt: skip


def _batches(paths: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for path in paths:
        if batch and size + len(path) > BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
        batch.append(path)
        size += len(path) + PATH_CHARACTERS
    if batch:
        yield batch


@contextmanager
def opened(place: Place, owner: Owner | None = None) -> Iterator[Versions]:
    """Give the versions at a destination. Raises `InputError`, and `CopyFailed` where the host cannot be reached."""
    if place.host is None:
        yield Versions(place, None, owner)
        return
    host = host_of(place.host)
    with ExitStack() as stack:
        with _as_faults():
            agent = stack.enter_context(connected(host, as_user=True))
        yield Versions(place, agent, owner)


def look_at(places: Sequence[Place], mounts: Sequence[Sequence[str]] = ()) -> list[Found | None]:
    """Return what is at folders of one host; None for what is no folder, or cannot be listed: a copy reports why.

    `mounts`: earlier mount points below each of the folders.
    Raises `CopyFailed` where the host cannot be asked, `InputError` where it is not known.
    """
    if not places:
        return []
    found: list[Found | None] = []
    with opened(places[0]) as there:
        for place, paths in zip(places, mounts or [()] * len(places), strict=True):
            try:
                found.append(Versions(place, there._agent).look(mounts=paths))
            except InputError:
                found.append(None)
            except CopyFailed as error:
                if error.kind != "io":
                    raise
                found.append(None)
    return found


def look(place: Place, names: Sequence[str] = (), owner: Owner | None = None) -> Found:
    """Return what is at a destination. Raises as `Versions.look`."""
    with opened(place, owner) as there:
        return there.look(names)


@contextmanager
def _as_faults() -> Iterator[None]:
    """Raise errors of an agent and its session as those of a copy, which runs know how to take."""
    try:
        yield
    except AgentError as error:
        raise _fault(error.kind, str(error)) from error
    except (InputError, CopyFailed):
        raise
    except ElephanError as error:
        raise CopyFailed(LOST, str(error)) from error


def _asked_here(request: dict[str, Any], must_stop: MustStop | None) -> dict[str, Any]:
    asked = native.BackupVersions(json.dumps(request))
    answer: list[Any] = []

    def work() -> None:
        try:
            answer.append(json.loads(asked.run()))
        except BaseException as error:  # handed to the caller's thread, which raises it
            answer.append(error)

    thread = threading.Thread(target=work, name="elephan-versions")
    thread.start()
    while thread.is_alive():
        thread.join(STEP_S)
        if must_stop is not None and must_stop():
            asked.stop()
    told = answer[0]
    if isinstance(told, native.CopyFault):
        raise _fault(told.kind, told.text) from told
    if isinstance(told, BaseException):
        raise told
    found: dict[str, Any] = told
    return found


def _fault(kind: str, text: str) -> Exception:
    if kind == "stopped":
        return native.Stopped()
    return InputError(text) if kind in ("input", "rights") else CopyFailed(kind, text)

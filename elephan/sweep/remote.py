"""Work of a cluster's worker: it runs points, and holds the files that they read (see `elephan.sweep.cluster`).

Nothing of it stays: the folder of the files goes with the worker's process.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elephan.errors import ElephanError, InputError


@dataclass(frozen=True)
class Point:
    """One point: its specification as JSON, and the files that it reads as path, SHA-256 and bytes."""

    number: int
    id: str
    seed: int
    spec: str
    inputs: Sequence[tuple[str, str, int]]


@dataclass(frozen=True)
class Task:
    """Points for one worker, and the elephan that asks."""

    version: str
    build: str
    points: Sequence[Point]


@dataclass
class Done:
    """Result of a point: its record as JSON without what the asker has, and its series; or an error."""

    number: int
    record: str | None = None
    series: tuple[bytes, bytes] = (b"", b"")
    took_s: float = 0.0
    error: tuple[str, str] | None = None
    """Kind and text."""


@dataclass
class Answer:
    """Results of a task; without those of its points that were not run."""

    worker: str
    done: list[Done] = field(default_factory=list)
    lacks: list[str] = field(default_factory=list)
    """Digests of files that the worker lacks."""
    refused: list[str] = field(default_factory=list)
    """The worker's version and build, where they are not the asker's."""


def probe() -> Callable[[], list[str]]:
    """Return a function that gives version and build of a worker's elephan, also where there is none.

    It is sent whole, since a worker without elephan could not import it.
    """

    def asked() -> list[str]:
        try:
            from elephan.core import build_digest, version
        except Exception as error:
            return [f"{type(error).__name__}: {error}".splitlines()[0]]
        return [version(), build_digest()]

    return asked


class _Files:
    """Files that were sent to this process, by digest."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._whole: set[str] = set()

    def path(self, digest: str) -> Path:
        """Return where a file is, or is to be."""
        with self._lock:
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="elephan-inputs-")
            return Path(self._folder.name) / digest

    def find(self, path: str, digest: str) -> str | None:
        """Return where a file with these contents is under the name that it has for the asker, None if nowhere."""
        if _has(path, digest):
            # A file system that all machines have.
            return path
        if digest not in self._whole:
            return None
        # Records name a file by its last part.
        own = self.path(digest).with_name(f"{digest}.d") / Path(path).name
        if not own.exists():
            own.parent.mkdir(exist_ok=True)
            own.symlink_to(self.path(digest))
        return str(own)

    def take(self, digest: str, first: int, part: bytes, is_last: bool) -> None:
        """Take a part of a file. Raises `InputError` when the whole is not what its digest says, `OSError`."""
        path = self.path(digest)
        with self._lock:
            if digest in self._whole:
                return
            with path.open("r+b" if first else "wb") as file:
                file.seek(first)
                file.write(part)
            if is_last:
                if hashlib.sha256(path.read_bytes()).hexdigest() != digest:
                    raise InputError("it has changed since the sweep began")
                self._whole.add(digest)


_FILES = _Files()


def _has(path: str, digest: str) -> bool:
    from elephan.backends.inputs import read_input

    try:
        return read_input(path, False).sha256 == digest
    except InputError:
        return False


def take_part(digest: str, first: int, part: bytes, is_last: bool) -> None:
    """Take a part of a file for points to come. Raises `InputError`, `OSError`."""
    _FILES.take(digest, first, part, is_last)


def run(task: Task) -> Answer:
    """Run the points of a task, on the worker that it is given to."""
    from distributed import get_worker

    from elephan.backends import Stopped
    from elephan.core import build_digest, version

    worker = get_worker()
    answer = Answer(str(worker.address))
    if (task.version, task.build) != (version(), build_digest()):
        answer.refused = [version(), build_digest()]
        return answer
    key = worker.get_current_task()

    def go_on(*_: int) -> None:
        found = worker.state.tasks.get(key)
        if found is None or found.state == "cancelled":
            raise Stopped

    for point in task.points:
        places = {path: _FILES.find(path, digest) for path, digest, _ in point.inputs}
        lacking = [digest for path, digest, _ in point.inputs if places[path] is None]
        if lacking:
            answer.lacks += [digest for digest in lacking if digest not in answer.lacks]
            continue
        try:
            go_on()
            answer.done.append(_run(point, {path: str(place) for path, place in places.items()}, go_on))
        except Stopped:
            return answer
        except ElephanError as error:
            text = str(error)
            for path, place in places.items():
                text = text.replace(str(place), path)
            answer.done.append(Done(point.number, error=(type(error).__name__, text)))
            return answer
    return answer


def _run(point: Point, places: dict[str, str], progress: Callable[[int, int], None]) -> Done:
    from elephan.backends import Job, sim
    from elephan.record import ScenarioInfo
    from elephan.store.series import SeriesFiles

    # Points without files, the most, are not walked.
    spec = _placed(json.loads(point.spec), places) if places else json.loads(point.spec)
    job = Job(0, spec, {}, point.seed, ScenarioInfo(name=""))
    # Known to the asker: neither is to be computed again.
    job.__dict__["id"] = point.id
    job.__dict__["inputs"] = []
    began_s = time.monotonic()
    record, series = sim.run(job, progress)
    took_s = time.monotonic() - began_s
    files = SeriesFiles.of(series)
    record.spec = {}  # type: ignore[typeddict-item]
    text = record.model_dump_json()
    for path, place in places.items():
        text = text.replace(json.dumps(place)[1:-1], json.dumps(path)[1:-1])
    return Done(point.number, text, (files.flow, files.link), took_s)


def _placed(value: Any, places: dict[str, str]) -> Any:
    """Return a specification with files where they are here."""
    if isinstance(value, dict):
        return {key: _placed(item, places) for key, item in value.items()}
    if isinstance(value, list):
        return [_placed(item, places) for item in value]
    return places.get(value, value) if isinstance(value, str) else value

"""A monitor from its file: read, locked, with its tables, until a signal ends it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from elephan.errors import InputError, RunError, StoreError
from elephan.monitor.child_processes import call
from elephan.monitor.daemon import Daemon, Say
from elephan.monitor.instance import locked
from elephan.monitor.spec import Spec
from elephan.monitor.writing import is_ready
from elephan.store.place import Place


def read_spec(file: Path) -> Spec:
    """Read a monitor's file in a child, whose memory goes with it. Raises `InputError`."""
    done = call("config", {"file": str(file)})
    if done.result is None:
        kind = InputError if done.exit_code == 2 else RunError
        raise kind(done.fault or "its file cannot be read")
    return Spec.from_json(done.result["spec"])


def run(file: Path, store: str, say: Say) -> None:
    """Monitor until SIGTERM or Ctrl-C; SIGHUP reads the file again. Raises `InputError`, `StoreError`, `RunError`."""
    spec = read_spec(file)
    place = Place.of(store)
    place.prepare()
    with locked(place, spec.name):
        if not is_ready(place):
            done = call("upgrade", {"store": store})
            if done.result is None:
                raise StoreError(done.fault or f"the store {place.location} cannot be made")
        with _signals() as signals:
            daemon = Daemon(spec, store, place, say)
            try:
                daemon.run(signals)
            finally:
                daemon.close()


@contextmanager
def _signals() -> Iterator[int]:
    """Take SIGTERM, SIGINT and SIGHUP over; give a descriptor from which their numbers can be read."""
    ear, mouth = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    before = {number: signal.signal(number, lambda *_: None) for number in _NUMBERS}
    wake = signal.set_wakeup_fd(mouth, warn_on_full_buffer=False)
    try:
        yield ear
    finally:
        signal.set_wakeup_fd(wake)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(ear)
        os.close(mouth)


_NUMBERS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

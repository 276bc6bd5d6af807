"""PostgreSQL and MariaDB servers of a test's own: in a temporary folder, on a Unix socket, ended with the test."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

from elephan.store.place import as_url

START_S = 60.0
"""Time for a server to start, s."""

PROGRAMS = {"postgresql": "postgres", "mariadb": "mariadbd"}
"""The program of each server."""


def program(kind: str) -> Path | None:
    """Return where a server's program is; Debian keeps PostgreSQL's out of the PATH."""
    name = PROGRAMS[kind]
    places = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True), Path("/usr/sbin"), Path("/usr/bin")]
    return next((place / name for place in places if (place / name).is_file()), None)


@dataclass
class Server:
    """A server that runs, and fresh databases in it."""

    location_of: Callable[[str], str]
    """URL of a database by its name, as a user gives it to `--store`."""
    start: Callable[[], subprocess.Popen[bytes]]
    """Starts its process."""
    log: Path
    running: subprocess.Popen[bytes] | None = None
    made: int = 0

    def begin(self) -> None:
        """Start it, and wait until it answers."""
        self.running = self.start()
        _wait(self, self.running, self.log)

    def stop(self) -> None:
        """Stop it at once, with all connections, as a machine that goes down."""
        if self.running is not None:
            # PostgreSQL's fast shutdown; MariaDB takes it for its own.
            self.running.send_signal(signal.SIGINT if "postgres" in str(self.running.args[0]) else signal.SIGTERM)
            self.running.wait(timeout=START_S)
            self.running = None

    def database(self) -> str:
        """Make an empty database and return its URL."""
        self.made += 1
        name = f"elephan_{os.getpid()}_{self.made}"
        self.execute(f"create database {name}")
        return self.location_of(name)

    def execute(self, statement: str, location: str | None = None) -> None:
        """Execute a statement outside of a transaction, by default in the server's own database."""
        engine = create_engine(as_url(location or self.location_of("")), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(statement))
        engine.dispose()


@contextmanager
def server(kind: str) -> Iterator[Server]:
    """Start a server; end it and remove its folder afterwards."""
    binary = program(kind)
    assert binary is not None
    # Short, because a socket's name has at most 107 characters; readable for the server's user.
    folder = Path(tempfile.mkdtemp(prefix="elephan-"))
    try:
        command, location_of, owner = (_postgresql if kind == "postgresql" else _mariadb)(binary, folder)

        def start() -> subprocess.Popen[bytes]:
            with open(folder / "log", "ab") as log:
                return subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, **owner)

        found = Server(location_of, start, folder / "log")
        try:
            found.begin()
            yield found
        finally:
            found.stop()
    finally:
        shutil.rmtree(folder)


def _wait(found: Server, running: subprocess.Popen[bytes], log: Path) -> None:
    until_s = time.monotonic() + START_S
    while True:
        try:
            return found.execute("select 1")
        except OperationalError:
            assert running.poll() is None and time.monotonic() < until_s, log.read_text(errors="replace")
        time.sleep(0.05)


def _postgresql(binary: Path, folder: Path) -> tuple[list[str], Callable[[str], str], dict[str, str]]:
    owner = {}
    if os.geteuid() == 0:
        # It does not run as root.
        shutil.chown(folder, "nobody")
        owner = {"user": "nobody"}
    setup = [str(binary.with_name("initdb")), "-D", str(folder / "data"), "-U", "elephan", "-A", "trust", "--no-sync"]
    subprocess.run(setup, check=True, capture_output=True, cwd=folder, **owner)
    command = [str(binary), "-D", str(folder / "data"), "-k", str(folder), "-c", "listen_addresses=", "-F"]

    def location_of(name: str) -> str:
        return f"postgresql://elephan@/{name or 'postgres'}?host={folder}"

    return command, location_of, owner


def _mariadb(binary: Path, folder: Path) -> tuple[list[str], Callable[[str], str], dict[str, str]]:
    root = ["--user=root"] if os.geteuid() == 0 else []
    common = ["--no-defaults", f"--datadir={folder / 'data'}", *root]
    setup = ["mariadb-install-db", *common, "--auth-root-authentication-method=normal", "--skip-test-db"]
    subprocess.run(setup, check=True, capture_output=True, cwd=folder)
    command = [str(binary), *common, f"--socket={folder / 'socket'}", "--skip-networking", "--skip-log-bin"]
    # Processes are killed here, and not the machine: nothing has to be on the disk.
    command += [f"--pid-file={folder / 'pid'}", "--innodb-flush-method=nosync", "--sync-frm=0"]

    def location_of(name: str) -> str:
        return f"mariadb://root@/{name}?unix_socket={folder / 'socket'}"

    return command, location_of, {}

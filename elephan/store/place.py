"""Location of a store: its text, its URL, the folder of its series, and a check that a store can be there.

**Invariant: nothing is made before it is clear that a store can be there.**
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from elephan import writability
from elephan.errors import InputError, StoreError, StoreUnusable

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

DRIVERS = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql", "mariadb": "mariadb+pymysql"}
"""Driver of a URL that names none: those that the package's extras `postgresql` and `mariadb` install."""

SQLITE_FULL, SQLITE_IOERR = 13, 10
"""Primary result codes (sqlite.org/rescode.html); extended ones have them in their lowest byte."""

FAULTS_OF_A_SERVER = {"53100", "58030"}
"""PostgreSQL's disk_full and io_error (its documentation, appendix A)."""

CONFLICTS = {"40001", "40P01", "23505"}
"""PostgreSQL's serialization_failure, deadlock_detected and unique_violation: another command stored the same run."""

CONFLICTS_IN_MARIADB = {1213, 1205, 1062, 1020}
"""ER_LOCK_DEADLOCK, ER_LOCK_WAIT_TIMEOUT, ER_DUP_ENTRY and ER_CHECKREAD (mariadb.com/kb, error codes)."""

AWAY = {"57P01", "57P02", "57P03", "53300"}
"""PostgreSQL's admin_shutdown, crash_shutdown, cannot_connect_now and too_many_connections; class 08 is away too."""

AWAY_IN_MARIADB = {1040, 1053, 1927, 2002, 2003, 2006, 2013, 2014, 2055, 4031}
"""ER_CON_COUNT_ERROR, ER_SERVER_SHUTDOWN, ER_CONNECTION_KILLED, CR_CONNECTION_ERROR, CR_CONN_HOST_ERROR,
CR_SERVER_GONE_ERROR, CR_SERVER_LOST, CR_COMMANDS_OUT_OF_SYNC, CR_SERVER_LOST_EXTENDED, and a client that was idle."""

SECRETS = ("password", "passwd", "passfile", "sslpassword")
"""Keys of a URL's query that are left out where the URL becomes a name."""

LONGEST_NAME = 200
"""Characters of a file's name that is a URL; Linux takes 255 bytes, endings included."""

FULL_IN_MARIADB = {1021, 1114, 1026}
"""MariaDB's ER_DISK_FULL, ER_RECORD_FILE_FULL and ER_ERROR_ON_WRITE (mariadb.com/kb, error codes)."""


def data_folder() -> Path:
    """Return where elephan keeps what it stores (XDG Base Directory Specification: XDG_DATA_HOME)."""
    from platformdirs import user_data_path

    return user_data_path("elephan")


def spool_folder() -> Path:
    """Return the folder for runs that servers could not take."""
    return data_folder() / "unsent"


def waiting_locations() -> dict[str, Path]:
    """Return the files of runs that wait for a server, by the server's URL without password."""
    found = sorted(spool_folder().glob("*.sqlite"))
    return {unquote(path.stem): path for path in found}


def default_location() -> str:
    """Return $ELEPHAN_STORE, else the file `results.sqlite` in the user's data folder."""
    return os.environ.get("ELEPHAN_STORE") or str(data_folder() / "results.sqlite")


def as_url(location: str) -> URL:
    """Return the database URL of a URL or of a path to an SQLite file. Raises `InputError`."""
    from sqlalchemy.engine import URL, make_url
    from sqlalchemy.exc import ArgumentError

    if "://" not in location:
        return URL.create("sqlite", database=str(Path(location).expanduser().absolute()))
    try:
        url = make_url(location)
        return url.set(drivername=DRIVERS.get(url.drivername, url.drivername))
    except ArgumentError as error:
        raise InputError(
            f"--store {location}: not a database URL; right are a file name, sqlite:///FILE, "
            "postgresql://USER@HOST/NAME"
        ) from error


def named(location: str) -> str:
    """Return how the user named a store: the option, the variable, or not at all."""
    if location == default_location():
        return f"$ELEPHAN_STORE {location}" if os.environ.get("ELEPHAN_STORE") else f"the store {location}"
    return f"--store {location}"


@dataclass(frozen=True)
class Place:
    """Location of a store."""

    given: str
    """As the user named it, without a password."""
    location: str
    """The same as a database URL."""
    file: Path | None
    """The database's file; None where it is a server's, or in memory."""
    series: Path
    """Folder of the time series."""
    former_series: Path | None
    """Folder of the series before each database of a server had a folder of its own; for reading."""
    by_url: URL | None
    """The URL that was given; None for the name of a file."""

    @classmethod
    def of(cls, location: str, series: Path | None = None) -> Place:
        """Return the place of a location; `series` overrides the folder. Raises `InputError`."""
        url = as_url(location) if "://" in location else None
        if url is None:
            file: Path | None = Path(location).expanduser().absolute()
            shown, given = f"sqlite:///{file}", location
        else:
            file = _file_of(url)
            shown = given = url.render_as_string(hide_password=True)
        former = None
        if series is None and file is not None:
            series = file.with_name(f"{file.stem}.series")
        elif series is None:
            assert url is not None
            former = data_folder() / "series"
            series = former / _name_of(url)
        return cls(given, shown, file, series, former, url)

    @property
    def url(self) -> URL:
        """Return the database URL, password and all."""
        return self.by_url or as_url(str(self.file))

    @property
    def spool(self) -> Path | None:
        """Return the file for runs that a server could not take, None where the store is no server's.

        Its name is the URL without passwords, so that each database has its own.
        """
        if self.file is not None or self.by_url is None or self.by_url.get_backend_name() == "sqlite":
            return None
        return spool_folder() / f"{_without_secrets(self.by_url)}.sqlite"

    @property
    def exists(self) -> bool:
        """Return True if there is a database to open; of a server's it is not known before."""
        return self.file is None or os.path.lexists(self.file)

    def prepare(self) -> None:
        """Make the user's own data folder where the store is to be in it. Raises `StoreUnusable`.

        Any other folder has to be there: a folder that is not may be a slip of the pen.
        """
        file = self.file
        if file is None:
            return
        if os.path.isdir(file):
            raise self.unusable("it is a folder")
        folder = file.parent
        if folder == data_folder():
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise self.failed(error) from error
        there = next((part for part in (folder, *folder.parents) if os.path.exists(part)), folder)
        if not os.path.isdir(there):
            raise self.unusable(f"{there} is not a folder")
        if there != folder:
            raise self.unusable(f"there is no folder {folder}; make it first: mkdir -p {folder}")
        if not self.exists:
            self.must_take_series()

    def must_take_series(self) -> None:
        """Raise `StoreUnusable` when no series can be kept; leave nothing."""
        error = writability.problem(self.series)
        if error is not None:
            raise self.failed(error, f"{self.series}, for time series: ")

    def unusable(self, reason: str) -> StoreUnusable:
        """Return the error for a place that cannot be a store."""
        return StoreUnusable(f"{named(self.given)}: cannot keep results there: {reason}")

    def failed(self, error: BaseException, what: str = "") -> StoreError:
        """Return the error for an attempt that failed: the place may be wrong, or the disk full."""
        reason = what + (writability.reason_of(error) if isinstance(error, OSError) else reason_of(error))
        if is_fault(error):
            return StoreError(f"{named(self.given)}: cannot write there: {reason}")
        return self.unusable(reason)


def _file_of(url: URL) -> Path | None:
    """Return the file of an SQLite URL, `file:` names (sqlite.org/uri.html) among them."""
    name = url.database
    if url.get_backend_name() != "sqlite" or name in (None, "", ":memory:"):
        return None
    assert name is not None
    if name.startswith("file:") and url.query.get("uri"):
        if url.query.get("mode") == "memory":
            return None
        name = unquote(urlsplit(name).path)
    return Path(name).absolute()


def _name_of(url: URL) -> str:
    """Return a folder name for a server's database: two databases keep the series of one run apart."""
    kind = "mariadb" if url.get_backend_name() in ("mysql", "mariadb") else url.get_backend_name()
    parts = [kind, url.host or "local", *([str(url.port)] if url.port else []), url.database or ""]
    return re.sub(r"[^A-Za-z0-9_.-]", "_", "-".join(parts))


def _without_secrets(url: URL) -> str:
    """Return a URL as a file's name, without passwords."""
    hidden = url._replace(password=None).difference_update_query(SECRETS).render_as_string(hide_password=False)
    name = quote(hidden, safe="")
    if len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(hidden.encode()).hexdigest()[:32]
    return f"{name[: LONGEST_NAME - len(digest) - 1]}-{digest}"


def is_fault(error: BaseException) -> bool:
    """Return True if a disk is full or broken: no other place, and no other input, would mend that."""
    origin = getattr(error, "orig", None) or error
    if writability.is_disk_fault(origin):
        return True
    code = getattr(origin, "sqlite_errorcode", None)
    if code is not None:
        return int(code) & 0xFF in (SQLITE_FULL, SQLITE_IOERR)
    if getattr(origin, "sqlstate", None) in FAULTS_OF_A_SERVER:
        return True
    return type(origin).__module__.startswith("pymysql") and bool(origin.args) and origin.args[0] in FULL_IN_MARIADB


def is_conflict(error: BaseException | None) -> bool:
    """Return True if a transaction was taken back in favour of another one, and may succeed when it is done again."""
    origin = getattr(error, "orig", None)
    if getattr(origin, "sqlstate", None) in CONFLICTS:
        return True
    return origin is not None and _is_of_mariadb(origin) and origin.args[0] in CONFLICTS_IN_MARIADB


def is_away(error: BaseException) -> bool:
    """Return True if a server cannot be reached or has ended the connection: it may come back."""
    origin = getattr(error, "orig", None) or error
    if type(origin).__module__.startswith("psycopg"):
        state = getattr(origin, "sqlstate", None)
        # Errors that libpq itself finds (no answer, connection lost) come without a code.
        lost = state is None and type(origin).__name__ == "OperationalError"
        return lost or (state is not None and (state in AWAY or state.startswith("08")))
    if _is_of_mariadb(origin):
        return origin.args[0] in AWAY_IN_MARIADB
    # pymysql's for a connection that it has closed itself.
    return type(origin).__module__.startswith("pymysql") and type(origin).__name__ == "InterfaceError"


def _is_of_mariadb(origin: Any) -> bool:
    """Return True if an error is pymysql's and has a code of the server or the client."""
    own = type(origin).__module__.startswith("pymysql")
    return own and bool(origin.args) and isinstance(origin.args[0], int) and origin.args[0] > 0


def reason_of(error: BaseException) -> str:
    """Return the database's own words, one line, without SQL and without links."""
    origin = getattr(error, "orig", None) or error
    return (str(origin).strip() or type(origin).__name__).splitlines()[0]

"""Access tokens: a file of their hashes, which only its owner reads.

A token is 256 bits of the system's random source. SHA-256 alone is then enough: nobody guesses 2^256 values, with a
slow hash or a fast one, and a slow one (scrypt, Argon2) would let a stranger's wrong logins take the processor. Slow
hashes are for passwords that people choose (OWASP, Password Storage Cheat Sheet).
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, get_args

from elephan import user_files
from elephan.errors import InputError
from elephan.store.files import write_atomically

Role = Literal["operator", "reader"]

TOKEN_BYTES = 32
"""256 bits: see above."""

PREFIX = "elephan-"
"""Front of every token, so that scanners for leaked secrets can find one."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


@dataclass(frozen=True)
class Token:
    """One token as the file has it."""

    name: str
    role: Role
    sha256: str
    """Of the token's text, in hexadecimal."""
    created: str


def default_file() -> Path:
    """Return the file of tokens in the user's data folder."""
    from elephan.store.place import data_folder

    return data_folder() / "web-tokens.json"


def read(file: Path) -> list[Token]:
    """Return the tokens of a file. Raises `InputError` for one that is not there, not private or not such a file."""
    try:
        content, status = user_files.read_with_status(file, user_files.TEXT)
        must_be_private(file, status)
        return _tokens(file, json.loads(content))
    except FileNotFoundError as error:
        raise InputError(f"--tokens {file}: no such file; make it by: elephan web token add NAME") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"--tokens {file}: not a file that `elephan web token add` wrote") from error
    except OSError as error:
        raise InputError(f"--tokens {file}: cannot read it: {error.strerror}") from error


def must_be_private(file: Path, found: os.stat_result) -> None:
    """Raise `InputError` when others may read or write the file, or when it is somebody else's."""
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise InputError(f"--tokens {file}: others may read it (mode {stat.S_IMODE(found.st_mode):o}); chmod 600 it")
    if found.st_uid not in (os.geteuid(), 0):
        owner = "it has to belong to the user who runs elephan"
        raise InputError(f"--tokens {file}: it belongs to user {found.st_uid}, and {owner}")


def _tokens(file: Path, content: object) -> list[Token]:
    rows = content.get("tokens") if isinstance(content, dict) else None
    if not isinstance(rows, list):
        raise ValueError("no list of tokens")
    found = []
    for row in rows:
        if not isinstance(row, dict) or set(row) != {"name", "role", "sha256", "created"}:
            raise ValueError("not a token")
        if row["role"] not in get_args(Role):
            raise InputError(f"--tokens {file}: role {row['role']!r}: right are {', '.join(get_args(Role))}")
        if not all(isinstance(value, str) for value in row.values()):
            raise ValueError("not text")
        found.append(Token(**row))
    return found


def add(file: Path, name: str, role: Role) -> str:
    """Make a token, store its hash under `name` and return it: this is the only time. Raises `InputError`."""
    if not NAME.fullmatch(name):
        raise InputError(f"token {name!r}: a name has 1 to 64 letters, digits and . _ @ -, such as anna@noc")
    with _locked(file):
        known = read(file) if file.exists() else []
        if any(token.name == name for token in known):
            raise InputError(f"token {name}: there is one already; first: elephan web token remove {name}")
        text = PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
        created = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        _write(file, [*known, Token(name, role, _digest(text), created)])
    return text


def remove(file: Path, name: str) -> None:
    """Remove a token: its sessions end with it. Raises `InputError` when there is none of that name."""
    with _locked(file):
        known = read(file)
        kept = [token for token in known if token.name != name]
        if len(kept) == len(known):
            there = ", ".join(token.name for token in known) or "none"
            raise InputError(f"token {name}: no such token in {file}; there are: {there}")
        _write(file, kept)


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Keep two commands from losing each other's change."""
    try:
        if not file.parent.is_dir() and file == default_file():
            file.parent.mkdir(parents=True, exist_ok=True)
        folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise InputError(f"--tokens {file}: cannot write there: {error.strerror}") from error
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _write(file: Path, tokens: Sequence[Token]) -> None:
    content = json.dumps({"tokens": [asdict(token) for token in tokens]}, indent=1) + "\n"
    before = os.umask(0o077)
    try:
        write_atomically(file, content.encode())
        file.chmod(0o600)
    finally:
        os.umask(before)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class TokenFile:
    """The tokens of a file, read again whenever the file changes: a token that is removed loses its sessions."""

    def __init__(self, file: Path) -> None:
        """Read the file. Raises `InputError`, also when it has no token: nobody could log in."""
        self.file = file
        self._tokens: list[Token] = []
        self._stamp: tuple[int, int, int] | None = None
        if not read(file):
            raise InputError(f"--tokens {file}: it has no token; make one by: elephan web token add NAME")

    def _current(self) -> list[Token]:
        try:
            found = os.stat(self.file)
            stamp = (found.st_mtime_ns, found.st_ino, found.st_size)
            if stamp != self._stamp:
                self._tokens, self._stamp = read(self.file), stamp
        except (OSError, InputError):
            # A file that is gone or open to others gives nobody access.
            self._tokens, self._stamp = [], None
        return self._tokens

    def holder(self, text: str) -> Token | None:
        """Return the token that a text is, None if it is none."""
        digest, found = _digest(text), None
        # All are compared, each in constant time.
        for token in self._current():
            if hmac.compare_digest(token.sha256, digest):
                found = token
        return found

    def still_there(self, token: Token) -> Token | None:
        """Return a token as the file has it now, None where it was removed or made anew."""
        return next((one for one in self._current() if one.name == token.name and one.sha256 == token.sha256), None)

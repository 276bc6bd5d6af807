"""The book of hosts, by the command that changes it."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from elephan.errors import InputError
from elephan.hosts import Book
from tests.hosts.conftest import Elephan


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """Place of the book of `elephan_alone`, which is not there yet."""
    return tmp_path / "conf" / "hosts.toml"


def test_names_are_added_listed_and_removed(elephan_alone: Elephan, book: Path) -> None:
    assert elephan_alone("hosts", "add", "nyc", "me@nyc.example.org").returncode == 0
    assert elephan_alone("hosts", "add", "lax", "lax", "--address", "FD00::1", "--ports", "5000-5010").returncode == 0
    listed = elephan_alone("hosts", "list", "--json")
    assert json.loads(listed.stdout) == [
        {"name": "nyc", "ssh": "me@nyc.example.org"},
        {"name": "lax", "ssh": "lax", "address": "fd00::1", "ports": "5000-5010"},
    ]
    assert elephan_alone("hosts", "remove", "nyc").returncode == 0
    assert "nyc" not in elephan_alone("hosts", "list").stdout
    assert [path.name for path in book.parent.iterdir()] == ["hosts.toml"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("add", "a b", "x"), "letters, digits"),
        (("add", "a,b", "x"), "letters, digits"),
        (("add", "a", "--", "-oProxyCommand=x"), "destination of ssh"),
        (("add", "a", "me@a b"), "destination of ssh"),
        (("add", "a", "me@a", "--address", "a.example"), "IPv4 or IPv6"),
        (("add", "a", "me@a", "--address", "1.2.3.4\n5"), "IPv4 or IPv6"),
        (("add", "a", "me@a", "--address", "fe80::1%eth0"), "this is one on a single link"),
        (("add", "a", "me@a", "--address", "fe80::1"), "this is one on a single link"),
        (("add", "a", "me@a", "--address", "0.0.0.0"), "this is that of no machine"),
        (("add", "a", "me@a", "--address", "::"), "this is that of no machine"),
        (("add", "a", "me@a", "--address", "::ffff:0.0.0.0"), "this is that of no machine"),
        (("add", "a", "me@a", "--address", "224.0.0.1"), "this is that of a group"),
        (("add", "a", "me@a", "--address", "ff02::1"), "this is that of a group"),
        (("add", "a", "me@a", "--address", "255.255.255.255"), "this is that of a group"),
        (("add", "a", "me@a", "--ports", "5000"), "at least two ports"),
        (("add", "a", "me@a", "--ports", "5000-70000"), "at least two ports"),
        (("remove", "a"), 'no host "a"'),
        (("check", "a"), 'no host "a"'),
    ],
)
def test_wrong_input_is_one_line_and_changes_nothing(
    elephan_alone: Elephan, book: Path, arguments: tuple[str, ...], says: str
) -> None:
    done = elephan_alone("hosts", *arguments)
    assert done.returncode == 2 and says in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert not book.exists() and (not book.parent.exists() or not list(book.parent.iterdir()))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nyc = 1", "nyc: a table"),
        ("[nyc]\nshh = 'a'", "nyc.shh: no such key"),
        ("[nyc]\naddress = '::1'", "nyc.ssh: missing"),
        ("[nyc]\nssh = 'a'\naddress = 7", "nyc.address"),
        ("[nyc]\nssh = 'a'\nports = [1, 2]", "nyc.ports"),
        ("[nyc]\nssh = 'a'\naddress = 'fe80::1%eth0'", "on a single link"),
        ("[nyc", "not TOML"),
    ],
)
def test_a_file_that_is_wrong_is_named_with_its_key(elephan_alone: Elephan, book: Path, text: str, says: str) -> None:
    book.parent.mkdir()
    book.write_text(text)
    done = elephan_alone("hosts", "list")
    assert done.returncode == 2 and says in done.stderr and str(book) in done.stderr, done.stderr


def test_a_name_that_is_taken_stays_what_it_was(elephan_alone: Elephan, book: Path) -> None:
    elephan_alone("hosts", "add", "nyc", "me@nyc")
    done = elephan_alone("hosts", "add", "nyc", "you@nyc")
    assert done.returncode == 2 and "me@nyc already" in done.stderr
    assert "you@nyc" not in book.read_text()


def test_an_ipv4_address_written_as_ipv6_is_ipv4(elephan_alone: Elephan) -> None:
    assert elephan_alone("hosts", "add", "nyc", "me@nyc", "--address", "::ffff:198.18.0.2").returncode == 0
    (host,) = json.loads(elephan_alone("hosts", "list", "--json").stdout)
    assert host["address"] == "198.18.0.2"


def test_names_that_are_added_and_removed_at_once_are_all_kept(elephan_alone: Elephan, book: Path) -> None:
    assert elephan_alone("hosts", "add", "old", "me@old").returncode == 0
    # Each has read the book before any changes it.
    books = [Book.read() for _ in range(16)]
    together = threading.Barrier(len(books))

    def change(number: int) -> None:
        together.wait()
        if number:
            books[number].add(f"n{number}", f"me@n{number}")
        else:
            books[number].remove("old")

    with ThreadPoolExecutor(len(books)) as pool:
        list(pool.map(change, range(len(books))))
    assert {host.name for host in Book.read()} == {f"n{number}" for number in range(1, len(books))}
    assert [path.name for path in book.parent.iterdir()] == ["hosts.toml"]


def test_a_name_that_another_command_has_taken_meanwhile_stays(elephan_alone: Elephan) -> None:
    book = Book.read()
    assert elephan_alone("hosts", "add", "nyc", "me@nyc").returncode == 0
    with pytest.raises(InputError, match="me@nyc already"):
        book.add("nyc", "you@nyc")


def test_a_lock_that_a_killed_command_has_left_stops_nobody(elephan_alone: Elephan, book: Path) -> None:
    book.parent.mkdir()
    (book.parent / ".hosts.toml.lock").touch()
    assert elephan_alone("hosts", "add", "nyc", "me@nyc").returncode == 0
    assert [path.name for path in book.parent.iterdir()] == ["hosts.toml"]


def test_a_book_that_is_a_link_stays_one(elephan_alone: Elephan, book: Path, tmp_path: Path) -> None:
    book.parent.mkdir()
    (tmp_path / "mine.toml").touch()
    book.symlink_to(tmp_path / "mine.toml")
    assert elephan_alone("hosts", "add", "nyc", "me@nyc").returncode == 0
    assert book.is_symlink() and "me@nyc" in (tmp_path / "mine.toml").read_text()

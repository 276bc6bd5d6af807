"""The book of hosts, by the command that changes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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
    assert not book.exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nyc = 1", "nyc: a table"),
        ("[nyc]\nshh = 'a'", "nyc.shh: no such key"),
        ("[nyc]\naddress = '::1'", "nyc.ssh: missing"),
        ("[nyc]\nssh = 'a'\naddress = 7", "nyc.address"),
        ("[nyc]\nssh = 'a'\nports = [1, 2]", "nyc.ports"),
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

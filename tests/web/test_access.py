"""Addresses, tokens, sessions and bounds on wrong logins, without a server."""

from __future__ import annotations

import json
import selectors
import stat
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from elephan.cli.main import call
from elephan.command_socket import Control, Reply
from elephan.errors import InputError
from elephan.monitor.reading import PathState
from elephan.monitor.tables import monitor_folder
from elephan.store.place import Place
from elephan.web import sessions
from elephan.web.asked import AskedTests, Busy, may_ask
from elephan.web.listen import Listen
from elephan.web.sessions import Attempts, Sessions
from elephan.web.tokens import TokenFile, add, read, remove


@pytest.mark.parametrize("text", ["8080", "localhost", "::1:80", "127.0.0.1:x", "1.2.3.4:70000", "example.org:80", ""])
def test_an_address_that_is_none_is_refused_with_one_that_is_right(text: str) -> None:
    with pytest.raises(InputError, match="right are"):
        Listen.of(text)


def test_loopback_is_told_from_other_addresses() -> None:
    assert [Listen.of(f"{host}:0").is_loopback for host in ("127.0.0.1", "127.8.8.8", "[::1]", "localhost")] == 4 * [
        True
    ]
    assert [Listen.of(f"{host}:0").is_loopback for host in ("0.0.0.0", "[::]", "192.0.2.1")] == 3 * [False]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--listen", "0.0.0.0:0"], "needs TLS and login"),
        (["--listen", "[::]:0", "--tokens", "tokens.json"], "needs TLS and login"),
        (["--listen", "0.0.0.0:0", "--tls-cert", "c.pem", "--tls-key", "c.pem"], "needs --tokens"),
        (["--tls-cert", "c.pem"], "give --tls-key too"),
        (["--tls-cert", "none.pem", "--tls-key", "c.pem"], "no such file"),
        (["--tls-cert", "c.pem", "--tls-key", "c.pem"], "not a certificate and its key"),
        (["--tokens", "none.json"], "elephan web token add"),
        (["--tokens", "c.pem"], "chmod 600"),
        (["--store", "none.sqlite"], "no such store"),
        (["--listen", "127.0.0.1"], "expected ADDRESS:PORT"),
    ],
)
def test_what_may_not_be_served_is_refused_in_one_line(
    arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ELEPHAN_STORE", str(tmp_path / "store.sqlite"))
    Path("c.pem").write_text("not PEM")
    Path("c.pem").chmod(0o644)
    assert call(["web", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ") and err.count("\n") == 1 and says in err


def test_without_the_extra_one_line_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    assert call(["web"]) == 1
    assert capsys.readouterr().err == "error: elephan web needs FastAPI and uvicorn: pip install 'elephan[web]'\n"


def test_a_token_is_printed_once_and_stored_as_a_hash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tokens.json"
    assert call(["web", "token", "add", "anna", "--role", "operator", "--tokens", str(file)]) == 0
    text = capsys.readouterr().out.strip()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert text not in file.read_text() and len(text) > 43
    assert call(["web", "token", "add", "anna", "--tokens", str(file)]) == 2
    assert call(["web", "token", "add", "a b", "--tokens", str(file)]) == 2
    capsys.readouterr()
    assert call(["web", "token", "list", "--tokens", str(file)]) == 0
    assert capsys.readouterr().out.startswith("anna  operator  20")
    holder = TokenFile(file).holder(text)
    assert holder is not None and holder.role == "operator"
    assert TokenFile(file).holder(text + "x") is None
    assert call(["web", "token", "remove", "anna", "--tokens", str(file)]) == 0
    assert call(["web", "token", "remove", "anna", "--tokens", str(file)]) == 2
    with pytest.raises(InputError, match="no token"):
        TokenFile(file)


@pytest.mark.parametrize(
    "content", ["", "[]", '{"tokens": [1]}', '{"tokens": [{"name": "a"}]}', '{"tokens": {}}', "[" * 100_000]
)
def test_a_file_that_no_command_wrote_is_refused(content: str, tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    file.write_text(content)
    file.chmod(0o600)
    with pytest.raises(InputError, match="not a file that"):
        read(file)


def test_a_file_that_others_may_read_gives_nobody_access(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    text = add(file, "anna", "reader")
    tokens = TokenFile(file)
    assert tokens.holder(text) is not None
    content = json.loads(file.read_text())
    file.write_text(json.dumps(content, indent=2))
    file.chmod(0o644)
    assert tokens.holder(text) is None


def test_a_session_ends_with_its_token_and_with_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "tokens.json"
    add(file, "anna", "reader")
    tokens = TokenFile(file)
    held = Sessions(tokens)
    (anna,) = read(file)
    cookie = held.begin(anna, 0.0)
    assert held.find(cookie, sessions.IDLE_S - 1) == anna
    assert held.find(cookie, 2 * sessions.IDLE_S) is None and held.find("", 0.0) is None
    used = held.begin(anna, 0.0)
    for at_s in range(0, int(sessions.LIFE_S), int(sessions.IDLE_S)):
        assert held.find(used, at_s) == anna
    assert held.find(used, sessions.LIFE_S + 1) is None
    other = held.begin(anna, 0.0)
    add(file, "bert", "reader")
    assert held.find(other, 1.0) == anna
    remove(file, "anna")
    assert held.find(other, 2.0) is None
    monkeypatch.setattr(sessions, "SESSIONS_MAX", 3)
    bert = read(file)[0]
    cookies = [held.begin(bert, 0.0) for _ in range(5)]
    assert len(held) == 3 and held.find(cookies[0], 0.0) is None and held.find(cookies[4], 0.0) == bert


def test_wrong_logins_are_bounded_by_network_and_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = Attempts()
    for number in range(sessions.FAILURES_MAX):
        assert attempts.wait_s("192.0.2.1", 0.0) == 0, number
        attempts.failed("192.0.2.1", 0.0)
    wait_s = attempts.wait_s("192.0.2.1", 0.0)
    assert wait_s == pytest.approx(sessions.WAIT_S / sessions.FAILURES_MAX)
    assert attempts.wait_s("192.0.2.1", wait_s) == 0 and attempts.wait_s("192.0.2.2", 0.0) == 0
    # One host has all addresses of its /64, and of a mapped one just that.
    for number in range(sessions.FAILURES_MAX):
        attempts.failed(f"2001:db8::{number:x}", 0.0)
        attempts.failed("::ffff:192.0.2.9", 0.0)
    assert attempts.wait_s("2001:db8::ffff", 0.0) > 0 and attempts.wait_s("2001:db8:0:1::", 0.0) == 0
    assert attempts.wait_s("192.0.2.9", 0.0) > 0 and attempts.wait_s("::ffff:192.0.2.8", 0.0) == 0
    monkeypatch.setattr(sessions, "NETWORKS_MAX", 10)
    for number in range(100):
        attempts.failed(f"198.51.100.{number}", 1.0)
    assert len(attempts) == 10


@pytest.fixture
def monitor(tmp_path: Path) -> Iterator[tuple[Place, list[dict[str, Any]]]]:
    """The socket of a running monitor, which answers about `capacity` only when it is asked for another test."""
    place = Place.of(str(tmp_path / "store.sqlite"))
    folder = monitor_folder(place)
    folder.mkdir()
    asked: list[dict[str, Any]] = []
    waiting: list[Reply] = []

    def handle(request: dict[str, Any], reply: Reply) -> None:
        asked.append(request)
        if request["test"] == "capacity":
            waiting.append(reply)
            return
        for one in (*waiting, reply):
            one({"fault": "the budget is spent"} if request["test"] == "mtu" else {"outcome": {}})

    with selectors.DefaultSelector() as selector:
        control = Control(folder / "monitor-noc.socket", selector, handle)
        ended = threading.Event()

        def loop() -> None:
            while not ended.is_set():
                for key, _ in selector.select(0.05):
                    key.data()

        thread = threading.Thread(target=loop)
        thread.start()
        yield place, asked
        ended.set()
        thread.join()
        control.close()


def test_an_operator_asks_a_running_monitor_and_hears_how_it_went(
    monitor: tuple[Place, list[dict[str, Any]]],
) -> None:
    place, asked = monitor
    news = threading.Semaphore(0)
    tests = AskedTests(place, news.release)
    one, two = (PathState(i, "noc", f"path{i}", "", "good", None, {}, 0, {}) for i in (1, 2))
    assert tests.is_running(one) and tests.of(one) is None
    tests.start(one, "capacity", "anna")
    with pytest.raises(Busy, match="still measured"):
        tests.start(one, "queue", "anna")
    shown = tests.of(one)
    assert shown is not None and not shown.is_over and shown.by == "anna"
    deadline = time.monotonic() + 10
    while not asked and time.monotonic() < deadline:
        time.sleep(0.01)
    tests.start(two, "mtu", "bert")
    assert news.acquire(timeout=10) and news.acquire(timeout=10)
    assert asked[0] == {"do": "now", "path": "path1", "test": "capacity"}
    for path in (one, two):
        shown = tests.of(path)
        assert shown is not None and shown.is_over and shown.is_fault and shown.text == "the budget is spent"
    tests.start(one, "queue", "anna")
    assert news.acquire(timeout=10)
    shown = tests.of(one)
    assert shown is not None and shown.text.startswith("done") and not shown.is_fault
    assert may_ask("capacity") and not may_ask("stamp; rm")

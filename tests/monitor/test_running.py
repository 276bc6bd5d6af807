"""The monitor as its users run it: real sessions to a real reflector, kills, commands, alerts, Prometheus."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from elephan.core import native
from elephan.monitor import journal
from elephan.monitor.asking import ask_running
from elephan.monitor.child_processes import call
from elephan.monitor.reading import MonitorReader
from elephan.monitor.tables import path_id
from elephan.monitor.writing import Database
from elephan.store.place import Place
from tests.monitor.receivers import webhook
from tests.processes import free_port, until
from tests.store.servers import program, server

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-c", "from elephan.cli import main; main()", "monitor"]


@cache
def empty_store() -> bytes:
    """Return a store with its tables: to make them takes a second of each test otherwise."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.sqlite"
        assert call("upgrade", {"store": str(path)}).fault is None
        return path.read_bytes()


def store_in(folder: Path) -> str:
    """Return an empty store in a folder."""
    path = folder / "results.sqlite"
    path.write_bytes(empty_store())
    return str(path)


class Reflector:
    """A STAMP reflector on loopback that comes and goes."""

    def __init__(self) -> None:
        self.port = 0
        self.start()

    def start(self) -> None:
        self._end = False
        reflector = native.PathReflector([f"127.0.0.1:{self.port}"])
        self.port = int(reflector.addresses()[0].rpartition(":")[2])
        self._thread = threading.Thread(target=lambda: reflector.serve(lambda _: self._end), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._end = True
        self._thread.join(10)


@pytest.fixture
def reflector() -> Iterator[Reflector]:
    found = Reflector()
    yield found
    found.stop()


def text_of(reflector: Reflector, more: str = "", paths: int = 1, period: str = "100ms") -> str:
    """Return a monitor's file with paths to the reflector."""
    tables = "".join(
        f'[[path]]\nname = "p{number}"\ntowards = "127.0.0.1:{reflector.port}"\nline_rate = "1Gbit/s"\n'
        f'[[path.test]]\ntest = "stamp"\nperiod = "{period}"\n'
        for number in range(paths)
    )
    return f'name = "dr"\n{more}\n{tables}'


@contextmanager
def monitor(file: Path, store: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], Callable[[], str]]]:
    """Run a monitor; give its process, and what it has said so far."""
    said = file.with_suffix(".said")
    with said.open("w") as out:
        process = subprocess.Popen(
            [*COMMAND, "run", str(file), "--store", store],
            stderr=out,
            text=True,
            cwd=ROOT,
            env={**os.environ, **environment},
        )
        try:
            until(lambda: "monitor dr: " in said.read_text() or process.poll() is not None, 60)
            yield process, said.read_text
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait(30)


def asked(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of `elephan monitor`."""
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, cwd=ROOT, check=False)


def status(store: str) -> dict[str, Any]:
    (found,) = ask_running(store, {"do": "status"})
    return found


def test_silence_is_told_once_also_over_a_kill_and_its_end_too(tmp_path: Path, reflector: Reflector) -> None:
    store, file = store_in(tmp_path), tmp_path / "dr.toml"
    with webhook() as (url, came, _):
        file.write_text(text_of(reflector, f'[alerts]\nurls = ["{url}"]'))
        with monitor(file, store) as (process, said):
            until(lambda: status(store)["paths"][0]["sent"] > 5, 30)
            assert status(store)["paths"][0]["state"] == "good"
            refused = asked("run", str(file), "--store", store)
            assert refused.returncode == 2 and "runs already, as process" in refused.stderr
            reflector.stop()
            until(lambda: bool(came), 60)
            assert came[0]["title"] == "p0: no answer" and "likely cause: outage" in came[0]["message"]
            (path,) = status(store)["paths"]
            assert path["state"] == "silent" and "nobody listens" in path["fault"]
            # A kill before it has noted that a message was sent would have it sent again.
            until(lambda: status(store)["messages"] == 0, 30)
            process.send_signal(signal.SIGKILL)
            process.wait()
        with MonitorReader(store) as reader:
            (alert,) = reader.alerts(open_only=True)
            assert alert.kind == "silent" and reader.paths()[0].state == "silent"
            folder = reader.folder(reader.paths()[0].id)
        kept = sum(len(journal.read(one)) for one in folder.glob("*.journal"))
        assert kept > 10
        with monitor(file, store) as (process, said):
            reflector.start()
            until(lambda: len(came) > 1, 60)
            assert "p0: answers again after" in came[1]["title"] and came[1]["type"] == "success"
            until(lambda: status(store)["paths"][0]["state"] == "good", 30)
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0, said()
    assert len(came) == 2
    assert sum(len(journal.read(one)) for one in folder.glob("*.journal")) > kept
    with MonitorReader(store) as reader:
        assert reader.paths()[0].state == "paused" and not reader.alerts(open_only=True)
        assert reader.alerts()[0].ended_s is not None
    assert "not watched now" in asked("status", "--store", store).stdout


def test_a_test_by_hand_a_file_that_is_read_again_and_metrics(tmp_path: Path, reflector: Reflector) -> None:
    store, file, port = store_in(tmp_path), tmp_path / "dr.toml", free_port()
    metrics = f'[metrics]\nlisten = "127.0.0.1:{port}"'
    file.write_text(text_of(reflector, metrics, paths=2))
    with monitor(file, store) as (process, said):
        done = asked("now", "p0", "stamp", "--store", store, "--json")
        assert done.returncode == 0, done.stderr
        outcome = json.loads(done.stdout)
        assert outcome["cost"]["packets"] == 20 and outcome["estimates"]
        shown = asked("status", "--store", store).stdout
        assert "monitor dr: process " in shown and "p1 (127.0.0.1:" in shown
        done = asked("now", "p1", "mtu", "--store", store)
        assert done.returncode == 0 and "path MTU: " in done.stdout and "cost: " in done.stdout, done.stderr
        assert asked("now", "p9", "stamp", "--store", store).stderr == 'error: no path "p9"; there is p0, p1\n'
        assert "this build has none" in asked("now", "p0", "nothing", "--store", store).stderr
        page = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read().decode()
        assert 'elephan_path_sent_packets_total{monitor="dr",path="p1"}' in page
        assert 'elephan_path_test_bytes_total{monitor="dr",path="p0",test="stamp"}' in page
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10)
        file.write_text("name = 3")
        process.send_signal(signal.SIGHUP)
        until(lambda: "the configuration read before stays in use" in said(), 30)
        file.write_text(text_of(reflector, metrics, paths=3))
        process.send_signal(signal.SIGHUP)
        until(lambda: "3 paths" in said(), 30)
        until(lambda: len(status(store)["paths"]) == 3 and status(store)["paths"][2]["sent"] > 3, 30)
    assert process.returncode == 0, said()
    with MonitorReader(store) as reader:
        (found,) = reader.outcomes(reader.paths()[0].id, "stamp", 0, time.time() + 10)
        assert found.outcome["cost"]["packets"] == 20
        assert reader.paths()[0].latest["rtt_s"] < 1


def test_a_refusal_ends_with_1_and_status_shows_it(tmp_path: Path, reflector: Reflector) -> None:
    store, file = store_in(tmp_path), tmp_path / "dr.toml"
    file.write_text(text_of(reflector))
    with monitor(file, store):
        until(lambda: status(store)["paths"][0]["sent"] > 3, 30)
        reflector.stop()
        done = asked("now", "p0", "loss", "--store", store)
        assert done.returncode == 1 and done.stderr.startswith("error: p0: loss: refused: "), done
        assert "cost: " in done.stdout
        (refused,) = status(store)["paths"][0]["refused"]
        assert refused["test"] == "loss" and refused["why"] in done.stderr
        assert "    loss: refused " in asked("status", "--store", store).stdout
        until(lambda: status(store)["paths"][0]["state"] == "silent", 30)
    assert asked("alerts", "--store", store).returncode == 0
    assert "p0: no answer" in asked("alerts", "p0", "--store", store).stdout
    assert asked("alerts", "p9", "--store", store).stderr == 'error: no path "p9"; there is p0\n'


def test_a_server_that_is_away_holds_nothing_up(tmp_path: Path, reflector: Reflector) -> None:
    file = tmp_path / "dr.toml"
    file.write_text(text_of(reflector))
    store = f"postgresql://nobody@127.0.0.1:{free_port()}/gone"
    with monitor(file, store, XDG_DATA_HOME=str(tmp_path)) as (process, said):
        spool = next((tmp_path / "elephan" / "unsent").glob("*.sqlite"))
        folder = tmp_path / "elephan" / "monitor"
        until(lambda: any(one.stat().st_size > 320 for one in folder.glob("*/*/*.journal")), 30)
    assert process.returncode == 0, said()
    import sqlite3

    with sqlite3.connect(spool) as connection:
        assert connection.execute("select name, state from monitor_path").fetchall() == [("p0", "paused")]


class Relay:
    """A way to the reflector whose delay can be changed: a path that takes another route."""

    def __init__(self, to: int, far_late_s: float = 0.0) -> None:
        self.delay_s = 0.0
        self.far_late_s = far_late_s
        """Time by which the far host is late with three of five replies."""
        self._returned = 0
        self._there = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._there.bind(("127.0.0.1", 0))
        self._back.connect(("127.0.0.1", to))
        self.port = int(self._there.getsockname()[1])
        self._sender: Any = None
        threading.Thread(target=self._forward, daemon=True).start()
        threading.Thread(target=self._return, daemon=True).start()

    def _forward(self) -> None:
        while True:
            packet, self._sender = self._there.recvfrom(2048)
            time.sleep(self.delay_s)
            with suppress(OSError):
                self._back.send(packet)

    def _return(self) -> None:
        while True:
            # The reflector has gone at the test's end.
            with suppress(OSError):
                reply = self._back.recv(2048)
                self._returned += 1
                if self.far_late_s and self._returned % 5 < 3:
                    time.sleep(self.far_late_s)
                    reply = late_by(reply, self.far_late_s)
                self._there.sendto(reply, self._sender)


def late_by(reply: bytes, late_s: float) -> bytes:
    """Return a STAMP reply that says that it left so much later (RFC 8762, 4.3.1; time stamps: RFC 8186)."""
    seconds, fraction = struct.unpack_from(">II", reply, 4)
    unit = 10**9 if reply[12] & 0x40 else 2**32
    total = seconds * unit + fraction + round(late_s * unit)
    return reply[:4] + struct.pack(">II", *divmod(total, unit)) + reply[12:]


TRANSFER = """
title = "tonight's increment"
[run]
duration = "600s"
[path]
bandwidth = "100Mbit/s"
rtt = "1ms"
[[flow]]
name = "increment"
congestion_control = "cubic"
workload = { kind = "bulk", bytes = "4MB" }
"""


def test_an_alert_says_what_it_does_to_the_transfers_of_the_path(tmp_path: Path, reflector: Reflector) -> None:
    store, file = store_in(tmp_path), tmp_path / "dr.toml"
    relay = Relay(reflector.port)
    (tmp_path / "tonight.toml").write_text(TRANSFER)
    with webhook() as (url, came, _):
        text = text_of(reflector, f'[alerts]\nurls = ["{url}"]', period="200ms").replace(
            str(reflector.port), str(relay.port)
        )
        more = 'benchmark = { rtt = "100ms" }\ntransfers = ["tonight.toml"]\n[[path.test]]'
        file.write_text(text.replace("[[path.test]]", more))
        with monitor(file, store):
            until(lambda: status(store)["paths"][0]["sent"] > 12, 60)
            relay.delay_s = 0.18
            until(lambda: bool(came), 120)
    title, body = came[0]["title"], came[0]["message"]
    assert title.startswith("p0: RTT ") and "; agreed: 100 ms" in title
    assert "likely cause: " in body and "tonight's increment: " in body and " instead of " in body
    with MonitorReader(store) as reader:
        (alert,) = [one for one in reader.alerts() if one.quantity == "rtt_s"]
        assert alert.kind == "agreed_missed" and alert.evidence["after"] > 0.1
        (told,) = alert.forecast
        assert told["after_s"] > told["before_s"] > 0 and told["text"] in body


def test_a_longer_path_is_no_busy_hosts_doing(tmp_path: Path, reflector: Reflector) -> None:
    """Three of five packets are late all the time; then the least RTT rises by 20 ms for good."""
    store, file = store_in(tmp_path), tmp_path / "dr.toml"
    relay = Relay(reflector.port, far_late_s=0.008)
    relay.delay_s = 0.04
    text = text_of(reflector).replace(str(reflector.port), str(relay.port))
    file.write_text(text.replace("[[path.test]]", 'benchmark = { rtt = "40ms" }\n[[path.test]]'))
    with monitor(file, store):
        until(lambda: status(store)["paths"][0]["sent"] > 320, 60)
        assert status(store)["paths"][0]["alerts"] == []
        relay.delay_s = 0.06
        until(lambda: bool(status(store)["paths"][0]["alerts"]), 120)
        assert status(store)["paths"][0]["late"][1] > 0.3
    (alert,) = [one for one in json.loads(asked("alerts", "--store", store, "--json").stdout) if one["ended_s"] is None]
    assert alert["quantity"] == "rtt_s" and alert["cause"] == "route", alert


def test_alerts_name_their_monitor_and_say_if_nothing_watches_the_path(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    database = Database(Place.of(store))
    now = time.time()

    def add(number: int, name: str, state: str) -> None:
        identity = path_id(name, "far")
        of_path = {"id": identity, "monitor": name, "name": "far", "settings": "{}", "created": "2026", "state": state}
        alert = {"id": number, "path_id": identity, "quantity": "rtt_s", "kind": "step", "since": now - 600 * number}
        alert |= {"found": now - 600 * number, "ended": None, "text": f"far: RTT {number}0 ms", "evidence": "{}"}
        row_of = {"path_id": identity, "quantity": "rtt_s", "seconds": 60, "start": 1_800_000_000}
        row_of |= {"count": 9, "lost": 0}
        numbers = dict.fromkeys(("min", "p05", "p50", "p95", "max", "mean"), 0.02)
        database.add("monitor_path", [{**of_path, "changed": 1}])
        database.add("monitor_summary", [{**row_of, **numbers}])
        database.add("monitor_alert", [{**alert, "cause": None, "forecast": "[]"}])
        assert database.flush()

    add(2, "before", "paused")
    (line,) = asked("alerts", "--store", store).stdout.splitlines()
    stopped = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(1_800_000_060))
    assert f", open, but not watched since {stopped}: far: RTT 20 ms" in line and not line.startswith("before")
    add(1, "now", "running")
    lines = asked("alerts", "far", "--store", store).stdout.splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["now", "before"]
    assert ", lasts: far: RTT 10 ms" in lines[0] and "not watched" in lines[1]
    (line,) = asked("alerts", "--store", store, "--monitor", "before").stdout.splitlines()
    assert line == lines[1]
    (one,) = json.loads(asked("alerts", "--store", store, "--limit", "1", "--json").stdout)
    assert one["monitor"] == "now" and one["is_watched"]
    done = asked("alerts", "--store", store, "--monitor", "other")
    assert done.returncode == 2 and "there is before, now" in done.stderr


@pytest.mark.skipif(program("postgresql") is None, reason="needs postgresql: scripts/packages.sh test")
def test_rows_that_waited_go_to_the_server_when_it_is_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with server("postgresql") as running:
        store = running.database()
        assert call("upgrade", {"store": store}).fault is None
        identity = path_id("dr", "vienna")
        database = Database(Place.of(store))

        def add(start: int, ended: float | None) -> None:
            row_of = {"path_id": identity, "quantity": "rtt_s", "seconds": 60, "start": start, "count": 60, "lost": 1}
            numbers = dict.fromkeys(("min", "p05", "p50", "p95", "max", "mean"), 0.02)
            alert = {"id": 5, "path_id": identity, "quantity": "rtt_s", "kind": "step", "since": 1.0, "found": 2.0}
            alert |= {"ended": ended, "text": "x", "evidence": "{}", "cause": None, "forecast": "[]"}
            path = {"id": identity, "monitor": "dr", "name": "vienna", "settings": "{}", "created": "2026"}
            database.add("monitor_path", [{**path, "state": "running", "changed": start}])
            database.add("monitor_summary", [{**row_of, **numbers}])
            database.add("monitor_alert", [alert])
            assert database.flush()

        add(60, None)
        running.stop()
        done = call("send", {"store": store})
        assert done.result is None and done.fault is not None and "connection" in done.fault
        running.begin()
        done = call("send", {"store": store})
        assert done.result == {"sent": 3}, done.fault
        assert database.rows("select count(*) from monitor_summary") == [(0,)]
        # The same alert, which has ended meanwhile, and another minute.
        add(120, 9.0)
        assert call("send", {"store": store}).result == {"sent": 3}
        with MonitorReader(store) as reader:
            (path,) = reader.paths(now_s=150.0)
            assert path.latest["rtt_s"] == 0.02
            assert [one.ended_s for one in reader.alerts()] == [9.0]
            assert reader.series(identity, "rtt_s", 0, 600).times == [60.0, 120.0]
        # Retention and summaries of outcomes are at the server too.
        day = time.time() // 86_400 * 86_400 - 86_400
        outcome = {"estimates": [{"quantity": "capacity_bps", "value": 1e9, "low": 1e9, "high": 1e9}]}
        row = {"id": 7, "path_id": identity, "test": "capacity", "at": day + 7200.0, "outcome": json.dumps(outcome)}
        database.add("monitor_outcome", [row])
        assert database.flush() and call("send", {"store": store}).result == {"sent": 2}
        ages = {"raw_s": 9 * 86_400, "minutes_s": 86_400, "hours_s": 30 * 86_400}
        done = call("days", {"store": store, "monitor": "dr", "free_bytes": 0, **ages})
        assert done.result is not None and done.result["failed"] is None, done
        with MonitorReader(store) as reader:
            assert reader.alerts() == [] and reader.series(identity, "rtt_s", 0, 600).times == []
            rows = reader._rows("select quantity, seconds from monitor_summary order by seconds")
            assert rows == [("capacity_bps", 3600), ("capacity_bps", 86_400)]
        database.close()


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs prometheus: scripts/packages.sh test")
def test_prometheus_scrapes_it_and_takes_its_rules(tmp_path: Path, reflector: Reflector) -> None:
    rules = tmp_path / "rules.yml"
    rules.write_text(asked("rules").stdout)
    checked = subprocess.run(["promtool", "check", "rules", str(rules)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0 and "7 rules found" in checked.stdout, checked.stdout + checked.stderr
    port, own = free_port(), free_port()
    file = tmp_path / "dr.toml"
    file.write_text(text_of(reflector, f'[metrics]\nlisten = "127.0.0.1:{port}"'))
    config = tmp_path / "prometheus.yml"
    config.write_text(
        "global: { scrape_interval: 1s, evaluation_interval: 1s }\n"
        f'rule_files: ["{rules}"]\n'
        f'scrape_configs: [{{ job_name: elephan, static_configs: [{{ targets: ["127.0.0.1:{port}"] }}] }}]\n'
    )

    def query(text: str) -> list[Any]:
        url = f"http://127.0.0.1:{own}/api/v1/query?query={text}"
        try:
            answer = json.loads(urllib.request.urlopen(url, timeout=5).read())
        except OSError:
            return []
        return list(answer["data"]["result"])

    with monitor(file, store_in(tmp_path)):
        words = [f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'tsdb'}"]
        server = subprocess.Popen(
            ["prometheus", *words, f"--web.listen-address=127.0.0.1:{own}", "--log.level=error"],
            stderr=subprocess.DEVNULL,
        )
        try:
            until(lambda: bool(query("elephan_path_rtt_seconds")), 60)
            (found,) = query("elephan_path_rtt_seconds")
            assert found["metric"]["path"] == "p0" and 0 < float(found["value"][1]) < 1
            page = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read()
            linted = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, check=False)
            assert linted.returncode == 0, linted.stdout + linted.stderr
        finally:
            server.terminate()
            server.wait(30)

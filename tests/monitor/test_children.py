"""The monitor's child processes, each with the real other end: webhook, mail server, simulation."""

from __future__ import annotations

import email
import email.policy
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from elephan.monitor.child_processes import call
from elephan.monitor.forecast import overrides_of
from elephan.monitor.reflectors import RETRY_LEAST_S, Reflectors
from tests.monitor.receivers import mail_server, webhook
from tests.processes import until

TITLE = "vienna: RTT 45.0 ms instead of 32.0 ms"
BODY = f"{TITLE}\nsince 2026-03-03 12:00:00 CET\nlikely cause: route"


def message(**more: Any) -> dict[str, Any]:
    return {"id": "1-alert-5", "type": "alert", "title": TITLE, "body": BODY, "done": [], **more}


def test_alerts_reach_a_webhook_and_a_mailbox(tmp_path: Path) -> None:
    with webhook() as (hook, came, statuses), mail_server() as (mail, mails):
        # Secrets may stay in a file of their own.
        (tmp_path / "urls").write_text(f"# mail\n\n{mail}\n")
        asked: dict[str, Any] = {"urls": [hook], "urls_file": str(tmp_path / "urls"), "messages": [message()]}
        done = call("notify", asked)
        assert done.result is not None, done.fault
        assert done.result["sent"] == ["1-alert-5"] and done.result["failed"] is None
        assert came[0]["title"] == TITLE and came[0]["message"] == BODY and came[0]["type"] == "warning"
        (text,) = mails
        found = email.message_from_string(text, policy=email.policy.default)
        assert found["Subject"] == TITLE and "likely cause: route" in text
        # One of the two is away: the other one does not get it twice.
        statuses.append(500)
        done = call("notify", asked)
        assert done.result is not None and done.result["sent"] == [] and done.result["done"] == {"1-alert-5": [1]}
        assert done.result["failed"]
        statuses.append(200)
        done = call("notify", {**asked, "messages": [message(done=[1], type="recovered")]})
        assert done.result is not None and done.result["sent"] == ["1-alert-5"]
        assert len(mails) == 2 and came[-1]["type"] == "success"


def test_a_missing_file_of_urls_is_named(tmp_path: Path) -> None:
    done = call("notify", {"urls": [], "urls_file": str(tmp_path / "gone"), "messages": [message()]})
    assert done.result is None and done.fault is not None and "gone: cannot be read" in done.fault
    assert done.exit_code == 1


SCENARIO = """
title = "tonight's increment"
[run]
duration = "600s"
[path]
bandwidth = "50Mbit/s"
rtt = "20ms"
[[flow]]
name = "increment"
congestion_control = "cubic"
workload = { kind = "bulk", bytes = "20MB" }
"""


def test_a_forecast_is_the_scenario_over_the_path_as_it_was_and_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "tonight.toml").write_text(SCENARIO)
    asked = {
        "transfers": [str(tmp_path / "tonight.toml"), str(tmp_path / "gone.toml")],
        "before": {"rtt_s": 0.02, "available_bps": 50e6},
        "after": {"rtt_s": 0.02, "available_bps": 5e6},
    }
    done = call("forecast", asked)
    assert done.result is not None, done.fault
    first, gone = done.result["forecast"]
    # 160 Mbit at 96 % of the line, and slow start.
    assert 3.3 < first["before_s"] < 4.5 and 33 < first["after_s"] < 36
    assert first["text"] == f"tonight's increment: {first['after_s']:.1f} s instead of {first['before_s']:.2f} s"
    assert gone["text"].startswith("gone: no forecast: ") and gone["after_s"] is None


def test_values_of_a_path_are_keys_of_a_scenario() -> None:
    found = overrides_of({"rtt_s": 0.0321, "loss": 1.5e-5, "available_bps": 4.2e8, "ttl": 60})
    assert found == ["path.rtt=32100000ns", "path.loss=0.000015000000", "path.bandwidth=420000000bit/s"]
    assert overrides_of({"loss": 0.0}) == ["path.loss=0.000000000000"]


def test_a_child_that_takes_too_long_is_killed_and_one_that_is_unknown_fails() -> None:
    from elephan.monitor.child_processes import Children, Done

    children, ends = Children(), list[Done]()
    children.start("config", {"file": "/dev/null"}, ends.append, limit_s=0.0)
    while not ends:
        children.poll()
    assert ends[0].fault == "it took too long" and children.failures == {"config": 1}
    assert call("nothing", {}).result is None


def test_a_host_without_a_reflector_is_named_and_tried_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELEPHAN_HOSTS", str(tmp_path / "hosts.toml"))
    reflectors = Reflectors()
    reflectors.want("vienna")
    until(lambda: reflectors.poll() == [] and reflectors.fault("vienna") is not None, 60)
    assert 'no host "vienna"' in str(reflectors.fault("vienna")) and reflectors.of("vienna") is None
    one = reflectors.hosts["vienna"]
    assert one.process is None and one.due_s > time.monotonic() and one.retry_s == 2 * RETRY_LEAST_S
    reflectors.keep(set())
    assert not reflectors.hosts


@pytest.mark.skipif(shutil.which("iperf3") is None, reason="needs iperf3: scripts/packages.sh test")
def test_iperf3_ends_with_the_process_that_started_it() -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = int(one.getsockname()[1])
    server = subprocess.Popen(["iperf3", "-s", "-B", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL)
    words = f"t.run(t.Transfer('127.0.0.1', {port}, max_bytes=10**13), lambda _: False)"
    child = subprocess.Popen([sys.executable, "-c", f"from elephan.measure import throughput as t; {words}"])
    try:
        found = Path(f"/proc/{child.pid}/task/{child.pid}/children")
        until(lambda: "iperf3" in "".join(_command(one) for one in found.read_text().split()), 30)
        (client,) = found.read_text().split()
        child.kill()
        child.wait()
        until(lambda: "iperf3" not in _command(client), 10)
    finally:
        for one in (child, server):
            one.kill()
            one.wait()


def _command(process: str) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text()
    except OSError:
        return ""

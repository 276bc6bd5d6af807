"""`elephan copy --auto` measures only where there is enough to send, and once for a copy that is interrupted."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from elephan.advise.advice import Advice
from elephan.advise.candidate import Candidate
from elephan.advise.facts import PathFacts
from elephan.copy import auto
from elephan.copy.api import _Comparison, _EnoughToSend
from elephan.copy.auto import Advised
from elephan.copy.request import CopyRequest, Place
from elephan.copy.state import read
from tests.copy.conftest import Copy, events, started
from tests.hosts import testbed

LARGE = 60_000_000
"""More than `--auto` measures for."""


def notes(text: str) -> str:
    return "\n".join(event["text"] for event in events(text) if event["event"] == "note")


def test_a_copy_compares_before_it_measures(hosts: testbed.Hosts, copy: Copy) -> None:
    source, there = hosts.left.home() / "compared", hosts.right.home() / "compared"
    source.mkdir()
    (source / "large").write_bytes(os.urandom(LARGE))
    first = copy("left:compared/", f"right:{there}", "--no-auto", "--json")
    assert first.returncode == 0, first.stderr
    assert "to send at least" not in notes(first.stdout)
    done = copy("left:compared/", f"right:{there}", "--auto", "--json")
    assert done.returncode == 0, done.stderr
    receipt = events(done.stdout)[-1]["receipt"]
    assert "measuring" not in notes(done.stdout) and receipt["advice"] is None and receipt["sent_bytes"] == 0
    assert "the path was not measured: there was nothing to send" in notes(done.stdout)
    # The time of the last change differs, and no chunk does.
    os.utime(source / "large", ns=(1, 1))
    (source / "small").write_bytes(os.urandom(300_000))
    done = copy("left:compared/", f"right:{there}", "--auto", "--json")
    receipt = events(done.stdout)[-1]["receipt"]
    assert receipt["sent_bytes"] == 300_000 and receipt["advice"] is None
    assert "the path was not measured: less than 100 MB were left to send" in notes(done.stdout)
    assert (there / "small").read_bytes() == (source / "small").read_bytes()


def until_advice(front: subprocess.Popen[str], text: str, sent_bytes: int) -> list[dict[str, Any]]:
    """Return the events of a copy until one has a text, and so many bytes were sent after it; then interrupt it."""
    assert front.stdout is not None
    seen: list[dict[str, Any]] = []
    is_there = False
    for line in front.stdout:
        seen.append(json.loads(line))
        is_there |= text in line
        if is_there and (not sent_bytes or seen[-1].get("durable_bytes", 0) > sent_bytes):
            break
    front.send_signal(signal.SIGINT)
    said = front.communicate(timeout=60)[1]
    assert front.returncode == 130 and is_there, (said, [event for event in seen if "text" in event])
    return seen


def test_an_interrupted_copy_uses_its_advice_again_while_it_is_fresh(
    hosts: testbed.Hosts, copy: Copy, state: Path
) -> None:
    source, there = hosts.left.home() / "advised", hosts.right.home() / "advised"
    with source.open("wb") as file:
        for _ in range(8):
            file.write(os.urandom(LARGE))
    # 480 MB take 96 s at this rate: longer than an advice.
    arguments = ("left:advised", f"right:{there}", "--auto", "--rate", "40Mbit/s", "--json")
    seen = until_advice(started(hosts, *arguments), '"event": "advice"', LARGE // 2)
    assert "measuring the path" in str(seen)
    first = next(event for event in seen if event["event"] == "advice")
    (file_of_state,) = (state / "unfinished").glob("*.json")
    saved = read(file_of_state)
    assert saved["advice"]["changes"]["streams"] == first["candidate"]["streams"]

    seen = until_advice(started(hosts, *arguments), '"event": "connected"', 0)
    assert "measuring the path" not in str(seen)
    again = next(event for event in seen if event["event"] == "advice")
    assert again["measured"] == first["measured"] and again["age_s"] > 0
    (line,) = again["lines"]
    assert line.startswith("advice of the interrupted copy: ") and "is not measured again within 1 h 0 min" in line
    used = next(event for event in seen if event["event"] == "attempt")
    assert used["streams"] == first["candidate"]["streams"]

    # Two hours later it is measured again.
    old = datetime.fromisoformat(saved["advice"]["measured"]) - timedelta(hours=2)
    saved["advice"]["measured"] = old.isoformat()
    file_of_state.write_text(json.dumps(saved))
    until_advice(started(hosts, *arguments), "measuring the path", 0)


def advised(request: CopyRequest, draw: random.Random) -> Advised:
    """Return an advice whose numbers are drawn."""
    advice = Advice(
        candidate=Candidate("bbr", draw.randrange(1, 33), draw.randrange(1 << 30), pacing_bps=None),
        goodput_bps=(1e6, draw.uniform(1e6, 1e9), 2e9),
        harm={"reno": (0.0, draw.random(), 1.0)},
        limit=draw.random(),
        limit_text="as four flows",
        seconds=(1.0, 2.0, 3.0),
        reasons=["one", "two"],
    )
    changes = {"streams": advice.candidate.streams, "congestion_control": "bbr"}
    facts = PathFacts(draw.uniform(1e6, 1e10), draw.random(), ranges={"rtt_s": (0.1, 0.2)})
    return Advised(replace(request, **changes), changes, advice, facts, "2026-11-30T10:00:00.000Z")


@pytest.mark.parametrize("seed", range(20))
def test_advice_is_used_again_for_an_hour_and_the_same_settings_alone(seed: int) -> None:
    draw = random.Random(seed)
    request = CopyRequest([Place.parse("/data")], Place.parse("nyc:/backup"), auto=draw.choice([True, None]))
    found = advised(request, draw)
    # Through JSON, as the state has it.
    about = json.loads(json.dumps(auto.saved(found, request)))
    age_s = draw.uniform(-100, 2 * auto.FRESH_S)
    now = datetime(2026, 11, 30, 10, tzinfo=UTC) + timedelta(seconds=age_s)
    again = auto.reused(about, request, now)
    assert (again is not None) == (0 <= age_s <= auto.FRESH_S)
    if again is not None:
        assert again.advice.candidate == found.advice.candidate and again.advice.goodput_bps == found.advice.goodput_bps
        assert (again.request, again.advice.harm, again.facts.rtt_s) == (
            found.request,
            found.advice.harm,
            found.facts.rtt_s,
        )
        other = replace(request, harm=0.05) if draw.random() < 0.5 else replace(request, rate_bps=10**6)
        assert auto.reused(about, other, now) is None
    cut = {key: value for key, value in about.items() if key != draw.choice(list(about))}
    assert len(cut) == len(about) or auto.reused(cut, request, now) is None
    assert auto.reused(None, request, now) is None


def test_a_comparison_ends_once_and_for_a_rest_that_takes_longer_than_an_advice() -> None:
    draw, ended = random.Random(7), 0
    for _ in range(200):
        comparison, sent, wanted, raised = _Comparison(10**6, 2.0, 5.0), 0, 0, 0
        speed = draw.randrange(1, 300_000)
        for step in range(1, 20):
            now_s = step / 4
            wanted += draw.randrange(400_000)
            sent = min(wanted, sent + draw.randrange(speed))
            is_due = now_s >= 2 and wanted - sent >= 10**6 and (wanted - sent) * now_s >= 5.0 * sent
            event = {"event": "progress", "now_s": now_s, "sent_bytes": sent, "wanted_bytes": wanted}
            try:
                comparison.look(event, None)
            except _EnoughToSend as enough:
                raised += 1
                assert is_due and enough.wanted_bytes == wanted - sent
            else:
                assert raised or not is_due
        assert raised <= 1
        ended += raised
    assert 20 < ended < 180


def test_a_rest_that_takes_less_than_an_advice_is_sent_without(hosts: testbed.Hosts, copy: Copy) -> None:
    """300 MB take 13 s at 200 Mbit/s; 33 s were spent on the advice for a copy of 6.5 s."""
    source, there = hosts.left.home() / "short", hosts.right.home() / "short"
    with source.open("wb") as file:
        for _ in range(5):
            file.write(os.urandom(LARGE))
    done = copy("left:short", f"right:{there}", "--auto", "--json")
    assert done.returncode == 0, done.stderr
    receipt = events(done.stdout)[-1]["receipt"]
    assert receipt["advice"] is None and len(receipt["attempts"]) == 1 and receipt["seconds"] < 30
    said = notes(done.stdout)
    assert "measuring" not in said and "the path was not measured: the last " in said
    assert " took " in said and "an advice takes up to 50.0 s" in said
    assert there.read_bytes() == source.read_bytes()

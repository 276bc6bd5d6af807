"""Alerts: each change told once, its end once, quiet hours kept, nothing lost by a restart."""

from __future__ import annotations

import json
import time
from typing import Any

from elephan.monitor.alerts import GATHER_S, AlertBook
from elephan.monitor.forecast import text_of
from elephan.monitor.spec import AlertSpec

NOON = time.mktime((2026, 3, 3, 12, 0, 0, 0, 0, -1))
URLS = ("json://127.0.0.1:1/",)


def step(at_s: float, kind: str = "step", worse: bool | None = True, after: float = 0.045) -> dict[str, Any]:
    return {
        "kind": kind, "since_s": at_s - 4, "found_s": at_s, "before": 0.032, "after": after, "confidence": 0.999,
        "samples": 5, "worse": worse, "note": "",
    }  # fmt: skip


def test_a_change_is_told_once_and_its_end_once() -> None:
    book = AlertBook(AlertSpec(URLS))
    alert = book.change("vienna", 7, "rtt_s", step(NOON))
    assert alert is not None and alert.text == "vienna: RTT 45.0 ms instead of 32.0 ms"
    assert not book.tick(NOON + 1), "changes of one path are gathered"
    assert book.change("vienna", 7, "loss", step(NOON + 2, after=0.05)) is not None
    assert book.tick(NOON + GATHER_S)
    (message,) = book.due(NOON + GATHER_S)
    assert message["type"] == "alert" and "loss" in message["title"] and "RTT 32.0 ms -> 45.0 ms" in message["body"]
    assert not book.tick(NOON + 60) and len(book.messages) == 1
    book.handed_over([message])
    book.sent([message["id"]], {})
    # Found again by a restart that went over the same samples.
    assert book.change("vienna", 7, "rtt_s", step(NOON)) is None
    ended = book.change("vienna", 7, "loss", {**step(NOON + 600), "kind": "recovered", "after": 1e-5})
    assert ended is not None and ended.ended == NOON + 600
    book.change("vienna", 7, "rtt_s", {**step(NOON + 600), "kind": "recovered"})
    (message,) = book.due(NOON + 601)
    assert message["type"] == "recovered" and "as usual again after 10 min" in message["title"]
    assert not book.open


def test_what_gets_better_is_for_the_record_alone() -> None:
    book = AlertBook(AlertSpec(URLS))
    alert = book.change("vienna", 7, "rtt_s", step(NOON, worse=False, after=0.02))
    assert alert is not None and alert.ended == NOON
    book.tick(NOON + 60)
    assert not book.open and not book.messages
    assert book.change("vienna", 7, "rtt_s", {**step(NOON + 60), "kind": "recovered"}) is None


def test_quiet_hours_hold_all_but_urgent_kinds() -> None:
    spec = AlertSpec(URLS, quiet=((22 * 60, 6 * 60),), urgent=("silent",))
    book = AlertBook(spec)
    night = NOON + 11 * 3600
    book.change("vienna", 7, "rtt_s", step(night))
    book.change("graz", 8, "rtt_s", step(night))
    book.change("linz", 9, "silence", step(night, "silent"))
    book.tick(night + 10)
    assert [one["title"] for one in book.due(night + 10)] == ["linz: no answer"]
    book.handed_over(book.due(night + 10))
    # Over before the morning: nobody needs to hear of it.
    book.change("graz", 8, "rtt_s", {**step(night + 3600), "kind": "recovered"})
    morning = night + 8 * 3600
    held = [one for one in book.due(morning) if "linz" not in one["title"]]
    assert [one["title"] for one in held] == ["vienna: RTT 45.0 ms instead of 32.0 ms"]


def test_a_restart_goes_on_and_alerts_are_repeated() -> None:
    spec = AlertSpec(URLS, repeat_s=4 * 3600.0)
    book = AlertBook(spec)
    book.change("vienna", 7, "rtt_s", step(NOON))
    book.tick(NOON + 10)
    book = AlertBook(spec, json.loads(json.dumps(book.state())))
    assert len(book.open) == 1 and len(book.messages) == 1
    book.sent([], {book.messages[0]["id"]: [0]})
    assert book.messages[0]["done"] == [0], "which receivers have it is remembered"
    book.sent([book.messages[0]["id"]], {})
    book.tick(NOON + 3600)
    assert not book.messages
    book.tick(NOON + 4 * 3600 + 20)
    assert book.messages[0]["title"].startswith("still: vienna")


def test_a_message_waits_for_its_forecast_and_not_for_ever() -> None:
    book = AlertBook(AlertSpec(URLS))
    alert = book.change("vienna", 7, "rtt_s", step(NOON))
    assert alert is not None
    alert.waits_for_forecast = True
    book.tick(NOON + 10)
    assert not book.messages
    alert.waits_for_forecast = False
    alert.forecast = [{"text": "tonight's increment: 3 h 0 min instead of 40 min 0 s"}]
    book.tick(NOON + 11)
    assert book.messages[0]["body"].endswith("tonight's increment: 3 h 0 min instead of 40 min 0 s")


def test_what_waits_with_another_change_is_told_when_that_is_over() -> None:
    book = AlertBook(AlertSpec(URLS))
    book.change("vienna", 7, "loss", step(NOON, after=0.05))
    book.change("vienna", 7, "rtt_s", step(NOON))
    book.tick(NOON + GATHER_S)
    assert [one["title"].split()[1] for one in book.messages] == ["loss"]
    book.change("vienna", 7, "loss", {**step(NOON + 60), "kind": "recovered"})
    book.tick(NOON + 60)
    assert [one["title"].split()[1] for one in book.messages] == ["RTT"]


def test_repeats_do_not_pile_up_while_nobody_takes_them() -> None:
    book = AlertBook(AlertSpec(URLS, repeat_s=3600.0))
    book.change("vienna", 7, "rtt_s", step(NOON))
    for hour in range(12):
        book.tick(NOON + GATHER_S + 3600 * hour)
    assert len(book.messages) == 1


def test_a_clock_that_was_set_back_holds_no_alert() -> None:
    book = AlertBook(AlertSpec(URLS))
    book.change("vienna", 7, "rtt_s", step(NOON))
    assert book.tick(NOON - 7200) and len(book.messages) == 1


def test_a_forecast_names_no_difference_where_there_is_none() -> None:
    assert text_of("increment", 414.2, 414.3) == "increment: 6 min 54 s, as before"
    assert text_of("increment", 414.2, 986.0) == "increment: 16 min 26 s instead of 6 min 54 s"
    assert text_of("increment", None, 986.0) == "increment: 16 min 26 s instead of no end within the scenario's run"
    assert text_of("increment", None, None) == "increment: no end within the scenario's run, before or now"

"""Progress and end of a copy in words."""

from __future__ import annotations

import pytest

from elephan.copy.control import default_at
from elephan.copy.sides import Side
from elephan.copy.text import Progress, done_lines, event_line
from elephan.kernel.maps import Loaded


def progress(now_s: float, sent: int, total: int = 1_000_000_000) -> dict[str, object]:
    """Return an event."""
    streams = [{"sent_bytes": sent, "rtt_s": 0.05, "window_bytes": 8_000_000, "retransmitted": 3, "active": True}]
    return {
        "event": "progress",
        "now_s": now_s,
        "files_done": 1,
        "files_total": 3,
        "bytes_done": sent,
        "bytes_total": total,
        "durable_bytes": sent,
        "sent_bytes": sent,
        "reused_bytes": 0,
        "streams": streams,
    }


def test_a_line_has_rate_now_and_mean_share_of_the_line_and_time_left_with_its_band() -> None:
    now = [0.0]
    shown = Progress(line_bps=100e6, clock=lambda: now[0])
    assert shown.line() == ""
    shown.take({"event": "connected", "resumed_bytes": 0})
    sent = 0
    for second in range(61):
        now[0] = float(second)
        shown.take(progress(now[0], sent))
        # 80 Mbit/s, and 40 in the last quarter.
        sent += 10_000_000 if second < 45 else 5_000_000
    assert "left" not in shown.line() and "1.00 GB so far" in shown.line() and "1 of 3 files so far" in shown.line()
    shown.take({"event": "scanned", "files": 3, "bytes": 10**9, "complete": True})
    line = shown.line()
    assert "525 MB of 1.00 GB (52.5 %), 1 of 3 files, now 40.0 Mbit/s (40.0 % of the line), mean 70.0 Mbit/s" in line
    low, middle, high = shown.left_s() or (0, 0, 0)
    left = (10**9 - 525_000_000) * 8
    assert (low, middle, high) == pytest.approx((left / 80e6, left / 70e6, left / 40e6))
    assert shown.detail() == ["stream 0, 525 MB, RTT 50.0 ms, window 8.00 MB, 3 packets sent again"]


def test_people_see_at_once_what_they_should_know() -> None:
    lost = {"event": "lost", "attempt": 2, "text": "nyc: cannot be reached", "wait_s": 4.0}
    assert event_line(lost) == "attempt 2: nyc: cannot be reached; trying again in 4.00 s"
    assert event_line({"event": "connected", "resumed_bytes": 5_000_000}) == "resumes where it stopped"
    assert event_line({"event": "connected", "resumed_bytes": 0}) is None
    assert event_line({"event": "retry", "reason": "x"}) is None


def test_the_end_names_a_runs_control_by_its_algorithm(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the namespace of an emulated path the default is the run's own: elephan_k85d700 is CUBIC there."""
    monkeypatch.setattr("elephan.kernel.namespaces.current", lambda: "elephan_k85d700")
    monkeypatch.setattr("elephan.kernel.names.loaded", lambda: [Loaded("elephan_k85d700", 1, True, "cubic=run 85d7")])
    receipt = {
        **dict.fromkeys(("faults_more", "reused_bytes", "removed", "unread_files"), 0),
        "faults": [],
        "attempts": [1],
        "seconds": 1.0,
        "sent_bytes": 12,
        "data_s": 1.0,
        "goodput_bps": 96.0,
        "files": 1,
        "bytes": 12,
        "root": "0",
        "used": {"streams": 4, "control": default_at(Side("send", None, None))},
    }
    line = done_lines(receipt, "receipt.json")[0]
    assert line == "1 file, 12 B in 1.00 s: 12 B sent in 1.00 s at 96.0 bit/s by 4 streams of cubic"

"""A soak's folder: parts, interruptions, sums."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from elephan.core import native
from elephan.errors import InputError, StoreError
from elephan.line import soak
from elephan.line.mix import PAPER
from elephan.line.session import STOPPED, OnRow
from elephan.line.soak import SERIES_NS, Settings
from elephan.line.trial import Outcome, Sent, Trial
from tests.line.model import Line

SETTINGS = Settings("02:00:00:00:00:02", 10**9, 10**9, PAPER, "paper", "crpat", SERIES_NS, None, None, "eth1", 0)
HOUR_NS = 3600 * 10**9


class Killed(Exception):
    """The process is gone."""


def sender(line: Line, *, stop_after: int | None = None, kill_after: int | None = None) -> soak.Send:
    """Return a way to send that ends early after so many rows, with an outcome or without."""

    def send(trial: Trial, on_row: OnRow) -> Outcome:
        outcome = line.run(trial)
        for number, row in enumerate(outcome.series):
            if number == stop_after:
                short = line.run(replace(trial, duration_ns=number * SERIES_NS))
                return replace(short, series=(), ended="told to stop")
            if number == kill_after:
                raise Killed
            reason = on_row(row)
            if reason is not None:
                sent = replace(outcome.sent, span_ns=row.time_ns)
                return replace(outcome, sent=sent, received=None, series=(), ended=reason)
        return replace(outcome, series=())

    return send


def measure(
    folder: Path,
    send: soak.Send,
    span_ns: int = HOUR_NS,
    settings: Settings = SETTINGS,
    answers: Callable[[], bool] = lambda: True,
) -> soak.Soak:
    with soak.locked(folder):
        return soak.measure(send, settings, folder, span_ns, {"port": "model"}, lambda row: None, answers)


def test_an_hour_has_360_points(tmp_path: Path) -> None:
    found = measure(tmp_path / "soak", sender(Line(10**9)))
    totals = found.totals()
    assert len(list(found.rows())) == 360 and found.span_ns == HOUR_NS
    assert totals.sent == SETTINGS.frames.frames(10**9, HOUR_NS) and totals.lost == 0
    assert totals.bounds[1].upper == pytest.approx(2.9957 / (totals.sent_bytes * 8), rel=1e-4)
    # Asked again, the soak is done: nothing is sent.
    assert measure(tmp_path / "soak", sender(Line(10**9), kill_after=0)) == found


def test_a_soak_that_was_stopped_goes_on(tmp_path: Path) -> None:
    line = Line(10**9, lose_every=10**6)
    first = measure(tmp_path, sender(line, stop_after=100))
    assert first.span_ns == 1000 * 10**9 and first.parts[0].outcome is not None
    whole = measure(tmp_path, sender(line))
    assert [part.span_ns for part in whole.parts] == [1000 * 10**9, 2600 * 10**9] and whole.span_ns == HOUR_NS
    assert len(whole.gaps) == 1 and whole.totals().lost == sum(one.lost for one in outcomes(whole))
    times = [time_s for time_s, _ in whole.rows()]
    assert len(times) == 360
    # It may be made longer.
    assert measure(tmp_path, sender(line), 2 * HOUR_NS).span_ns == 2 * HOUR_NS


def outcomes(found: soak.Soak) -> list[Outcome]:
    return [part.outcome for part in found.parts if part.outcome is not None]


def test_a_soak_that_was_killed_keeps_its_rows(tmp_path: Path) -> None:
    line = Line(10**9, outage_rows=range(2))
    with pytest.raises(Killed):
        measure(tmp_path, sender(line, kill_after=7))
    # The crash has cut a line off.
    with (tmp_path / "part-001.jsonl").open("a") as file:
        file.write('{"row": {"time_ns": 8')
    found = soak.read(tmp_path)
    assert found.parts[0].outcome is None and found.span_ns == pytest.approx(7 * SERIES_NS)
    each = SETTINGS.frames.frames(10**9, HOUR_NS) // 360
    totals = found.totals()
    assert (totals.sent, totals.lost) == (7 * each, 2 * each) and totals.bits_checked == 0
    whole = measure(tmp_path, sender(Line(10**9)))
    assert whole.span_ns == HOUR_NS and [part.number for part in whole.parts] == [1, 2]
    assert whole.totals().lost == 2 * each


def test_each_row_is_in_the_file_when_the_next_is_measured(tmp_path: Path) -> None:
    seen = []

    def send(trial: Trial, on_row: OnRow) -> Outcome:
        outcome = Line(10**9).run(trial)
        for row in outcome.series[:3]:
            on_row(row)
            lines = (tmp_path / "part-001.jsonl").read_text().splitlines()
            seen.append([list(json.loads(line)) for line in lines][-1])
        return replace(outcome, series=())

    measure(tmp_path, send, 3 * SERIES_NS)
    assert seen == [["row"]] * 3


def test_a_folder_of_another_soak_is_refused(tmp_path: Path) -> None:
    measure(tmp_path / "one", sender(Line(10**9)))
    with pytest.raises(InputError, match="its soak has payload crpat, not cjpat; name another folder"):
        measure(tmp_path / "one", sender(Line(10**9)), settings=replace(SETTINGS, payload="cjpat"))
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "thesis.tex").touch()
    with pytest.raises(InputError, match=r"it holds thesis.tex and no soak; name a new folder"):
        measure(tmp_path / "two", sender(Line(10**9)))
    with soak.locked(tmp_path / "one"), pytest.raises(InputError, match="another soak writes there"):
        measure(tmp_path / "one", sender(Line(10**9)))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', '{"format": 1, "sizes": 3}'])
def test_settings_that_are_none_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "soak.json").write_text(text)
    with pytest.raises(InputError, match=r"soak\.json: "):
        measure(tmp_path, sender(Line(10**9)))


def test_an_outcome_survives_its_file() -> None:
    for line in (Line(10**9), Line(10**9, lose_every=7), Line(10**9, clock=None)):  # type: ignore[arg-type]
        outcome = replace(line.run(SETTINGS.trial(HOUR_NS)), series=())
        assert Outcome.from_json(json.dumps(outcome.as_json())) == outcome


EACH = SETTINGS.frames.frames(10**9, HOUR_NS) // 360


def test_intervals_that_a_later_answer_covers_are_measured(tmp_path: Path) -> None:
    found = measure(tmp_path, sender(Line(10**9, unanswered_rows=range(10, 12))))
    totals = found.totals()
    assert (found.span_ns, totals.unanswered_rows, totals.unknown_rows) == (HOUR_NS, 2, 0)
    assert totals.sent == SETTINGS.frames.frames(10**9, HOUR_NS) and found.ended is None


def test_intervals_that_no_answer_covers_are_not_measured(tmp_path: Path) -> None:
    """A process that was killed while the receiver was silent: nothing is known of those rows."""
    with pytest.raises(Killed):
        measure(tmp_path, sender(Line(10**9, unanswered_rows=range(5, 7)), kill_after=7))
    found = soak.read(tmp_path)
    totals = found.totals()
    assert found.span_ns == pytest.approx(5 * SERIES_NS)
    assert (totals.sent, totals.unknown_rows, totals.unknown_frames) == (5 * EACH, 2, 2 * EACH)
    assert totals.proven_bits == pytest.approx(5 * EACH * 8 * SETTINGS.frames.frame_bytes / 10)
    # They are measured anew.
    whole = measure(tmp_path, sender(Line(10**9)))
    assert whole.span_ns == pytest.approx(HOUR_NS) and whole.totals().unknown_rows == 2


def test_a_receiver_that_falls_silent_is_looked_for_and_the_stream_announced_anew(tmp_path: Path) -> None:
    lines = [Line(10**9, unanswered_rows=range(5, 360), is_silent=True), Line(10**9)]
    looks = [False, False, True]
    whole = measure(
        tmp_path, lambda trial, on_row: sender(lines.pop(0))(trial, on_row), answers=lambda: looks.pop(0)
    )
    assert [part.number for part in whole.parts] == [1, 2] and not lines and not looks
    # Three rows of 10 s are enough to know.
    assert len(whole.parts[0].rows) == 8 and whole.parts[0].span_ns == pytest.approx(5 * SERIES_NS)
    assert whole.span_ns == pytest.approx(HOUR_NS) and whole.ended is None and whole.totals().unknown_rows == 3


def test_short_intervals_are_silent_after_ten_seconds(tmp_path: Path) -> None:
    second = replace(SETTINGS, series_ns=10**9)
    line = Line(10**9, unanswered_rows=range(5, 360), is_silent=True)
    found = measure(tmp_path, sender(line), settings=second, answers=lambda: False)
    # Rows end some microseconds early or late.
    assert len(found.parts[0].rows) - 5 in (10, 11)


def test_a_receiver_that_stays_away_ends_the_soak(tmp_path: Path) -> None:
    silent = Line(10**9, unanswered_rows=range(5, 360), is_silent=True)
    looks = 0

    def answers() -> bool:
        nonlocal looks
        looks += 1
        return False

    found = measure(tmp_path, sender(silent), answers=answers)
    assert looks == soak.TRIES
    assert found.ended == "the receiver did not answer any more, nor when it was looked for 30 times"
    # It answers when it is looked for, and never during a stream.
    mute = Line(10**9, unanswered_rows=range(360), is_silent=True)
    found = measure(tmp_path / "mute", sender(mute))
    assert len(found.parts) == soak.FRUITLESS_PARTS and found.ended is not None and found.span_ns == 0
    assert found.totals().sent == 0 and found.totals().bounds[1].bits == 0

    def stopped() -> bool:
        raise native.Stopped("told to stop")

    assert measure(tmp_path / "stopped", sender(silent), answers=stopped).ended == STOPPED


def test_frames_that_found_no_carrier_are_lost(tmp_path: Path) -> None:
    found = measure(tmp_path, sender(Line(10**9, no_carrier_rows=range(3))))
    totals = found.totals()
    assert totals.no_carrier_frames == totals.line_lost == 3 * EACH and totals.sent_lost == 0
    assert totals.bounds[1].errors == 0
    # Known without the receiver, which is away as well.
    both = Line(10**9, no_carrier_rows=range(3, 9), unanswered_rows=range(3, 360), is_silent=True)
    totals = measure(tmp_path / "both", sender(both), answers=lambda: False).totals()
    assert totals.no_carrier_frames == 3 * EACH and totals.unknown_rows == 3


def test_a_wrong_header_counts_once_and_a_wrong_length_counts(tmp_path: Path) -> None:
    line = Line(10**9, lose_every=10**6, wrong_lengths=2)

    def send(trial: Trial, on_row: OnRow) -> Outcome:
        outcome = sender(line)(trial, on_row)
        assert outcome.received is not None
        return replace(outcome, received=replace(outcome.received, bad_headers=outcome.received.lost))

    totals = measure(tmp_path, send).totals()
    assert totals.lost == totals.bad_headers > 0 and totals.wrong_lengths == 2
    assert totals.bounds[1].errors == totals.lost + 2


@pytest.mark.parametrize("left", ["", '{"part": 1, "sta', '{"part": 1, "sta\n', "\0\0\0\n"])
def test_a_part_file_that_a_full_disk_left_is_passed_over(left: str, tmp_path: Path) -> None:
    measure(tmp_path, sender(Line(10**9), stop_after=100))
    (tmp_path / "part-002.jsonl").write_text(left)
    found = measure(tmp_path, sender(Line(10**9)))
    assert [part.number for part in found.parts] == [1, 3] and found.span_ns == HOUR_NS


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def send(trial: Trial, on_row: OnRow) -> Outcome:
        # Half of a row fits.
        size = (tmp_path / "part-001.jsonl").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, limits[1]))
        try:
            return sender(Line(10**9))(trial, on_row)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    with pytest.raises(StoreError, match=r"cannot write .*part-001\.jsonl: File too large"):
        measure(tmp_path, send)
    assert measure(tmp_path, sender(Line(10**9))).span_ns == HOUR_NS


@pytest.mark.parametrize(("short_ns", "parts"), [(5 * 10**9, 2), (50 * 10**6, 1)])
def test_a_soak_that_was_stopped_within_its_last_interval_is_finished(
    short_ns: int, parts: int, tmp_path: Path
) -> None:
    def stopped(trial: Trial, on_row: OnRow) -> Outcome:
        short = sender(Line(10**9))(replace(trial, duration_ns=HOUR_NS - short_ns), on_row)
        return replace(short, ended=STOPPED)

    assert measure(tmp_path, stopped).ended == STOPPED
    found = measure(tmp_path, sender(Line(10**9)))
    assert len(found.parts) == parts and found.span_ns > HOUR_NS - soak.LEAST_NS and found.ended is None
    assert found.totals().unknown_rows == 0


def test_a_soak_does_not_go_on_from_another_interface_or_with_another_ramp(tmp_path: Path) -> None:
    measure(tmp_path, sender(Line(10**9), stop_after=100))
    with pytest.raises(InputError, match="its soak has interface eth1, not eth2; name another folder"):
        measure(tmp_path, sender(Line(10**9)), settings=replace(SETTINGS, interface="eth2"))
    with pytest.raises(InputError, match="its soak has ramp_ns 0, not 1000; name another folder"):
        measure(tmp_path, sender(Line(10**9)), settings=replace(SETTINGS, ramp_ns=1000))


def test_a_busy_receiver_is_waited_for_after_a_silence_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "BUSY_WAIT_S", 0.0)
    reason = "the receiver is busy with another stream"

    def busy(trial: Trial, on_row: OnRow) -> Outcome:
        return Outcome(Sent(0, 0, 0, 0, 0, 0), None, None, reason)

    found = measure(tmp_path / "first", busy)
    assert found.ended == reason and len(found.parts) == 1 and found.totals().unknown_rows == 0
    silent = sender(Line(10**9, unanswered_rows=range(5, 360), is_silent=True))
    sends = [silent, busy, busy, sender(Line(10**9))]
    found = measure(tmp_path / "then", lambda trial, on_row: sends.pop(0)(trial, on_row))
    assert found.ended is None and found.span_ns == pytest.approx(HOUR_NS) and not sends
    sends = [silent]
    found = measure(tmp_path / "ever", lambda trial, on_row: (sends.pop() if sends else busy)(trial, on_row))
    assert found.ended == reason and len(found.parts) == 1 + soak.TRIES


def test_drops_of_one_part_hide_no_loss_of_another(tmp_path: Path) -> None:
    measure(tmp_path, sender(Line(10**9, receiver_frames_per_s=80_000), stop_after=100))
    found = measure(tmp_path, sender(Line(10**9, lose_every=10**6)))
    totals = found.totals()
    assert found.parts[1].outcome is not None and totals.receiver_drops > totals.lost - totals.receiver_drops > 0
    assert totals.line_lost == totals.bounds[1].errors == found.parts[1].outcome.lost > 0

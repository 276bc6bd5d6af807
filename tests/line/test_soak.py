"""A soak's folder: parts, interruptions, sums."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from elephan.errors import InputError
from elephan.line import soak
from elephan.line.mix import PAPER
from elephan.line.soak import SERIES_NS, Settings
from elephan.line.session import OnRow
from elephan.line.trial import Outcome, Trial
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

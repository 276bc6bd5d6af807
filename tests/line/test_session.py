"""A sender and its receiver: finding, a signal, the end of either. The port is a stand-in: others test it live."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from elephan.core import native
from elephan.errors import InputError, RunError
from elephan.line import safety, session
from elephan.line.mix import Mix
from elephan.line.session import STOPPED, End, Session
from elephan.line.trial import Row, Trial
from tests.line.stand_in import FAR, Port

pytestmark = pytest.mark.usefixtures("stand_in")


@contextmanager
def opened(
    to: str | None = None, far: End | None = None, stopped: Callable[[], bool] = lambda: False
) -> Iterator[tuple[Session, list[str]]]:
    said: list[str] = []
    with session.opened(
        End("eth1"), to=to, far=far, within_ns=10**9, wait_for_termination=lambda seconds: stopped(), say=said.append
    ) as found:
        yield found, said


TRIAL = Trial(Mix.of(1518), 10**9, 10 * 10**9, series_ns=10**9)


def test_a_stream_has_its_rows_and_its_outcome() -> None:
    with opened() as (found, said):
        first, second = found.send(TRIAL), found.run(TRIAL)
        assert len(first.series) == 10 and first == second and first.lost == 0
        rows: list[Row] = []
        assert found.send(TRIAL, rows.append).series == () and len(rows) == 10
        assert found.mtu_bytes == 1500
    assert said[-1] == "eth1 says goodbye" and any("02:00:00:00:00:09 at far0" in line for line in said)


def test_each_stream_has_a_number_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened() as (found, _):
        numbers = set()
        for _ in range(3):
            found.run(TRIAL)
            numbers.add(found.port.stream)  # type: ignore[attr-defined]
        assert len(numbers) == 3
        found.stream = 2**32 - 1
        found.run(TRIAL)
        assert found.port.stream == 0  # type: ignore[attr-defined]


def test_a_signal_ends_the_stream_with_its_counts() -> None:
    calls = 0

    def stopped() -> bool:
        nonlocal calls
        calls += 1
        return calls > 4

    with opened(stopped=stopped) as (found, _):
        outcome = found.send(TRIAL)
        assert outcome.ended == STOPPED and outcome.received is not None and len(outcome.series) == 4
    calls = 0
    with opened(stopped=stopped) as (found, _), pytest.raises(native.Stopped):
        found.run(TRIAL)


def test_a_receiver_of_ones_own_serves_and_ends() -> None:
    before = threading.active_count()
    with opened(far=End("far0")) as (found, said):
        assert found.to == safety.own_address("52:54:00:00:00:04", "receive")
        assert threading.active_count() == before + 1
        assert found.run(TRIAL).lost == 0
    assert threading.active_count() == before and "far0: far0 says goodbye" in said


def test_the_error_of_a_receiver_of_ones_own_ends_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    before = threading.active_count()
    with pytest.raises(RunError, match="gone0: .*No such device"), opened(far=End("gone0")):
        pass
    with pytest.raises(RunError, match="far0: the receiver ended: the cable"), opened(far=End("far0")) as (found, _):
        monkeypatch.setattr(Port, "fails", "the cable")
        assert found.receiver is not None
        while found.receiver._thread.is_alive():
            found.receiver._thread.join(1)
        found.run(TRIAL)
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("receivers", "to", "error", "expected"),
    [
        ([], None, RunError, "no receiver answers behind eth1: start elephan line receive at the other end"),
        ([], "02:00:00:00:00:01", RunError, "02:00:00:00:00:01 does not answer behind eth1"),
        ([FAR, {**FAR, "address": "02:00:00:00:00:0a"}], None, InputError, "2 receivers answer behind eth1; name one"),
        ([{**FAR, "is_busy": True}], None, RunError, "busy with the stream of another"),
    ],
)
def test_a_receiver_that_cannot_be_had_is_told(
    receivers: list[dict[str, Any]],
    to: str | None,
    error: type[Exception],
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Port, "receivers", receivers)
    with pytest.raises(error, match=expected), opened(to=to):
        pass


def test_a_stream_that_the_core_refuses_is_bad_input() -> None:
    with opened() as (found, _), pytest.raises(InputError, match="pcp: the frames have no tag"):
        found.send(Trial(Mix.of(64), 10**9, 10**9, pcp=3))


def test_a_row_may_end_the_stream() -> None:
    with opened() as (found, _):
        rows: list[Row] = []

        def take(row: Row) -> str | None:
            rows.append(row)
            return "enough" if len(rows) == 3 else None

        outcome = found.send(TRIAL, take)
        assert outcome.ended == "enough" and len(rows) == 3
        # The port is free for the next one.
        assert found.send(TRIAL).ended is None
        assert found.answers(10**9)

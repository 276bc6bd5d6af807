"""Requests to end, at any moment of the wait for them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from elephan.signals import termination_requested

OFTEN = """
import random, signal
from elephan.signals import termination_requested
random.seed(1)
for _ in range(1000):
    with termination_requested([signal.SIGALRM]) as told:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 60e-6))
        while not told(0.2):
            pass
"""


def test_no_signal_ever_stops_the_wait_that_it_came_into() -> None:
    # An Event in place of it stands still within some ten rounds: its handler waits for the lock of the wait below it.
    assert subprocess.run([sys.executable, "-c", OFTEN], timeout=60, check=False).returncode == 0


def test_a_wait_ends_with_the_signal_and_so_do_all_after_it() -> None:
    with termination_requested([signal.SIGUSR1]) as wait_for_termination:
        assert not wait_for_termination(0)
        os.kill(os.getpid(), signal.SIGUSR1)
        assert wait_for_termination(None)
        assert wait_for_termination(0)


def test_handlers_are_as_they_were_afterwards_and_what_is_ignored_stays_so() -> None:
    def own(*_: object) -> None:
        pytest.fail("the handler of before was called")

    before = signal.signal(signal.SIGUSR1, own), signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    try:
        with termination_requested([signal.SIGUSR1, signal.SIGUSR2]) as wait_for_termination:
            os.kill(os.getpid(), signal.SIGUSR2)
            began = time.monotonic()
            assert not wait_for_termination(0.05)
            assert time.monotonic() - began >= 0.05
        assert signal.getsignal(signal.SIGUSR1) is own
        assert signal.getsignal(signal.SIGUSR2) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGUSR1, before[0])
        signal.signal(signal.SIGUSR2, before[1])

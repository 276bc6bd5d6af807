"""Schedule of path tests: earliest deadline first, one at a time on a bottleneck, within each path's budget.

No I/O and no clock: time is an argument, in s of a clock that never steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from elephan.monitor.spec import PathSpec, TestSpec
from elephan.units import duration, size

MOST_AT_ONCE = 4
"""Tests that run at the same time, on different bottlenecks: more would disturb each other's time stamps here."""
REST_MOST_S = 60.0
"""Longest rest of a bottleneck after a test, s; it is as long as the test was."""
ACCOUNT_S = 3600.0
"""Time over which an unused budget adds up, s; longer where a test's period is."""


@dataclass
class Account:
    """Bytes that a path's tests may still send: a token bucket that may be overdrawn by what was asked for by hand."""

    bytes_per_s: float
    most: float
    tokens: float
    at_s: float

    @classmethod
    def of(cls, path: PathSpec, now_s: float) -> Account:
        """Return the account of a path: full, so that the first tests need not wait."""
        longest_s = max([ACCOUNT_S, *(one.period_ns / 1e9 for one in path.tests)])
        rate = path.budget_bytes_per_s
        return cls(rate, rate * longest_s, rate * longest_s, now_s)

    def advance(self, now_s: float) -> None:
        """Pay in what has come due since."""
        self.tokens = min(self.most, self.tokens + self.bytes_per_s * max(0.0, now_s - self.at_s))
        self.at_s = max(self.at_s, now_s)

    def charge(self, count: float) -> None:
        """Take out the bytes that a test has sent."""
        self.tokens -= count

    def wait_s(self, count: float) -> float:
        """Return how long until so many bytes are there, s."""
        return max(0.0, (count - self.tokens) / self.bytes_per_s)


@dataclass
class Job:
    """A test of a path, again and again, or once by hand."""

    path: PathSpec
    test: TestSpec
    release_s: float
    """It is not to start before."""
    by_hand: bool = False
    cost_bytes: float = 0.0
    """Cost of the last one."""
    not_before_s: float = 0.0
    """A path that is silent, or a test that failed, is left alone for a while."""
    failures: int = 0
    missed: int = 0
    """Periods in which it could not run."""
    began_s: float = 0.0
    """Start of the last one."""
    waits: str | None = None
    """Reason for which it waits, in words; None: it is not due."""

    @property
    def key(self) -> tuple[str, str]:
        """Return path and test."""
        return self.path.name, self.test.test

    @property
    def period_s(self) -> float:
        """Return its period, s."""
        return self.test.period_ns / 1e9

    @property
    def deadline_s(self) -> float:
        """Return when it is to have begun: when the next one is due; at once by hand."""
        return self.release_s if self.by_hand else self.release_s + self.period_s


@dataclass
class Schedule:
    """The jobs of all paths. `poll` gives what is to start; `done` says what it cost."""

    accounts: dict[str, Account] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)
    running: dict[int, Job] = field(default_factory=dict)
    """By id()."""
    rests: dict[str, float] = field(default_factory=dict)
    """Time until which a bottleneck is left alone after a test."""
    silent: set[str] = field(default_factory=set)
    """Paths without answers: nothing but `stamp` is tried there."""

    @classmethod
    def of(cls, paths: tuple[PathSpec, ...], now_s: float) -> Schedule:
        """Return a schedule in which every test is due now."""
        active = [path for path in paths if not path.paused]
        jobs = [Job(path, test, now_s) for path in active for test in path.tests if test.test != "stamp"]
        return cls({path.name: Account.of(path, now_s) for path in active}, jobs)

    def replace(self, paths: tuple[PathSpec, ...], now_s: float) -> None:
        """Take over changed paths; what is known of tests that stay is kept."""
        known = {job.key: job for job in self.jobs if not job.by_hand}
        fresh = Schedule.of(paths, now_s)
        for name, account in fresh.accounts.items():
            if name in self.accounts:
                account.tokens = min(account.most, self.accounts[name].tokens)
        for job in fresh.jobs:
            before = known.get(job.key)
            if before is not None:
                job.cost_bytes, job.missed, job.not_before_s = before.cost_bytes, before.missed, before.not_before_s
                job.release_s = min(before.release_s, now_s + job.period_s)
        # Somebody waits for those that were asked for by hand.
        asked = [job for job in self.jobs if job.by_hand]
        self.accounts, self.jobs = fresh.accounts, [*fresh.jobs, *asked]

    def charge(self, path: str, count: float, now_s: float) -> None:
        """Charge bytes that a path's on-going test sends."""
        account = self.accounts.get(path)
        if account is not None:
            account.advance(now_s)
            account.charge(count)

    def ask(self, path: PathSpec, test: TestSpec, now_s: float) -> Job:
        """Add a test by hand: due at once, before all others; the budget is charged, and does not hold it."""
        job = Job(path, test, now_s, by_hand=True)
        self.jobs.append(job)
        return job

    def poll(self, now_s: float) -> Iterator[Job]:
        """Yield the jobs that start now."""
        for account in self.accounts.values():
            account.advance(now_s)
        due = [job for job in self.jobs if job.release_s <= now_s and id(job) not in self.running]
        for job in sorted(due, key=lambda one: (not one.by_hand, one.deadline_s)):
            job.waits = self._hindrance(job, now_s)
            if job.waits is None:
                job.began_s = now_s
                self.running[id(job)] = job
                yield job
            elif not job.by_hand and now_s >= job.deadline_s:
                periods = int((now_s - job.release_s) // job.period_s)
                job.missed += periods
                job.release_s += periods * job.period_s

    def _hindrance(self, job: Job, now_s: float) -> str | None:
        """Return why a job that is due cannot start; None: nothing."""
        for other in self.running.values():
            if other.path.bottleneck == job.path.bottleneck:
                return f"{other.test.test} of {other.path.name} runs over the same bottleneck"
        if len(self.running) >= MOST_AT_ONCE:
            return f"{MOST_AT_ONCE} tests run already"
        if job.by_hand:
            return None
        if job.path.name in self.silent:
            return "the path is silent"
        if now_s < job.not_before_s:
            return f"it failed; next attempt in {duration(job.not_before_s - now_s)}"
        account = self.accounts[job.path.name]
        if job.cost_bytes > account.bytes_per_s * job.period_s:
            least_s = job.cost_bytes / account.bytes_per_s
            if account.tokens < min(job.cost_bytes, account.most):
                given = size(account.bytes_per_s * job.period_s)
                return (
                    f"it costs {size(job.cost_bytes)}, and budget gives {given} in a period; a period of at least "
                    f"{duration(least_s)} would fit"
                )
        elif account.tokens < job.cost_bytes:
            return f"it costs {size(job.cost_bytes)}; budget has them in {duration(account.wait_s(job.cost_bytes))}"
        rest_s = self.rests.get(job.path.bottleneck, now_s) - now_s
        if rest_s > 0:
            return f"delays of {job.path.bottleneck.lstrip('*')} are judged without load for {duration(rest_s)}"
        return None

    def done(self, job: Job, cost_bytes: float, failed: bool, now_s: float) -> None:
        """A job has ended; `failed` is a test that could not be done, not one that refused."""
        if self.running.pop(id(job), None) is not None:
            # Delays are not judged under load: tests back to back would keep every change from being found.
            self.rests[job.path.bottleneck] = now_s + min(REST_MOST_S, now_s - job.began_s)
        if not job.by_hand:
            # A reload while it ran has put another in its place.
            job = next((one for one in self.jobs if one.key == job.key and not one.by_hand), job)
        account = self.accounts.get(job.path.name)
        if account is not None:
            account.advance(now_s)
            account.charge(cost_bytes)
        if job.by_hand:
            self.jobs = [one for one in self.jobs if one is not job]
            return
        if cost_bytes > 0:
            job.cost_bytes = cost_bytes
        job.failures = job.failures + 1 if failed else 0
        if failed:
            # 10 s, 20 s, 40 s ... half an hour.
            job.not_before_s = now_s + min(1800.0, 10.0 * 2 ** min(job.failures - 1, 8))
        else:
            periods = max(1, int((now_s - job.release_s) // job.period_s))
            job.missed += periods - 1
            job.release_s += periods * job.period_s

    def next_s(self, now_s: float) -> float:
        """Return when `poll` has something to look at, s of the same clock."""
        waiting = [job.release_s for job in self.jobs if id(job) not in self.running]
        return min([max(one, now_s + 0.5) for one in waiting], default=now_s + 3600.0)

    def loaded(self, path: PathSpec) -> bool:
        """Return True if a test puts load on a path's bottleneck now: its delays are not the path's own."""
        return any(job.path.bottleneck == path.bottleneck for job in self.running.values())

"""The backend `hosts`: runs between two real hosts, each with an agent that this process drives over SSH."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from elephan import units
from elephan.backends.hosts import files, programs
from elephan.backends.hosts.demands import Demands, demands_of
from elephan.backends.hosts.end import End
from elephan.backends.hosts.found import changed_notes, facts_of_record, metrics_of, notes_of
from elephan.backends.hosts.layout import layout_of
from elephan.backends.hosts.options import HostOptions
from elephan.backends.job import HostPair, Job, Progress
from elephan.backends.record_builder import PROGRESS_INTERVAL_S, build_record, one_line
from elephan.core import native
from elephan.errors import ElephanError, InputError, RunError
from elephan.hosts import Book
from elephan.hosts.agent import Agent, AgentError, Inbox, Reply, ending, together
from elephan.hosts.facts import Facts, look, own_address, path_addresses
from elephan.record import Record, canonical_json
from elephan.store.series import Series

BACKEND = "hosts"

CONNECT_S = 5
"""Time in which a port must be reached, s: one that a firewall blocks is named after that."""

FRESH_S = 10.0
"""Age up to which facts about a host serve the next run, s."""

SERVER_SAYS = "'s server: "
"""Before the words of a program's server in an agent's error (crates/kernel/src/traffic/program_reception.rs)."""

SAMPLES = 2
"""Questions for a host's clock before a run."""


class HostBackend:
    """The agents of one command's runs, connected when first needed."""

    def __init__(self, options: HostOptions) -> None:
        """Connect to nobody yet."""
        self._options = options
        self._book = Book.read()
        self._agents: dict[str, Agent] = {}
        self._inbox = Inbox()
        self._checked: list[Job] = []
        self._facts: dict[tuple[str, str], tuple[float, Facts, Facts]] = {}

    def check(self, jobs: Iterable[Job]) -> list[str]:
        """Check that the hosts can do what the jobs ask for, and return the notes of all. Raises `InputError` and
        `RunError`, before anything is made there.
        """
        notes: dict[str, None] = {}
        self._checked = list(jobs)
        for job in self._checked:
            where = job.scenario.file or job.scenario.name
            try:
                layout = layout_of(job.spec)
                pair = _pair(job)
                left, right = self._ends(pair)
                sender, receiver = (left, right) if layout.forward else (right, left)
                limit = pair.rate_limit_bps
                demands = demands_of(job.spec, layout, sender.facts, receiver.facts, secrets.token_hex(16), limit)
                of_programs = programs.check(job.spec, sender, receiver)
            except InputError as error:
                raise InputError(f"{where}: {error}") from error
            notes.update(dict.fromkeys([*demands.notes, *of_programs, *notes_of(left.facts, right.facts)]))
        return list(notes)

    def require_agreement(self, runs: int) -> None:
        """Ask before that many runs, which may fill the path. Raises `InputError` without a yes."""
        options, jobs = self._options, self._checked
        if options.agreed or options.rate_limit_bps is not None or not jobs:
            return
        between = "; ".join(dict.fromkeys(f"{pair.left} and {pair.right}" for pair in map(_pair, jobs)))
        longest_s = max(job.spec["duration_ns"] for job in jobs) / 1e9
        expected_bps = max(layout_of(job.spec).expected_rate_bps for job in jobs)
        what = (
            f"{units.pluralize(runs, 'run')} of up to {units.duration(longest_s)} may fill the path between {between} "
            f"(expected: {units.rate(expected_bps)}), to the harm of others on it"
        )
        if options.ask is None:
            raise InputError(f"--on hosts: {what}: say --yes, or bound it by --rate-limit RATE")
        if not options.ask(what):
            raise InputError("--on hosts: nothing was run")

    def run(self, job: Job, progress: Progress | None = None) -> tuple[Record, Series]:
        """Run one point. Raises `InputError`, `RunError`, and `Stopped` when `progress` said so.

        Whatever the agents made on their hosts is gone afterwards.
        """
        layout = layout_of(job.spec)
        pair = _pair(job)
        left, right = self._ends(pair)
        sender, receiver = (left, right) if layout.forward else (right, left)
        token = secrets.token_hex(16)
        demands = demands_of(job.spec, layout, sender.facts, receiver.facts, token, pair.rate_limit_bps)
        inputs = job.inputs
        notes_of_programs = programs.check(job.spec, sender, receiver)
        carried = programs.Programs(job.spec, sender, receiver)
        try:
            if carried:
                carried.prepare(demands.limit_bps, lambda replies: self._wait(replies, progress))
            sent, received, rows = self._carry(job, demands, carried, token, (sender, receiver), progress)
            try:
                result = native.hosts_result(canonical_json(sent["outcome"]), [canonical_json(part) for part in rows])
            except ValueError as error:
                raise RunError(f"{sender.facts.name}: {one_line(error)}") from error
            carried.compare(result, lambda replies: self._wait(replies, progress))
        except RunError as error:
            full = carried.full_disks()
            if full:
                raise RunError("; ".join([str(error), *full])) from error
            raise
        finally:
            carried.leave()
        notes = [
            *notes_of(left.facts, right.facts, layout, sent),
            *demands.notes,
            *notes_of_programs,
            *result.notes,
            *changed_notes(sender.facts.name, sent),
            *changed_notes(receiver.facts.name, received),
        ]
        metrics = {**metrics_of(layout, sent), "cpu_s": sent.get("cpu_s")}
        host = facts_of_record(left.facts, right.facts, sent, received)
        host |= programs.facts_of_record(job.spec, {"left": left, "right": right})
        return build_record(BACKEND, job, inputs, job.spec, result, metrics, notes, host)

    def close(self) -> None:
        """End all agents, and with them what is left of runs."""
        for agent in self._agents.values():
            agent.close()
        self._agents.clear()

    def _ends(self, pair: HostPair) -> tuple[End, End]:
        """Return both hosts with fresh facts; their agents are started where they are not."""
        names = (pair.left, pair.right)
        missing = [self._book.find(name, "--on hosts: ") for name in names if not self._is_there(name)]
        for agent in together(missing, self._inbox):
            self._agents[agent.host.name] = agent
        agents = [self._agents[name] for name in names]
        addresses = path_addresses(agents)
        known = self._facts.get(names)
        if known is None or time.monotonic() - known[0] > FRESH_S:
            left = replace(look(agents[0], addresses[1], SAMPLES), address=addresses[0])
            right = replace(look(agents[1], addresses[0], SAMPLES), address=addresses[1])
            known = self._facts[names] = (time.monotonic(), left, right)
        _, left, right = known
        ends = [(agents[0], left, addresses[1]), (agents[1], right, addresses[0])]
        first, second = (End(agent, facts, own_address(facts, other)) for agent, facts, other in ends)
        return first, second

    def _is_there(self, name: str) -> bool:
        agent = self._agents.get(name)
        if agent is None:
            return False
        if agent.is_alive():
            return True
        agent.close(0)
        del self._agents[name]
        return False

    def _carry(
        self,
        job: Job,
        demands: Demands,
        carried: programs.Programs,
        token: str,
        ends: tuple[End, End],
        progress: Progress | None,
    ) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]:
        """Return the answers of the sending and of the receiving agent, and the parts of the series."""
        sender, receiver = ends
        spec = files.sent(sender.agent, job.spec)
        common = {
            "spec": spec,
            "token": token,
            "progress_ms": int(PROGRESS_INTERVAL_S * 1000),
            "guard": self._options.guard(),
        }
        replies: list[Reply] = []
        with ending(self._inbox, replies):
            listens = receiver.agent.begin(
                "run",
                role="receive",
                local=receiver.local,
                peer=sender.facts.address,
                ports=list(receiver.agent.host.ports or (0, 0)),
                # A control sends; the receiver's host need not have it.
                flows=[
                    {**flow, "congestion_control": None, **carried.keys(number, at_source=False)}
                    for number, flow in enumerate(demands.flows)
                ],
                controls=[],
                sysctls=demands.sysctls[receiver.facts.name],
                connect_s=2 * CONNECT_S,
                **common,
            )
            replies.append(listens)
            self._until(replies, lambda: listens.event("listening") is not None, progress)
            ports = listens.event("listening")
            assert ports is not None, "it was waited for"
            sends = sender.agent.begin(
                "run",
                role="send",
                local=sender.local,
                peer=receiver.facts.address,
                report_port=ports["report_port"],
                flows=[
                    {**flow, "port": port, **carried.keys(number, at_source=True)}
                    for number, (flow, port) in enumerate(zip(demands.flows, ports["ports"], strict=True))
                ],
                controls=list(demands.controls),
                sysctls=demands.sysctls[sender.facts.name],
                connect_s=CONNECT_S,
                **common,
            )
            replies.append(sends)
            self._until(replies, lambda: all(reply.has_ended for reply in replies), progress)
            rows = [
                {name: column for name, column in event.items() if name not in ("id", "event")}
                for event in sends.events
                if event["event"] == "series"
            ]
            return sends.result(), listens.result(), rows

    def _wait(self, replies: list[Reply], progress: Progress | None) -> None:
        """Wait until all requests have ended, which stop when the context is left. Raises the first error."""
        with ending(self._inbox, replies):
            self._until(replies, lambda: all(reply.has_ended for reply in replies), progress)

    def _until(self, replies: list[Reply], seen: Any, progress: Progress | None) -> None:
        """Take frames until `seen` holds. Raises the error of the first request that failed, and `Stopped`."""
        while not seen():
            self._inbox.take(PROGRESS_INTERVAL_S)
            # An agent whose peer has failed fails, too; the reason is that of the first.
            for reply in replies:
                if reply.error is not None:
                    self._inbox.wait(lambda: all(one.has_ended for one in replies), 0.3)
                    raise _reason(replies)
            event = replies[-1].event("progress")
            if progress is not None and event is not None and "now_s" in event:
                progress(round(event["now_s"] * 1e9), round(event["end_s"] * 1e9))
            elif progress is not None:
                progress(0, 1)


def _pair(job: Job) -> HostPair:
    assert job.hosts is not None, "a job of this backend has hosts"
    return job.hosts


def _reason(replies: list[Reply]) -> ElephanError:
    """Return the most telling error of those that there are: a lost peer is the other's consequence."""
    # The sender's first: it is that which connects.
    errors = [reply.error for reply in reversed(replies) if reply.error is not None]
    errors.sort(key=lambda error: isinstance(error, AgentError) and error.kind in ("peer", "stopped"))
    first = errors[0]
    if isinstance(first, AgentError):
        # The words of a program's server there are the reason that its client gives up here.
        for other in errors[1:]:
            _, found, words = str(other).partition(SERVER_SAYS)
            if found and words:
                return AgentError(first.host, first.kind, f"{first.text}; its server: {words}")
    return first


@contextmanager
def opened(options: HostOptions) -> Iterator[HostBackend]:
    """Give the backend for the runs of one command; its agents end with the context."""
    backend = HostBackend(options)
    try:
        yield backend
    finally:
        backend.close()

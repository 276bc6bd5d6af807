"""The monitor's process: one loop that takes samples, starts tests and children, answers commands and Prometheus.

Everything that takes long is a child process or a thread of the core. Times of the schedule are of CLOCK_MONOTONIC,
labels of the wall clock.
"""

from __future__ import annotations

import dataclasses
import json
import os
import selectors
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from elephan import units
from elephan.command_socket import Control, Reply
from elephan.core import native
from elephan.errors import ElephanError, InputError, RunError
from elephan.metrics_endpoint import Endpoint
from elephan.monitor import journal
from elephan.monitor.alerts import AlertBook
from elephan.monitor.child_processes import MEASURE_LIMIT_S, Children, Done
from elephan.monitor.instance import socket_path, stem
from elephan.monitor.metrics import Numbers
from elephan.monitor.metrics import text as metrics_text
from elephan.monitor.reflectors import Reflectors
from elephan.monitor.sampling import Sampler, key_of
from elephan.monitor.schedule import Job, Schedule
from elephan.monitor.spec import STAMP_PACKET_BYTES, PathSpec, Spec, TestSpec
from elephan.monitor.tables import monitor_folder, path_folder, path_id
from elephan.monitor.watch import HOST_IS_LATE, QUIET_AFTER_TEST_S, Found, PathWatch
from elephan.monitor.writing import Database, free_bytes, make_space, save
from elephan.printable import printable
from elephan.store.place import Place
from elephan.store.sql import id_of

TICK_S = 1.0
"""Time between two looks at what has come, s."""
CLOCK_STEP_S = 0.5
"""Difference of the clocks between two looks that counts as a step, s."""
SEND_S = 300.0
"""Time between two sendings to a server, s."""
NOTIFY_RETRY_S = (10.0, 600.0)
"""Time until a message that was not taken is sent again, s: doubled from the first to the second."""

OF_DELAY = ("rtt_s", "forward_delay_s", "reverse_delay_s")
"""Quantities that a late host moves."""

Say = Callable[[str], None]


class Daemon:
    """A monitor that runs."""

    def __init__(self, spec: Spec, store: str, place: Place, say: Say) -> None:
        """Open the store and go on where the last one stopped. Raises `StoreError`, `RunError`."""
        self.spec, self.store, self.place = spec, store, place
        self._say = say
        self.started_s = time.time()
        self.database = Database(place)
        self.children = Children()
        self.selector = selectors.DefaultSelector()
        self._book_file = stem(place, spec.name).with_suffix(".alerts.json")
        state: dict[str, Any] = {}
        with suppress(OSError, ValueError):
            state = json.loads(self._book_file.read_text())
        self.book = AlertBook(spec.alerts, state)
        self.watches: dict[str, PathWatch] = {}
        self.schedule = Schedule.of(spec.paths, time.monotonic())
        self.sampler = Sampler()
        self.reflectors = Reflectors()
        self.outcomes: dict[tuple[str, str], dict[str, Any]] = {}
        """Newest outcome of each path's tests."""
        self.refusals: dict[tuple[str, str], tuple[float, str]] = {}
        """Time and reason of each path's tests whose newest outcome is a refusal."""
        self.test_bytes: dict[tuple[str, str], float] = {}
        self._replies: dict[int, Reply] = {}
        self._changed: set[str] = set()
        self._clock_s = time.time() - time.monotonic()
        self._day = journal.day_of(time.time() - 60)
        self._sent_s = time.monotonic()
        self._space_s = 0.0
        self._notify_s = (0.0, NOTIFY_RETRY_S[0])
        self._full_said = False
        self._ending = False
        self.control = Control(socket_path(place, spec.name), self.selector, self._asked)
        try:
            self.endpoint = None if spec.metrics is None else Endpoint(spec.metrics, self.selector, self._metrics)
        except RunError:
            self.control.close()
            raise

    # Life.

    def run(self, signals: int) -> None:
        """Loop until told to end."""
        self.selector.register(signals, selectors.EVENT_READ, lambda: self._signalled(signals))
        self._open_paths()
        self._start_days()
        where = "" if self.endpoint is None else f"; metrics at http://{self._metrics_address()}/metrics"
        paths = units.pluralize(len(self.watches), "path")
        self.say(f"monitor {self.spec.name}: {paths}, store {self.place.location}{where}")
        due_s = time.monotonic()
        while not self._ending:
            wait_s = max(0.0, due_s - time.monotonic())
            for key, _ in self.selector.select(wait_s):
                key.data()
            # A child that measures for someone is looked at sooner.
            self.children.poll()
            if time.monotonic() >= due_s:
                due_s = max(due_s + (0.1 if self._replies else TICK_S), time.monotonic())
                self.tick()
            elif self.children.running:
                self._start_tests(time.monotonic())

    def say(self, text: str) -> None:
        """Say a line."""
        self._say(printable(text))

    def _metrics_address(self) -> str:
        assert self.endpoint is not None
        host, port = self.endpoint.address
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def _metrics(self) -> str:
        return metrics_text(
            Numbers(
                self.spec.name,
                self.watches,
                self.schedule,
                self.book,
                self.test_bytes,
                self.children.failures,
                self.database.fault is not None,
                self.started_s,
            )
        )

    def _signalled(self, signals: int) -> None:
        numbers = os.read(signals, 64)
        if signal.SIGTERM in numbers or signal.SIGINT in numbers:
            self._ending = True
        elif signal.SIGHUP in numbers:
            self._reload()

    def close(self) -> None:
        """End in order: all that is known is stored."""
        self.control.close()
        if self.endpoint is not None:
            self.endpoint.close()
        self.sampler.close()
        self.reflectors.keep(set())
        self._take_samples()
        self.children.end()
        self._flush()
        for watch in self.watches.values():
            watch.close()
        self._changed.clear()
        self._put_paths("paused")
        self._flush()
        self._save_book()
        self.database.close()
        self.selector.close()

    # Paths.

    def _open_paths(self) -> None:
        for path in self.spec.paths:
            self._open_path(path)
        self._put_paths("running")
        self._flush()

    def _open_path(self, path: PathSpec) -> None:
        identity = path_id(self.spec.name, path.name)
        watch = PathWatch(path, identity, path_folder(self.place, identity))
        self.watches[path.name] = watch
        if path.paused:
            return
        rows, found = watch.recover(time.time())
        self.database.add("monitor_summary", rows)
        self._found(watch, found)
        if path.host is not None:
            self.reflectors.want(path.host)
        self._open_session(path)

    def _open_session(self, path: PathSpec) -> None:
        try:
            stamp, target = path.stamp(), self._target(path)
        except RunError as error:
            self.say(f"{path.name}: no session: {error}; SIGHUP tries again")
            return
        if stamp is not None and target is not None:
            self.sampler.want(path.name, *target, stamp.period_ns)

    def _target(self, path: PathSpec) -> tuple[str, bytes | None] | None:
        """Return address and key of a path's reflector; None: an agent's is not there now."""
        if path.host is not None:
            return self.reflectors.of(path.host)
        try:
            return str(path.towards), key_of(path.key_file)
        except (OSError, ValueError) as error:
            raise RunError(f"{path.key_file}: cannot be read: {error}") from error

    def _put_paths(self, state: str) -> None:
        self.database.add("monitor_path", [self._path_row(watch.spec, state) for watch in self.watches.values()])

    def _path_row(self, path: PathSpec, state: str) -> dict[str, Any]:
        now = time.time()
        return {
            "id": path_id(self.spec.name, path.name),
            "monitor": self.spec.name,
            "name": path.name,
            "settings": json.dumps(path.settings()),
            "created": datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "state": "paused" if path.paused else state,
            "changed": int(now * 1e9),
        }

    def _reload(self) -> None:
        """Read the file again, in a child; a file that is wrong changes nothing."""
        if self.children.has("config"):
            return
        self.children.start("config", {"file": self.spec.file}, self._reloaded)

    def _reloaded(self, done: Done) -> None:
        if done.result is None:
            self.say(f"the configuration read before stays in use: {done.fault}")
            return
        spec = Spec.from_json(done.result["spec"])
        if spec.name != self.spec.name or spec.metrics != self.spec.metrics:
            self.say("name and metrics.listen change with a restart alone; all else has been taken over")
            # Lock, socket and the paths' ids are of the old name.
            spec = dataclasses.replace(spec, name=self.spec.name, metrics=self.spec.metrics)
        before = {path.name: path for path in self.spec.paths}
        now = {path.name: path for path in spec.paths}
        for name in before.keys() - now.keys():
            self.sampler.drop(name)
            self.watches.pop(name).close()
            self._alerts_ended(self.book.drop(name, time.time()))
            self.database.add("monitor_path", [self._path_row(before[name], "paused")])
        self.spec = spec
        for name, path in now.items():
            if before.get(name) != path:
                if name in before:
                    self.sampler.drop(name)
                    self.watches.pop(name).close()
                self._open_path(path)
        self.reflectors.keep({path.host for path in spec.paths if path.host is not None})
        self.book.spec = spec.alerts
        self.schedule.replace(spec.paths, time.monotonic())
        self._put_paths("running")
        self._flush()
        self.say(f"read {spec.file} again: {units.pluralize(len(spec.paths), 'path')}")

    # A tick.

    def tick(self) -> None:
        """Look at all that may have changed since the last one."""
        now_s, now = time.monotonic(), time.time()
        self._look_at_clock(now_s, now)
        for host, _, _ in self.reflectors.poll():
            for path in self.spec.paths:
                if path.host == host and not path.paused:
                    self._open_session(path)
        self._take_samples()
        self._start_tests(now_s)
        for watch in self.watches.values():
            self.database.add("monitor_summary", list(watch.hour_rows()))
        if journal.day_of(now - 90) != self._day:
            self._day = journal.day_of(now - 90)
            self._start_days()
        if self.book.tick(now):
            self._save_book()
        self._notify(now_s, now)
        self._flush()
        for watch in self.watches.values():
            # After the commit of what it counts as summarised.
            if watch.is_save_due(now_s) and self.database.fault is None and not watch.save():
                self._make_space()
        self._look_at_space(now_s)
        if self.place.spool is not None and now_s - self._sent_s > SEND_S:
            self._send()

    def _look_at_clock(self, now_s: float, now: float) -> None:
        distance = now - now_s
        step = distance - self._clock_s
        self._clock_s = distance
        if abs(step) < CLOCK_STEP_S:
            return
        way = "forward" if step > 0 else "back"
        note = f"the clock of this machine was set {way} by {abs(step):.3f} s"
        self.say(note)
        estimate = {"quantity": "clock_step_s", "value": step, "low": step, "high": step}
        cost = {"packets": 0, "bytes": 0, "seconds": 0.0}
        outcome = {"estimates": [estimate], "refused": None, "notes": [note], "cost": cost}
        for watch in self.watches.values():
            # A clock that was set back would else suspend the detectors until it is there again.
            watch.loaded_until_s = min(watch.loaded_until_s, now + QUIET_AFTER_TEST_S)
            self._store_outcome(watch, "clock", now, outcome)

    def _take_samples(self) -> None:
        by_path: dict[str, list[journal.Sample]] = {}
        for name, sample in self.sampler.take():
            by_path.setdefault(name, []).append(sample)
        now_s = time.monotonic()
        for name, samples in by_path.items():
            watch = self.watches.get(name)
            if watch is None:
                continue
            rows, found = watch.handle(samples, self.schedule.loaded(watch.spec))
            self.schedule.charge(name, STAMP_PACKET_BYTES * len(samples), now_s)
            if rows:
                watch.journal.sync()
                self._changed.add(name)
                self.database.add("monitor_summary", rows)
            self._found(watch, found)

    # Tests.

    def _start_tests(self, now_s: float) -> None:
        for job in self.schedule.poll(now_s):
            self._start_test(job)

    def _start_test(self, job: Job) -> None:
        path = job.path
        try:
            target, fault = self._target(path), f"there is no reflector at {path.host} now"
        except RunError as error:
            target, fault = None, str(error)
        if target is None:
            self._measured(job, Done(None, fault))
            return
        asked = {
            "test": job.test.test,
            "towards": target[0],
            "key": None if target[1] is None else target[1].hex(),
            "line_bps": path.line_bps,
            "budget_e6": path.budget_e6,
            "duration_ns": job.test.duration_ns,
            "capacity_bps": self._capacity(path.name),
        }
        limit_s = MEASURE_LIMIT_S + (job.test.duration_ns or 0) / 1e9
        self.children.start("measure", asked, lambda done: self._measured(job, done), limit_s)

    def _capacity(self, name: str) -> int | None:
        """Return the capacity that the newest test found, so that other tests need not measure it first."""
        outcome = self.outcomes.get((name, "capacity"), {"estimates": []})
        found = [one["value"] for one in outcome["estimates"] if one["quantity"] == "capacity_bps"]
        return round(found[0]) if found else None

    def _measured(self, job: Job, done: Done) -> None:
        now_s, now = time.monotonic(), time.time()
        reply = self._replies.pop(id(job), None)
        watch = self.watches.get(job.path.name)
        if done.result is None:
            # A child that ran may have sent all that the one before it did; only its outcome would tell.
            self.schedule.done(job, 0.0 if done.exit_code is None else job.cost_bytes, True, now_s)
            if not job.by_hand and job.failures == 1:
                self.say(f"{job.path.name}: {job.test.test}: {done.fault}")
            if reply is not None:
                reply({"fault": f"{job.path.name}: {job.test.test}: {done.fault}"})
            return
        outcome = done.result["outcome"]
        cost = float(outcome["cost"]["bytes"])
        self.schedule.done(job, cost, False, now_s)
        self.test_bytes[job.key] = self.test_bytes.get(job.key, 0.0) + cost
        self.outcomes[job.key] = outcome
        self.refusals.pop(job.key, None)
        if outcome["refused"]:
            self.refusals[job.key] = now, str(outcome["refused"])
        if watch is not None:
            watch.loaded_until_s = now + 1.0
            self._store_outcome(watch, job.test.test, now, outcome)
            self._found(watch, watch.handle_outcome(now, outcome))
            self._flush()
        if reply is not None:
            reply({"outcome": outcome})

    def _store_outcome(self, watch: PathWatch, test: str, now: float, outcome: dict[str, Any]) -> None:
        identity = id_of(watch.id, test, now)
        row = {"id": identity, "path_id": watch.id, "test": test, "at": now, "outcome": json.dumps(outcome)}
        self.database.add("monitor_outcome", [row])
        self._changed.add(watch.spec.name)

    # Changes and alerts.

    def _found(self, watch: PathWatch, found: list[Found]) -> None:
        for quantity, change in found:
            if quantity == "silence":
                (self.schedule.silent.add if change["kind"] == "silent" else self.schedule.silent.discard)(
                    watch.spec.name
                )
            elif watch.spec.name in self.schedule.silent:
                # Silence says it all.
                continue
            alert = self.book.change(watch.spec.name, watch.id, quantity, change)
            if alert is None:
                continue
            if alert.ended is None:
                self._explain(watch)
                if watch.spec.transfers and quantity != "silence":
                    self._forecast(watch, alert.id)
            self.database.add("monitor_alert", [alert.row()])
            self._changed.add(watch.spec.name)
            self.say(f"{alert.text}{'' if alert.ended is None else ' (for the record, or over)'}")
        if found:
            self._save_book()
            self._flush()

    def _explain(self, watch: PathWatch) -> None:
        """Ask for the likely cause of all that is open of a path."""
        of_path = [alert for alert in self.book.open.values() if alert.path == watch.spec.name]
        moves = [
            {"quantity": alert.quantity, "before": alert.evidence["before"], "after": alert.evidence["after"]}
            for alert in of_path
            if alert.evidence.get("before") is not None and alert.evidence.get("after") is not None
        ]
        since = {alert.quantity: alert.since for alert in of_path}
        before, after = watch.delays(since.get("rtt_s") or max(since.values(), default=time.time()))
        rtt = next((one for one in moves if one["quantity"] == "rtt_s"), None)
        # Late packets of a busy host do not explain a path whose least RTT rose.
        is_hosts_change = rtt is None or not watch.is_path_longer(rtt["before"], rtt["after"])
        policer = self.outcomes.get((watch.spec.name, "policer"))
        hosts = [
            {"name": name, "late": share}
            for name, share in zip(("near", "far"), watch.late, strict=True)
            if share >= HOST_IS_LATE and is_hosts_change and all(one["quantity"] in OF_DELAY for one in moves)
        ]
        asked = {
            "changes": moves,
            "hosts": hosts,
            "rtt_before": before,
            "rtt_after": after,
            "policer": None if policer is None else bool(policer["estimates"]),
        }
        verdict = json.loads(native.likely_cause(json.dumps(asked)))
        for alert in of_path:
            alert.cause = "outage" if alert.kind == "silent" else verdict["cause"]
            alert.evidence["reasons"] = verdict["evidence"]
            if verdict.get("also"):
                alert.evidence["also"] = verdict["also"]
            self.database.add("monitor_alert", [alert.row()])

    def _forecast(self, watch: PathWatch, alert_id: int) -> None:
        """Have the path's transfers simulated as it was and as it is."""
        if self.children.has("forecast"):
            return
        before, after = {}, {}
        for quantity in ("rtt_s", "loss", "available_bps"):
            value = watch.latest.get(quantity)
            usual = watch.benchmark(quantity, time.time())
            if value is not None:
                after[quantity] = value
            if usual is not None:
                before[quantity] = usual[1]
            elif quantity in watch.spec.benchmark:
                before[quantity] = watch.spec.benchmark[quantity]
            alert = self.book.open.get((watch.spec.name, quantity))
            if alert is not None and alert.evidence.get("after") is not None:
                after[quantity] = alert.evidence["after"]
                if alert.evidence.get("before") is not None:
                    before[quantity] = alert.evidence["before"]
        if (watch.spec.name, "loss") not in self.book.open:
            # The newest minute has too few packets for a loss. One below an alert counts once it is significant.
            after["loss"] = max(before.get("loss", 0.0), watch.losses.value or 0.0)
        both = before.keys() & after.keys()
        for alert in self.book.open.values():
            if alert.path == watch.spec.name:
                alert.waits_for_forecast = True
        asked = {
            "transfers": list(watch.spec.transfers),
            "before": {name: before[name] for name in both},
            "after": {name: after[name] for name in both},
        }
        self.children.start("forecast", asked, lambda done: self._forecast_done(watch.spec.name, done))

    def _forecast_done(self, path: str, done: Done) -> None:
        told = [] if done.result is None else done.result["forecast"]
        for alert in self.book.open.values():
            if alert.path == path and alert.waits_for_forecast:
                alert.waits_for_forecast = False
                alert.forecast = told
                self.database.add("monitor_alert", [alert.row()])
                self._changed.add(path)
        if done.fault is not None:
            self.say(f"{path}: no forecast: {done.fault}")
        self._save_book()

    def _alerts_ended(self, alerts: list[Any]) -> None:
        self.database.add("monitor_alert", [alert.row() for alert in alerts])
        self._save_book()

    def _save_book(self) -> None:
        if not save(self._book_file, json.dumps(self.book.state())):
            self._make_space()
            save(self._book_file, json.dumps(self.book.state()))

    def _notify(self, now_s: float, now: float) -> None:
        due = self.book.due(now)
        not_before_s, wait_s = self._notify_s
        if not due or self.children.has("notify") or now_s < not_before_s:
            return
        asked = {"urls": list(self.spec.alerts.urls), "urls_file": self.spec.alerts.urls_file, "messages": due}
        self.book.handed_over(due)

        def told(done: Done) -> None:
            result = done.result or {}
            self.book.sent(result.get("sent", []), result.get("done", {}))
            self._save_book()
            fault = done.fault or result.get("failed")
            if fault:
                self.say(f"alerts were not sent, next attempt in {wait_s:.0f} s: {fault}")
                self._notify_s = (time.monotonic() + wait_s, min(2 * wait_s, NOTIFY_RETRY_S[1]))
            else:
                self._notify_s = (0.0, NOTIFY_RETRY_S[0])

        self.children.start("notify", asked, told)

    # Store.

    def _flush(self) -> None:
        if self._changed:
            known = [self.watches[name].spec for name in self._changed if name in self.watches]
            self.database.add("monitor_path", [self._path_row(path, "running") for path in known])
            self._changed.clear()
        if not self.database.flush() and self.database.is_full:
            self._make_space()
            self.database.flush()

    def _start_days(self) -> None:
        if self.children.has("days"):
            return
        asked = {
            "store": self.store,
            "monitor": self.spec.name,
            "raw_s": self.spec.raw_s,
            "minutes_s": self.spec.minutes_s,
            "hours_s": self.spec.hours_s,
            "free_bytes": self.spec.free_bytes,
        }

        def done(end: Done) -> None:
            fault = end.fault or (end.result or {}).get("failed")
            if fault:
                self.say(f"yesterday's samples stay in their journal: {fault}")

        self.children.start("days", asked, done)

    def _send(self) -> None:
        if self.children.has("send"):
            return
        self._sent_s = time.monotonic()

        def done(end: Done) -> None:
            if end.fault is not None:
                self.say(f"rows wait in {self.place.spool}: {end.fault}")

        self.children.start("send", {"store": self.store}, done)

    def _look_at_space(self, now_s: float) -> None:
        full = any(watch.journal.fault is not None for watch in self.watches.values()) or self.database.is_full
        if not full and now_s - self._space_s < 60:
            return
        self._space_s = now_s
        with suppress(OSError):
            if full or free_bytes(monitor_folder(self.place)) < self.spec.free_bytes:
                self._make_space()
        for watch in self.watches.values():
            if watch.journal.fault is not None:
                watch.journal.retry()

    def _make_space(self) -> None:
        gone = make_space(self.place, self.spec.free_bytes)
        if gone:
            self._full_said = False
            days = sorted({path.stem for path in gone})
            self.say(f"the disk is nearly full: raw samples of {days[0]} to {days[-1]} were removed, summaries remain")
        elif not self._full_said:
            self._full_said = True
            self.say(f"the disk is nearly full, and there are no older raw samples to remove: {self.place.location}")

    # Commands.

    def _asked(self, asked: dict[str, Any], reply: Reply) -> None:
        try:
            if asked.get("do") == "status":
                reply(self.status())
            elif asked.get("do") == "now":
                self._now(str(asked.get("path")), str(asked.get("test")), reply)
            else:
                reply({"fault": f"{asked.get('do')}: not a command of the monitor"})
        except ElephanError as error:
            reply({"fault": str(error)})

    def _now(self, name: str, test: str, reply: Reply) -> None:
        watch = self.watches.get(name)
        if watch is None:
            raise InputError(f'no path "{name}"; there is {", ".join(self.watches)}')
        period = next((one for one in watch.spec.tests if one.test == test), TestSpec(test, 60 * 10**9))
        job = self.schedule.ask(watch.spec, period, time.monotonic())
        self._replies[id(job)] = reply
        self._start_tests(time.monotonic())

    def _fault(self, path: PathSpec) -> str | None:
        return (None if path.host is None else self.reflectors.fault(path.host)) or self.sampler.fault(path.name)

    def status(self) -> dict[str, Any]:
        """Return what `elephan monitor status` shows."""
        now_s, now = time.monotonic(), time.time()
        paths = []
        full = [one.journal.fault for one in self.watches.values() if one.journal.fault is not None]
        for name, watch in self.watches.items():
            account = self.schedule.accounts.get(name)
            tests = [
                {"test": job.test.test, "running": id(job) in self.schedule.running, "waits": job.waits,
                 "next_s": max(0.0, job.release_s - now_s), "missed": job.missed, "cost_bytes": job.cost_bytes}
                for job in self.schedule.jobs
                if job.path.name == name
            ]  # fmt: skip
            age = None if watch.last_sample_s is None else max(0.0, now - watch.last_sample_s)
            alerts = [alert.text for alert in self.book.open.values() if alert.path == name]
            refused = [
                {"test": test, "age_s": max(0.0, now - at), "why": why}
                for (path, test), (at, why) in self.refusals.items()
                if path == name
            ]
            state = "paused" if watch.spec.paused else "silent" if name in self.schedule.silent else "good"
            paths.append(
                {"name": name, "towards": watch.spec.towards or watch.spec.host,
                 "state": "alert" if alerts and state == "good" else state, "latest": watch.latest, "sent": watch.sent,
                 "lost": watch.lost, "age_s": age, "fault": self._fault(watch.spec), "tests": tests, "alerts": alerts,
                 "refused": refused, "late": list(watch.late),
                 "budget_bytes": None if account is None else account.tokens}
            )  # fmt: skip
        return {
            "monitor": self.spec.name,
            "pid": os.getpid(),
            "store": self.place.location,
            "up_s": now - self.started_s,
            "paths": paths,
            "messages": len(self.book.messages),
            "waiting": self.database.fault or (str(full[0].strerror) if full else None),
        }

"""Open alerts, and messages that are due: each change once, its end once, quiet hours kept.

No I/O: time is an argument, Unix s. The state is data that a restart goes on from.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from elephan.monitor.explanations import alert_body, alert_text, recovery_text
from elephan.monitor.spec import AlertSpec
from elephan.store.sql import id_of

KINDS = ("step", "drift", "agreed_missed", "silent")
"""Kinds of changes that open an alert."""
ENDS = ("recovered", "new_benchmark", "answered")
"""Kinds that end one."""
GATHER_S = 5.0
"""Time in which changes of one path are gathered for one message, s: a route moves RTT, delays and TTL together."""
FORECAST_S = 120.0
"""Longest that a message waits for its forecast, s."""
MOST_MESSAGES = 1000
"""Messages that wait to be sent."""


@dataclass
class Alert:
    """An open alert."""

    id: int
    path_id: int
    path: str
    quantity: str
    kind: str
    since: float
    found: float
    text: str
    evidence: dict[str, Any]
    cause: str | None = None
    forecast: list[dict[str, Any]] = field(default_factory=list)
    ended: float | None = None
    waits_for_forecast: bool = False
    queued: float | None = None
    """Time of its newest message; None: there is none yet."""
    told: bool = False
    """True once its message was handed over to be sent."""

    def row(self) -> dict[str, Any]:
        """Return its row of `monitor_alert`."""
        import json

        names = ("id", "path_id", "quantity", "kind", "since", "found", "ended", "text", "cause")
        found: dict[str, Any] = {name: getattr(self, name) for name in names}
        return found | {"evidence": json.dumps(self.evidence), "forecast": json.dumps(self.forecast)}


class AlertBook:
    """Open alerts, and the messages that wait to be sent."""

    def __init__(self, spec: AlertSpec, state: Mapping[str, Any] | None = None) -> None:
        """Go on from what `state` gave."""
        self.spec = spec
        self.open: dict[tuple[str, str], Alert] = {}
        self.messages: list[dict[str, Any]] = []
        for raw in (state or {}).get("open", ()):
            alert = Alert(**raw)
            self.open[alert.path, alert.quantity] = alert
        self.messages = list((state or {}).get("messages", ()))

    def state(self) -> dict[str, Any]:
        """Return what to restart from."""
        return {"open": [vars(one) for one in self.open.values()], "messages": self.messages}

    @property
    def has_receivers(self) -> bool:
        """Return True if anyone is to be told."""
        return bool(self.spec.urls or self.spec.urls_file)

    def change(self, path: str, path_id: int, quantity: str, change: Mapping[str, Any]) -> Alert | None:
        """Take a change; return the alert to be stored, None where nothing is new."""
        kind = str(change["kind"])
        if kind in ENDS:
            return self._recovered(path, quantity, change)
        if kind not in KINDS:
            return None
        evidence = {name: change[name] for name in ("before", "after", "confidence", "samples") if name in change}
        found = self.open.get((path, quantity))
        if found is not None:
            if change["since_s"] <= found.since or change["found_s"] <= found.found:
                # Found again by a restart.
                return None
            if change.get("worse") is not True:
                # On its way back: the detector says when it is there.
                return None
            # It has changed further: one alert, whose level before is that of before the first change.
            found.evidence |= {name: value for name, value in evidence.items() if name != "before"}
            found.text = alert_text(path, quantity, found.kind, found.evidence)
            return found
        identity = id_of(path_id, quantity, kind, change["since_s"])
        text = alert_text(path, quantity, kind, evidence)
        alert = Alert(identity, path_id, path, quantity, kind, change["since_s"], change["found_s"], text, evidence)
        if change.get("worse") is not True:
            # For the record: nobody has to act on what got better, or is neither.
            alert.ended = alert.found
            return alert
        self.open[path, quantity] = alert
        return alert

    def _recovered(self, path: str, quantity: str, change: Mapping[str, Any]) -> Alert | None:
        alert = self.open.pop((path, quantity), None)
        if alert is None:
            return None
        alert.ended = float(change["found_s"])
        # Nobody needs the end of what nobody has heard of. What the message said besides is still to be told.
        gone = [one for one in self.messages if one["alert"] == alert.id]
        self.messages = [one for one in self.messages if one["alert"] != alert.id]
        others = {other for one in gone if not one["done"] for other in one.get("with", ())}
        for one in self.open.values():
            if one.id in others:
                one.queued = None
        if alert.told:
            title = recovery_text(
                path, quantity, alert.kind, change.get("after"), alert.ended - alert.since, str(change["kind"])
            )
            self._queue(alert, "recovered", title, title, alert.ended)
        return alert

    def drop(self, path: str, now_s: float) -> list[Alert]:
        """End the alerts of a path that is watched no more, without a message."""
        gone = [alert for alert in self.open.values() if alert.path == path]
        for alert in gone:
            alert.ended = now_s
            del self.open[alert.path, alert.quantity]
        return gone

    def tick(self, now_s: float) -> bool:
        """Make the messages that are due; return True if anything has changed."""
        if not self.has_receivers:
            return False
        before = len(self.messages), [alert.queued for alert in self.open.values()]
        for path in sorted({alert.path for alert in self.open.values()}):
            fresh = [alert for alert in self.open.values() if alert.path == path and alert.queued is None]
            if fresh and _is_past(min(alert.found for alert in fresh), GATHER_S, now_s):
                waits = any(alert.waits_for_forecast for alert in fresh)
                if not waits or _is_past(min(alert.found for alert in fresh), FORECAST_S, now_s):
                    self._tell(path, fresh, now_s)
            if self.spec.repeat_s is not None:
                for alert in self.open.values():
                    if alert.path == path and alert.queued is not None and now_s >= alert.queued + self.spec.repeat_s:
                        alert.queued = now_s
                        if any(one["alert"] == alert.id for one in self.messages):
                            # It waits for a receiver or for the end of quiet hours: one is enough.
                            continue
                        self._queue(alert, "alert", f"still: {alert.text}", alert_body(vars(alert)), now_s)
        return before != (len(self.messages), [alert.queued for alert in self.open.values()])

    def _tell(self, path: str, fresh: list[Alert], now_s: float) -> None:
        """Make one message of the changes that a path had together."""
        main = min(fresh, key=lambda alert: (_RANK.get(alert.quantity, 9), alert.found))
        others = {alert.quantity: alert.evidence for alert in fresh if alert is not main}
        shown = vars(main) | {"evidence": main.evidence | ({"with": others} if others else {})}
        for alert in fresh:
            alert.queued = now_s
        self._queue(main, "alert", main.text, alert_body(shown), now_s, [one.id for one in fresh if one is not main])

    def _queue(self, alert: Alert, kind: str, title: str, body: str, now_s: float, others: Sequence[int] = ()) -> None:
        self.messages.append(
            {"id": f"{alert.id}-{kind}-{int(now_s)}", "alert": alert.id, "kind": alert.kind, "type": kind,
             "title": title, "body": body, "at": now_s, "done": [], "with": list(others)}
        )  # fmt: skip
        del self.messages[:-MOST_MESSAGES]

    def due(self, now_s: float) -> list[dict[str, Any]]:
        """Return the messages to be sent now: in quiet hours those of urgent kinds."""
        if not is_quiet(self.spec, now_s):
            return list(self.messages)
        return [one for one in self.messages if one["kind"] in self.spec.urgent]

    def handed_over(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Note that messages are being sent: their alerts' ends are told too."""
        ids = {one["alert"] for one in messages}
        for alert in self.open.values():
            alert.told = alert.told or alert.id in ids

    def sent(self, ids: list[str], done: Mapping[str, list[int]]) -> None:
        """Take messages off that were sent; of the others, note which receivers have them."""
        self.messages = [one for one in self.messages if one["id"] not in ids]
        for one in self.messages:
            one["done"] = done.get(one["id"], one["done"])


_RANK = {"silence": 0, "loss": 1, "rtt_s": 2, "available_bps": 3, "throughput_bps": 4, "capacity_bps": 5}
"""Order in which quantities that changed together name their message."""


def _is_past(since_s: float, span_s: float, now_s: float) -> bool:
    """Return True once a span is over; also where the clock was set back further than it could be."""
    return not since_s - span_s <= now_s < since_s + span_s


def is_quiet(spec: AlertSpec, now_s: float) -> bool:
    """Return True in quiet hours of this machine's local time."""
    local = time.localtime(now_s)
    minute = local.tm_hour * 60 + local.tm_min
    for begin, end in spec.quiet:
        inside = begin <= minute < end if begin < end else minute >= begin or minute < end
        if inside:
            return True
    return False

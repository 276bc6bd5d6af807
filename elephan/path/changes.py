"""Changes of a path while it runs: from keys of its scenario to links and background sources, and the present values.

The scenario is expanded again with the new values, as if they had been there from the beginning. What differs is the
change. Queues keep their size: a limit in bdp does not follow the rate of a router that is already built.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from elephan.errors import InputError
from elephan.run_spec.types import ActionSpec, RunSpec
from elephan.units import exact_size

LINK_KEYS = {
    "bandwidth": "rate_bps",
    "rtt": "delay_ns",
    "delay": "delay_ns",
    "loss": "loss",
    "policer": "policer",
    "mtu": "mtu_bytes",
}
"""Keys of `[path]` and `[[link]]` that a live path follows, and what each is of a link of the specification."""
ONE_WAY = ("loss", "policer")
"""Of these keys the way back has its own."""
BACKGROUND_KEYS = {"rate": "rate_bps", "enabled": "enabled"}
"""Keys of `[[background]]`, likewise."""
STATE_KEYS = {"link_down": "links", "link_up": "links", "background_on": "background", "background_off": "background"}
"""Keys of `[[event]]` that are no value: what they name in the specification."""
KNOWN = "bandwidth, rtt, delay, loss, policer and mtu of path or link, rate and enabled of background, " + ", ".join(
    STATE_KEYS
)

Change = dict[str, list[Any]]
"""As crates/kernel/src/emulator/change.rs has it."""


def split(settings: Sequence[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the settings that are keys of the scenario, and those of STATE_KEYS with what each names.

    Raises `InputError` for a key that no live path follows.
    """
    values, states = [], []
    for setting in settings:
        key, equals, text = (part.strip() for part in setting.partition("="))
        if not key or not equals:
            raise InputError(f'"{setting}" is not of the form key=value')
        if key in STATE_KEYS:
            if not text:
                raise InputError(f"{setting}: a name, such as {key}=path")
            states.append((key, text.strip("\"'")))
            continue
        _keys_of(setting)
        values.append(f"{key}={text}")
    return values, states


def _keys_of(setting: str) -> tuple[str, str, str]:
    """Return table, entry ("" for all) and key of a setting. Raises `InputError` for one that no live path follows."""
    key = setting.partition("=")[0].strip()
    table, *parts = key.split(".")
    known = {"path": LINK_KEYS, "link": LINK_KEYS, "background": BACKGROUND_KEYS}.get(table, {})
    named = [part for part in parts if part in known]
    # The entry's name, then reverse, the key, and what is inside of it: path.reverse.policer.rate.
    at = parts.index(named[0]) if named else 0
    before = [part for part in parts[:at] if part != "reverse"]
    if not named or len(before) > (table != "path"):
        raise InputError(f"{setting}: a path that runs does not follow this key; it follows {KNOWN}")
    return table, before[0] if before and before[0] != "*" else "", named[0]


class Present:
    """The present path: its specification as the scenario has it with all settings, and as events have changed it."""

    def __init__(self, spec: RunSpec) -> None:
        """Begin as the specification says."""
        self.spec = copy.deepcopy(spec)
        """Links and background sources are as they are now."""
        self.down: set[int] = set()
        """Links that are down."""
        self._settings = copy.deepcopy(spec)
        """As the scenario has it: an event changes nothing here."""
        self._events: set[int] = set()

    def follow_events(self, times_s: Sequence[float | None]) -> None:
        """Take note of the events that have happened by now, from the time of each of the specification."""
        happened = {number: at_s for number, at_s in enumerate(times_s) if at_s is not None}
        for number in sorted(happened.keys() - self._events, key=lambda number: (happened[number], number)):
            self._events.add(number)
            self._act(self.spec["events"][number]["action"])

    def change_to(self, wanted: RunSpec, settings: Sequence[str], states: Sequence[tuple[str, str]]) -> Change:
        """Return the change that `settings`, by which the scenario is `wanted`, and `states` make of the present path.

        Raises `InputError` for what cannot change while packets are inside.
        """
        _require_same(self._settings, wanted)
        change: Change = {"actions": [], "policers": [], "mtus": [], "background_rates": []}
        for number, (link, before, now) in enumerate(
            zip(wanted["links"], self._settings["links"], self.spec["links"], strict=True)
        ):
            for part in dict.fromkeys(LINK_KEYS.values()):
                value = _part(wanted, link, part)
                is_set = any(_sets(setting, link["name"], part) for setting in settings)
                if value != _part(self._settings, before, part) or (is_set and value != _part(self.spec, now, part)):
                    _add(change, number, part, value)
        for number, (source, earlier, present) in enumerate(
            zip(wanted["background"], self._settings["background"], self.spec["background"], strict=True)
        ):
            keys = {key for setting in settings for table, _, key in [_keys_of(setting)] if table == "background"}
            rate_bps, is_on = source["rate_bps"], source["enabled"]
            if rate_bps != earlier["rate_bps"] or ("rate" in keys and rate_bps != present["rate_bps"]):
                change["background_rates"].append({"source": number, "rate_bps": rate_bps})
            if is_on != earlier["enabled"] or ("enabled" in keys and is_on != present["enabled"]):
                kind = "background_on" if is_on else "background_off"
                change["actions"].append({"kind": kind, "source": number})
        for key, name in states:
            change["actions"] += self._state_actions(key, name)
        return change

    def _state_actions(self, key: str, name: str) -> list[dict[str, Any]]:
        if STATE_KEYS[key] == "links":
            links = [link["name"] for link in self.spec["links"]]
            found = [number for number, link in enumerate(links) if name in (link, link.rpartition(".")[0])]
            known = list(dict.fromkeys(other for link in links for other in (link.rpartition(".")[0], link)))
            field = "link"
        else:
            known = [source["name"] for source in self.spec["background"]]
            found = [known.index(name)] if name in known else []
            field = "source"
        if not found:
            raise InputError(f"{key}={name}: there is none of this name; there is {', '.join(known) or 'none'}")
        return [{"kind": key, field: number} for number in found]

    def take(self, wanted: RunSpec, change: Change) -> None:
        """Take note of a change that was made."""
        for action in change["actions"]:
            self._act(action)
        for policer in change["policers"]:
            _put(self.spec["links"][policer["link"]], "policer", policer["policer"])
        # No event changes these. The hosts' devices follow the flow's.
        for link, now in zip(wanted["links"], self.spec["links"], strict=True):
            _put(now, "mtu_bytes", link.get("mtu_bytes"))
        self.spec["flows"] = copy.deepcopy(wanted["flows"])
        for rate in change["background_rates"]:
            self.spec["background"][rate["source"]]["rate_bps"] = rate["rate_bps"]
        self._settings = copy.deepcopy(wanted)

    def _act(self, action: ActionSpec | dict[str, Any]) -> None:
        match dict(action):
            case {"kind": "rate", "link": link, "rate_bps": rate_bps}:
                self.spec["links"][link]["rate_bps"] = rate_bps
            case {"kind": "delay", "link": link, "delay_ns": delay_ns}:
                self.spec["links"][link]["delay_ns"] = delay_ns
            case {"kind": "loss", "link": link, "loss": loss}:
                self.spec["links"][link]["loss"] = loss
            case {"kind": "link_down", "link": link}:
                self.down.add(link)
            case {"kind": "link_up", "link": link}:
                self.down.discard(link)
            case {"kind": "background_on" | "background_off" as kind, "source": source}:
                self.spec["background"][source]["enabled"] = kind == "background_on"

    def lines(self) -> list[str]:
        """The present values, a line for each link and background source."""
        links = [
            _link(link, _part(self.spec, link, "mtu_bytes"), number in self.down)
            for number, link in enumerate(self.spec["links"])
        ]
        return links + [_source(source) for source in self.spec["background"]]


def _part(spec: RunSpec, link: Mapping[str, Any], part: str) -> Any:
    """Return a part of a link; where all links have one MTU, the flow has it."""
    otherwise = spec["flows"][0]["transport"]["mtu_bytes"] if part == "mtu_bytes" else None
    return link.get(part, otherwise)


def _sets(setting: str, link: str, part: str) -> bool:
    """Return True if a setting names this part of this link."""
    table, entry, key = _keys_of(setting)
    name, _, direction = link.rpartition(".")
    if LINK_KEYS.get(key) != part or (table == "path" and name != "path") or entry not in ("", name):
        return False
    is_back = ".reverse." in setting.partition("=")[0]
    return direction == "reverse" if is_back else direction == "forward" or key not in ONE_WAY


def _add(change: Change, number: int, part: str, value: Any) -> None:
    match part:
        case "policer":
            change["policers"].append({"link": number, "policer": value})
        case "mtu_bytes":
            change["mtus"].append({"link": number, "mtu_bytes": value})
        case "loss":
            change["actions"].append({"kind": "loss", "link": number, "loss": value})
        case _:
            change["actions"].append({"kind": part.partition("_")[0], "link": number, part: value})


def _put(link: Any, part: str, value: Any) -> None:
    if value is None:
        link.pop(part, None)
    else:
        link[part] = value


def _require_same(before: RunSpec, wanted: RunSpec) -> None:
    """Raise `InputError` when a part differs that is built into a path."""
    for what in ("nodes", "emulator"):
        if before.get(what) != wanted.get(what):
            raise InputError(f"{what}: a path that runs keeps them")
    links = {*LINK_KEYS.values(), "queue"}
    _require_same_entries("link", before["links"], wanted["links"], links)
    _require_same_entries("background", before["background"], wanted["background"], {*BACKGROUND_KEYS.values()})


def _require_same_entries(
    kind: str, before: Sequence[Mapping[str, Any]], wanted: Sequence[Mapping[str, Any]], follows: set[str]
) -> None:
    for old, new in zip(before, wanted, strict=True):
        parts = sorted(part for part in (old.keys() | new.keys()) - follows if old.get(part) != new.get(part))
        if parts:
            raise InputError(f"{kind} {old['name']}: a path that runs keeps its {', '.join(parts)}")


def _link(link: Mapping[str, Any], mtu_bytes: int, is_down: bool) -> str:
    policer = link.get("policer")
    parts = [
        _scaled(link["rate_bps"], "bit/s"),
        _time(link["delay_ns"]),
        f"loss {_loss(link['loss'])}",
        *([f"policer {_scaled(policer['rate_bps'], 'bit/s')} {exact_size(policer['burst_bytes'])}"] if policer else []),
        f"MTU {exact_size(mtu_bytes)}",
        *(["down"] if is_down else []),
    ]
    return f"{link['name']}: {', '.join(parts)}"


def _source(source: Mapping[str, Any]) -> str:
    state = "on" if source["enabled"] else "off"
    return f"background {source['name']}: {_scaled(source['rate_bps'], 'bit/s')}, {state}"


def _loss(loss: Mapping[str, Any]) -> str:
    match loss["kind"]:
        case "none":
            return "0"
        case "independent":
            return f"{loss['probability_e12'] / 1e12:g}"
        case kind:
            return str(kind).replace("_", " ")


def _scaled(value: int, unit: str) -> str:
    """Return all digits of a value, with the largest prefix that leaves at least 1."""
    factor, prefix = next((pair for pair in ((10**9, "G"), (10**6, "M"), (10**3, "k")) if value >= pair[0]), (1, ""))
    return f"{value / factor:.12g} {prefix}{unit}"


def _time(ns: int) -> str:
    return f"{ns / 1e6:.12g} ms"

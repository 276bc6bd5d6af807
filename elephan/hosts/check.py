"""Properties of a host, and rights of a run there, as lines for people and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elephan import units
from elephan.hosts.agent import Agent
from elephan.hosts.boot import INSTALLED
from elephan.hosts.facts import Facts, look

LEAST_BPF = (6, 10)
"""First Linux whose BPF programs may be a congestion control's cong_control, as bbr's is."""


def facts_of(agent: Agent, towards: str | None = None) -> Facts:
    """Return everything about a host. Raises `RunError` and `InputError`."""
    return look(agent, towards)


def as_json(facts: Facts) -> dict[str, Any]:
    """Return the agent's answer, with name, address and clock as seen from here."""
    return {
        "name": facts.name,
        "address": facts.address,
        "clock_offset_s": facts.clock_offset_s,
        "clock_offset_error_s": facts.clock_error_s,
        **facts.told,
    }


def as_lines(facts: Facts) -> list[str]:
    """Return a line for each property, and one for each right that is missing, with the administrator's command."""
    told = facts.told
    rows = [
        ("agent", f"{told['version']}, {told['machine']}"),
        ("kernel", f"Linux {told.get('kernel', '?')}" + (", BTF" if told.get("btf") else ", no BTF")),
        ("processor", _processor(told)),
        ("memory", _memory(told)),
        ("disk", _disk(told)),
        ("address", facts.address),
        *_ways(told),
        ("buffers", _limits(told)),
        ("controls", ", ".join(told["congestion_controls"]["available"])),
        ("clock", _clock(facts)),
        ("rights", _rights(facts)),
        *_more(facts),
    ]
    return [f"{name:<10} {text}" for name, text in rows if text]


def _processor(told: Mapping[str, Any]) -> str:
    load = told.get("load")
    busy = f", load {load[0]:g}" if load else ""
    return f"{units.pluralize(told['cores'], 'core')}{busy}" if "cores" in told else ""


def _memory(told: Mapping[str, Any]) -> str:
    if "memory_bytes" not in told:
        return ""
    free = told.get("memory_available_bytes")
    return units.size(told["memory_bytes"]) + (f", {units.size(free)} free" if free is not None else "")


def _disk(told: Mapping[str, Any]) -> str:
    disk = told.get("disk", {})
    return f"{units.size(disk['free_bytes'])} free" if "free_bytes" in disk else str(disk.get("error", ""))


def _ways(told: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows = []
    for way in told.get("routes", ()):
        if "error" in way:
            rows.append(("route", f"to {way['towards']}: {way['error']}"))
            continue
        parts = [way.get("interface", "?")]
        if "rate_bps" in way:
            parts.append(units.rate(way["rate_bps"]))
        mtu = way.get("route_mtu", way.get("mtu_bytes"))
        if mtu is not None:
            parts.append(f"MTU {mtu} B")
        on = [name for name, state in way.get("offloads", {}).items() if state]
        parts.append(f"offloads {', '.join(on) or 'none'}")
        rows.append(("route", f"to {way['towards']} by {', '.join(parts)}"))
    return rows


def _limits(told: Mapping[str, Any]) -> str:
    limits = told.get("limits", {})
    parts = [f"{name} {units.exact_size(limits[name][2])}" for name in ("tcp_rmem", "tcp_wmem") if limits.get(name)]
    parts += [f"{name} {units.exact_size(limits[name])}" for name in ("rmem_max", "wmem_max") if limits.get(name)]
    return ", ".join(parts)


def _clock(facts: Facts) -> str:
    way = "ahead of" if facts.clock_offset_s >= 0 else "behind"
    text = (
        f"{units.duration(abs(facts.clock_offset_s))} {way} this machine's, within "
        f"{units.duration(facts.clock_error_s)}"
    )
    kept = facts.told.get("clock", {}).get("synchronised")
    return text if kept is None else f"{text}; {'synchronised' if kept else 'not synchronised'}"


def _rights(facts: Facts) -> str:
    """Return what a run may do, and how it may do more."""
    if facts.why_no_bpf is None and facts.may_set:
        newer = "" if facts.release >= LEAST_BPF else f"; bbr only from Linux {LEAST_BPF[0]}.{LEAST_BPF[1]} on"
        return f"any congestion control, any buffer, sysctls for a run{newer}"
    if facts.may_set:
        return f"any buffer, sysctls for a run; of congestion controls those of its kernel: {facts.why_no_bpf}"
    return f"of congestion controls {', '.join(sorted(facts.controls)) or 'none'}; buffers as above"


def _more(facts: Facts) -> list[tuple[str, str]]:
    """Return the commands by which an administrator lets runs do more."""
    if facts.may_set:
        return []
    return [
        ("for all", "log in as root, or as a user whom sudo asks no password for any command"),
        ("or", f"elephan hosts install NAME by such a login, and in sudoers: USER ALL=(root) NOPASSWD: {INSTALLED}"),
        ("or", "sudo elephan kernel load NAME, there, for a congestion control"),
        ("and", "sudo sysctl -w net.ipv4.tcp_rmem='4096 131072 BYTES' net.ipv4.tcp_wmem='4096 16384 BYTES'"),
    ]

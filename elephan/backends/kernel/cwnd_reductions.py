"""Commands to senders to reduce their windows: the maps for them, and the answers.

congestion/bpf/cwnd_reduction.h is the sender's side. The maps belong to the loaded controls and go with them.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from elephan.backends.kernel.plan import FIRST_PORT, Layout
from elephan.errors import RunError
from elephan.kernel import maps
from elephan.run_spec.types import RunSpec

if TYPE_CHECKING:
    from elephan._native import BpfMap

ENDS = struct.Struct("=4s4s2s2sI")
"""struct cc_ends: source, destination, port of the destination, own port, number of the order."""

ANSWER = struct.Struct("=Q6I")
"""struct cc_answer: time (CLOCK_MONOTONIC, ns), what, window, kept, smoothed RTT (us), window and threshold before."""

REDUCED, RESTORED = 1, 2
"""Kinds of an entry; the others are in WHY_NOT."""

WHY_NOT = {
    3: "its sender had no ACK that may raise the window within a round trip: it repaired losses, or sent nothing",
    4: "its sender repaired losses",
}


@dataclass(frozen=True)
class Listening:
    """The maps of the controls that listen, by the control's number."""

    commands: Mapping[int, BpfMap]
    answers: Mapping[int, BpfMap]


@contextmanager
def listening(layout: Layout, names: Sequence[str]) -> Iterator[Listening]:
    """Open the maps of the controls `names` that listen. Raises `RunError` when one is not there."""
    wanted = {number: names[number] for number in sorted(layout.listening)}
    if not wanted:
        yield Listening({}, {})
        return
    with maps.hashes(wanted.values()) as found:
        lacking = [name for name, there in found.items() if not {"cc_commands", "cc_answers"} <= there.keys()]
        if lacking:
            raise RunError(f"the kernel does not show the maps of {', '.join(lacking)}: no command reaches its senders")
        yield Listening(
            {number: found[name]["cc_commands"] for number, name in wanted.items()},
            {number: found[name]["cc_answers"] for number, name in wanted.items()},
        )


def collect_answers(
    spec: RunSpec, layout: Layout, given: Sequence[Mapping[str, Any]], maps_of: Listening
) -> list[dict[str, Any]]:
    """Return the answer to each command, in the form of the record's `cwnd_reductions`."""
    answers = {
        number: {ENDS.unpack(key): ANSWER.unpack(value) for key, value in answered.entries().items()}
        for number, answered in maps_of.answers.items()
    }
    rows: list[dict[str, Any]] = []
    events = len(spec["events"])
    for command in given:
        flow, number = command["flow"], command["number"]
        ends = tuple(socket.inet_aton(layout.hosts[end].address) for end in layout.ends[flow])
        # A program's hosts are its own: every connection between them is the flow's.
        port = None if "program" in spec["flows"][flow]["workload"] else struct.pack("!H", FIRST_PORT + flow)
        heard = [
            answer
            for (source, destination, there, _, of), answer in answers.get(layout.control_of[flow], {}).items()
            if (source, destination) == ends and of == number and port in (None, there)
        ]
        if number % 2 == 0:
            _restored(rows, events, spec["flows"][flow]["name"], command, heard)
            continue
        event: int = command["event"]
        row = {
            # Moves by the manager are counted on from the events.
            **({"event": event} if event < events else {"entry": event - events}),
            "flow": spec["flows"][flow]["name"],
            "at_s": command["due_s"],
            "told_after_s": (command["given_monotonic_ns"] - command["due_monotonic_ns"]) / 1e9,
        }
        rows += [row | _reduced(answer, command["due_monotonic_ns"]) for answer in heard]
        if not heard:
            why = command["refused"] or "its sender has had no ACK since that may raise the window"
            rows.append(row | {"why_not": why})
    return rows


def _reduced(answer: tuple[int, ...], due_ns: int) -> dict[str, Any]:
    at_ns, what, window, kept, srtt_us, _, _ = answer
    done = {"done_after_s": (at_ns - due_ns) / 1e9, "srtt_s": srtt_us / 1e6}
    if what != REDUCED:
        return done | {"why_not": WHY_NOT.get(what, f"answer {what}")}
    return done | {"window_segments": window, "kept_segments": kept}


def _restored(
    rows: list[dict[str, Any]], events: int, flow: str, command: Mapping[str, Any], heard: Sequence[tuple[int, ...]]
) -> None:
    """Note in the rows of the same event and flow when the window was given back."""
    done = [answer[0] for answer in heard if answer[1] == RESTORED]
    for row in rows:
        event = row["event"] if "event" in row else events + row["entry"]
        if done and (event, row["flow"]) == (command["event"], flow) and "kept_segments" in row:
            row["restored_s"] = command["due_s"] + (done[0] - command["due_monotonic_ns"]) / 1e9

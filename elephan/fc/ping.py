"""Round trips to another port."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from elephan.core import native
from elephan.fc.end import Destination, End, WaitForTermination, as_run_error, found, opened


@dataclass(frozen=True)
class Answer:
    """The answer to a ping."""

    rtt_ns: int
    """Time to it, ns."""
    is_reject: bool
    """The port rejected the link service: it is there all the same."""


@dataclass(frozen=True)
class Pinged:
    """All pings to a port."""

    id: str
    port: str
    """Name that it gave at the login."""
    service: str
    """"ECHO" or "ADISC"."""
    answers: tuple[Answer | None, ...]
    """In order; None: no answer."""

    def rtts_ns(self) -> list[int]:
        """Return the times to the answers, ns."""
        return [answer.rtt_ns for answer in self.answers if answer is not None]


def ping(
    end: End,
    to: str,
    *,
    count: int,
    interval_ns: int,
    echo_bytes: int | None,
    wait_for_termination: WaitForTermination,
    say: Callable[[str], None],
    on_answer: Callable[[int, Answer | None], None],
) -> Pinged:
    """Log in to a port, and send it `count` ECHOs of so many bytes, or ADISC (None); `on_answer` takes each answer.

    Ends early after a signal. Raises `InputError`, `RunError`, and `native.Stopped` before the first ping.
    """
    destination = Destination.of(to)
    with opened(end, wait_for_termination, say) as port:
        address, name = found(port, destination, end)
        answers: list[Answer | None] = []
        try:
            for number in range(count):
                with as_run_error():
                    if number:
                        port.serve(interval_ns)
                    got = port.ping(address, echo_bytes)
                answer = None if got is None else Answer(*got)
                answers.append(answer)
                on_answer(number, answer)
        except native.Stopped:
            if not answers:
                raise
        return Pinged(f"{address:06x}", name, "ADISC" if echo_bytes is None else "ECHO", tuple(answers))

"""The ranked table: its columns and their meanings, for a terminal and for the page alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from elephan import units
from elephan.compare.explanations import FAIR_FROM, MUCH_DROPPED
from elephan.compare.other_traffic import columns_of
from elephan.compare.rank import HARM_TIE, KEYS, TIE, Row
from elephan.compare.run_metrics import Measured, number_of
from elephan.compare.running import NEIGHBOUR_CC, Comparison
from elephan.report.chance import few_by_chance, few_losses
from elephan.report.limits import limits
from elephan.report.metrics import BACKGROUND
from elephan.report.notes import grouped_notes
from elephan.report.other_traffic import of_source
from elephan.report.statistics import Estimate

DIGITS = 5e-4
"""Part of a mean below which its interval changes none of the three digits that are shown."""


@dataclass(frozen=True)
class Column:
    """A column of the table."""

    title: str
    text: str
    """Meaning of the number."""
    show: Callable[[Row], str]
    spread: Callable[[Row], str] = lambda row: ""
    """Half of its 95 % interval; "" where there is none."""


def columns(done: Comparison) -> list[Column]:
    """Return the columns; the key of the rank stands in front if it is not among the others."""
    found = [
        Column("rank", "", lambda row: str(row.rank)),
        Column("congestion control", "", lambda row: row.cc),
    ]
    if done.by in ("lag", "latency", "completion"):
        key = KEYS[done.by]
        found.append(_column(key.title, "The measure of the rank.", key.show, key.estimate))
    return [
        *found,
        _column(
            "goodput",
            "Payload handed to the receiving application in order, per second.",
            units.rate,
            _mean("goodput_bps"),
        ),
        _column(
            "share of line",
            "Goodput as a part of the line's rate; headers take the rest of a full line.",
            units.share,
            _mean("line_share"),
        ),
        _column(
            "drops caused",
            "Packets that queues and policers dropped: the loss that the congestion control itself causes. The line's "
            "own losses do not count.",
            units.count,
            _mean("caused_drops"),
        ),
        _column(
            "retransmitted",
            "Segments sent again, needed or not.",
            units.count,
            _mean("retransmitted_segments"),
        ),
        _column("RTT mean", "Mean of the round-trip times.", units.duration, _mean("rtt_mean_s")),
        _of_row(
            "queue",
            "Mean round-trip time above the least that any of the congestion controls saw.",
            units.duration,
            lambda row: row.queue_s,
        ),
        _column(
            "neighbour keeps",
            "Goodput of a reno flow beside this congestion control, as a part of what it gets beside reno.",
            units.share,
            lambda item: item.neighbour_kept,
        ),
        *_of_other_traffic(done),
    ]


DECIDING = ("rank", "congestion control", "goodput", "drops caused", "queue", "neighbour keeps")
"""Columns that a page shows at first: what is gained, and its cost to the path and to others."""


def deciding(done: Comparison, heads: Sequence[Column]) -> list[Column]:
    """Return six of the columns: those that decide, with the key of the rank in the place of the drops."""
    key = KEYS[done.by].title
    titles = [key if title == "drops caused" else title for title in DECIDING]
    if key not in {head.title for head in heads} or key in DECIDING:
        titles = list(DECIDING)
    return [head for head in heads if head.title in titles]


def _of_other_traffic(done: Comparison) -> list[Column]:
    """Return the columns of the scenario's background traffic."""

    def column(source: str, name: str) -> Column:
        metric = BACKGROUND[name]
        return _of_row(
            f"{source}: {metric.title}",
            metric.text,
            metric.show,
            lambda row: of_source(done.records_of(row), source, name),
        )

    return [column(*found) for found in columns_of(done.records_of(done.rows[0])[0], done.harm)]


def _mean(name: str) -> Callable[[Measured], Estimate | None]:
    number = number_of(name)
    return lambda item: item.estimate(number)


def _column(
    title: str, text: str, show: Callable[[float | None], str], of: Callable[[Measured], Estimate | None]
) -> Column:
    return _of_row(title, text, show, lambda row: of(row.numbers))


def _of_row(title: str, text: str, show: Callable[[float | None], str], of: Callable[[Row], Estimate | None]) -> Column:
    def mean(row: Row) -> str:
        found = of(row)
        return show(None if found is None else found.mean)

    def spread(row: Row) -> str:
        found = of(row)
        if found is None or found.half_width is None or not shows(row):
            return ""
        return "0" if found.half_width < DIGITS * abs(found.mean) else show(found.half_width)

    return Column(title, text, mean, spread)


def shows(row: Row) -> bool:
    """Return True if a row's numbers have intervals that are worth showing."""
    return len(row.numbers.runs) > 1 and not row.numbers.exact


def caption(done: Comparison) -> str:
    """Return the caption: the key of the rank, and the meaning of the numbers."""
    key = KEYS[done.by]
    order = "highest" if key.higher else "lowest"
    equal = f"within {TIE * 100:g} % equal"
    mean = ""
    if done.plan.exact:
        mean = " Nothing is random here: every seed gives these numbers."
    elif done.plan.repetitions > 1:
        mean = (
            f" Means ± 95 % confidence intervals (Student's t) over {done.plan.repetitions} repetitions, "
            "whose seeds draw the same losses for all."
        )
        equal = (
            "equal within 1 %, and where the paired t-test over the seeds, with Holm's correction for all pairs, finds "
            "no difference at 5 %"
        )
    harm = ""
    if done.harm is not None:
        harm = f"; last those under which {done.harm.source} loses more than {units.share(done.harm.share)}"
    if any(row.grows for row in done.rows):
        harm += f"{' and' if harm else '; last'} those under which a backlog grows"
    first = ""
    if any(row.yields for row in done.rows):
        equal += (
            f"; within {HARM_TIE * 100:g} % equal where the better one has {MUCH_DROPPED * 100:g} % or more of its "
            f"packets dropped by queues and policers, or leaves the neighbour less than {FAIR_FROM * 100:g} % of its "
            "share, and the other does not"
        )
        first = "those that do neither first, "
    return (
        f"Ranked by {key.title}, {order} first{harm}; {equal}; then {first}by fewer drops caused, then by "
        f"the shorter RTT.{mean} The neighbour is one {NEIGHBOUR_CC} flow on the same route, in a second run."
    )


def notes(done: Comparison) -> list[str]:
    """Return notes on the certainty of the ranks."""
    found = []
    plan, each = done.plan, done.plan.repetitions
    if each == 1 and not plan.exact:
        found.append("one repetition each: no difference is significant, so that all have the same rank")
    if each < plan.wanted:
        of = f"{units.pluralize(each, 'repetition')} of {plan.wanted}"
        found.append(f"{of}, as the budget allows: --budget 1h, or --set run.repetitions=N")
    chance = [(row.cc, few_losses(done.records_of(row)) or few_by_chance(done.records_of(row))) for row in done.rows]
    noted = [(name, note) for name, note in chance if note is not None]
    own = [(row.cc, note) for row in done.rows for record in done.records_of(row) for note in limits(record)]
    for note in dict.fromkeys(note for _, note in own):
        names = dict.fromkeys(name for name, text in own if text == note)
        found += grouped_notes([("", note)] if len(names) == len(done.rows) else [(name, note) for name in names])
    everywhere = len(noted) == len(done.rows) and len({note for _, note in noted}) == 1
    found += grouped_notes(("" if everywhere else name, note) for name, note in noted)
    return found


def winners(done: Comparison) -> list[Row]:
    """Return the rows of the first rank that do not yield; none if all are equal, nothing arrived, or a backlog grows.

    Of one congestion control alone the only row.
    """
    first = [row for row in done.rows if row.rank == 1]
    first = [row for row in first if not row.yields] or first
    arrived = [row for row in first if row.numbers.mean(lambda run: run.goodput_bps)]
    return [] if len(first) == len(done.rows) > 1 else [row for row in arrived if not row.grows]


def heading_in_use(done: Comparison) -> str:
    """Return what stands above the commands that put the winner into use, or why there are none."""
    first = winners(done)
    if not first and any(row.grows for row in done.rows if row.rank == 1):
        return "None is proposed: a backlog grows under every congestion control of the first rank."
    if not first:
        certain = f"by more than {TIE * 100:g} %" if done.plan.exact else "for certain"
        return f"None is proposed: no congestion control is better than the others {certain}."
    equal = f"within {TIE * 100:g} %" if done.plan.exact else "without a significant difference"
    among = f", one of {len(first)} {equal}" if len(first) > 1 else ""
    return f"{first[0].cc} in use{among}, as root at both ends"


def in_use(done: Comparison, row: Row) -> list[str]:
    """Return the commands and sysctls that put a row's congestion control into use on both ends of the path."""
    from elephan.kernel.deployment import needs_of, of_flow, pacing_lines, text_of

    spec = done.records_of(row)[0].spec
    streams = len(spec["flows"])
    count = [f"# {streams} connections share the data: elephan copy --streams {streams}, iperf3 -P {streams}."]
    return [
        *text_of(of_flow(spec["flows"][0]), needs_of(spec)),
        *pacing_lines(spec),
        *(count if row.cc.endswith(f", {units.pluralize(streams, 'stream')}") else []),
    ]

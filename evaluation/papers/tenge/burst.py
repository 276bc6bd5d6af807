"""Figure 10: how fast HSTCP and NewReno are back after a burst of UDP."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from elephan.papers.drawing import framed, legend
from elephan.papers.evaluation import Evaluation, Figure, PaperResults, Table, part
from elephan.record import Record
from elephan.report.draw import Ink
from elephan.run_spec.quantities import limit_bytes

from . import regions
from .recovery import Found, Line, Pair, cc_of, compared, ratio_of

CLAIM = "tenge.fig10"

CCS = {"reno": ("NewReno", 0), "highspeed": ("HSTCP", 1)}
"""Title and colour."""

SHOWN_OVER_S = 0.2
"""Time over which the curves of the figure are averaged, s."""

PACKETS = (9000, 9216)
"""IP packets of a stream that fills the line and of the paper's hosts, B."""

COLOURS = {Found.ABOVE: 0, Found.BELOW: 1, Found.UNDECIDED: 3}
"""Of a set-up in the maps."""


def burst_share(record: Record) -> float:
    """Return the rate of the burst as a part of the line, of its frames where the line has some."""
    last = record.spec["flows"][0]["route"][-1]
    return float(record.spec["background"][0]["rate_bps"]) / float(record.spec["links"][last]["rate_bps"])


def queue_share(record: Record) -> float:
    """Return the line's queue as a part of rate x RTT."""
    flow = record.spec["flows"][0]
    link = record.spec["links"][flow["route"][-1]]
    rtt_s: float = sum(record.spec["links"][i]["delay_ns"] for i in (*flow["route"], *flow["return_route"])) / 1e9
    return round(float(limit_bytes(link["queue"])) * 8 / (float(link["rate_bps"]) * rtt_s), 3)


def grouped(records: Sequence[Record], key: Callable[[Record], Any]) -> dict[Any, list[Record]]:
    """Return records by key, in the order of the file."""
    groups: dict[Any, list[Record]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return groups


def above_in(pairs: Iterable[Pair]) -> list[float]:
    """Return 1 for a set-up with a ratio above 9, else 0, of those in which something was to be recovered."""
    return [float(pair.found is Found.ABOVE) for pair in pairs if pair.found is not Found.NOTHING]


def is_faster(pair: Pair) -> bool:
    """Return True if HSTCP is back before NewReno in every seed of each."""
    slow, fast = pair.reno.seconds, pair.highspeed.seconds
    known = [item for item in slow if item is not None]
    return None not in fast and (not known or max(item for item in fast if item is not None) < min(known))


@part("fig10.toml", "fig10-hosts.toml")
def figure10(results: PaperResults) -> Evaluation:
    """Recovery times by the burst's rate and the queue, of a stream that fills the line and of the paper's hosts."""
    groups = {
        file: grouped(results.of(file), lambda record: (queue_share(record), round(burst_share(record), 3)))
        for file in ("fig10.toml", "fig10-hosts.toml")
    }
    pairs = {
        file: {key: Pair.of(results, records) for key, records in found.items()} for file, found in groups.items()
    }
    filled, hosts = pairs.values()
    real = [pair for pair in (*filled.values(), *hosts.values()) if pair.found is not Found.NOTHING]
    measured = {
        "above_filled": above_in(filled.values()),
        "above_hosts": above_in(hosts.values()),
        "faster": [float(is_faster(pair)) for pair in real],
    }
    kept = regions.read()["fig10"]
    tables = [_table("A stream that fills the line", filled), _table("The paper's hosts", hosts), _never_table(kept)]
    tables += [_other_table(kept)] if any(key[1] not in PACKETS for key in regions.fig10_setups()) else []
    figures = [_curves(results, groups["fig10.toml"], filled), _maps(kept)]
    return Evaluation({CLAIM: measured}, figures, tables)


def _curves(results: PaperResults, groups: dict[Any, list[Record]], pairs: dict[Any, Pair]) -> Figure:
    keys = [key for key in groups if key[0] < 1 and key[1] in (0.2, 1.0)]

    def draw(drawing: Any, ink: Ink) -> None:
        rows = drawing.subplots(2, 2)
        for axes, key in zip(rows.flat, keys, strict=True):
            framed(axes, ink, "s after the burst" if axes in rows[1] else "", "")
            title = f"queue {key[0]:.0%}, burst {key[1]:.0%}: HSTCP {pairs[key].ratio:.1f} times faster"
            axes.set_title(title, loc="left", color=ink.text, fontsize=8.5, pad=5)
            for name, (label, colour) in CCS.items():
                record = next(item for item in groups[key] if cc_of(item) == name)
                time_s, share = _smooth(Line.of(record, results.series(record)))
                axes.plot(time_s, share, color=ink.curve(colour), linewidth=1.4, label=label)
            end = min(1.08 * pairs[key].reno.median, 46)
            axes.axvspan(-2, 0, color=ink.muted, alpha=0.14, linewidth=0, label="burst: the line carries both")
            axes.axhline(95, color=ink.muted, linewidth=0.9, linestyle=(0, (1, 2)), label="95 %")
            axes.set_xlim(-3, end)
            axes.set_ylim(0, 106)
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g} %")
        legend(drawing, ink, rows[0][0])

    return Figure(
        "fig10-curves",
        CLAIM,
        "Figure 10: load of the line after two seconds of UDP",
        "In percent of what the line carried before, first seed, means over 0.2 s; in the shaded burst the load of "
        "both. RTT 17 ms, packets of 9000 B; queue in rate x RTT, burst of the line. The scales of time differ.",
        draw,
        (7.4, 4.6),
    )


def _smooth(line: Line) -> tuple[Any, Any]:
    count = max(1, round(SHOWN_OVER_S / line.interval_s))
    whole = len(line.rate_bps) // count * count
    share = 100 * line.rate_bps[:whole].reshape(-1, count).mean(axis=1) / line.before_bps
    middle = line.time_s[:whole].reshape(-1, count).mean(axis=1) - line.interval_s / 2
    return middle - line.burst_s[1], share


def _maps(kept: Mapping[str, Any]) -> Figure:
    setups = list(regions.fig10_setups().values())

    def queues(hosts: bool) -> list[Mapping[str, Any]]:
        packets = (9216,) if hosts else (9000,)
        return [item for item in setups if (item["hosts"], item["burst_s"]) == (hosts, 2) and item["packet"] in packets]

    def bursts(hosts: bool) -> list[Mapping[str, Any]]:
        packets = (9216,) if hosts else (9000,)
        found = [item for item in setups if (item["hosts"], item["queue"]) == (hosts, 0.1)]
        return [item for item in found if item["packet"] in packets and item["burst_s"] in regions.LENGTHS]

    def draw(drawing: Any, ink: Ink) -> None:
        rows = drawing.subplots(2, 2)
        for column, hosts in enumerate((False, True)):
            name = "the paper's hosts" if hosts else "a stream that fills the line"
            _map(rows[0][column], ink, queues(hosts), "queue", f"{name}, burst of 2 s", lambda value: f"{value:.0%}")
            _map(rows[1][column], ink, bursts(hosts), "burst_s", f"{name}, queue 10 %", lambda value: f"{value:g} s")
            rows[1][column].set_xlabel("burst, of the line", color=ink.muted, fontsize=8)
        rows[0][0].set_ylabel("queue, of rate x RTT", color=ink.muted, fontsize=8)
        rows[1][0].set_ylabel("length of the burst", color=ink.muted, fontsize=8)
        for found, colour in COLOURS.items():
            rows[0][0].scatter([], [], marker="s", s=60, color=ink.curve(colour), alpha=0.35, label=found.value)
        legend(drawing, ink, rows[0][0])

    return Figure(
        "fig10",
        CLAIM,
        "Figure 10: how many times faster HSTCP is back",
        "Median of NewReno over median of HSTCP, five seeds each, packets of 9000 B (9216 B from the paper's hosts). "
        "Above 9: every seed of one is more than 9 times every seed of the other. Dashes: nothing was to be recovered. "
        f"{kept['command']}, {kept['date']}.",
        draw,
        (7.4, 5.2),
    )


def _map(
    axes: Any, ink: Ink, setups: Sequence[Mapping[str, Any]], key: str, title: str, shown: Callable[[float], str]
) -> None:
    xs = sorted({item["share"] for item in setups})
    ys = sorted({item[key] for item in setups})
    for item in setups:
        found = compared(item["reno"], item["highspeed"])
        x, y = xs.index(item["share"]), ys.index(item[key])
        if found in COLOURS:
            axes.add_patch(_square(x, y, ink.curve(COLOURS[found])))
        axes.text(x, y, _ratio(item, found), ha="center", va="center", color=ink.text, fontsize=8)
    axes.set_title(title, loc="left", color=ink.text, fontsize=8.5, pad=5)
    axes.set_xlim(-0.5, len(xs) - 0.5)
    axes.set_ylim(-0.5, len(ys) - 0.5)
    axes.set_xticks(range(len(xs)), [f"{share:.0%}" for share in xs])
    axes.set_yticks(range(len(ys)), [shown(value) for value in ys])
    axes.tick_params(colors=ink.muted, labelsize=8, length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _square(x: int, y: int, colour: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.47, y - 0.47), 0.94, 0.94, color=colour, alpha=0.3, linewidth=0)


def _ratio(setup: Mapping[str, Any], found: Found) -> str:
    if found is Found.NOTHING:
        return "–"
    ratio = ratio_of(setup["reno"], setup["highspeed"])
    return "?" if ratio != ratio else f"{ratio:.0f}" if ratio >= 20 else f"{ratio:.1f}"


def _row(name: str, pair: Pair) -> tuple[str, ...]:
    return (name, pair.reno.text, pair.highspeed.text, f"{pair.ratio:.1f}", pair.found.value)


def _table(title: str, pairs: dict[Any, Pair]) -> Table:
    return Table(
        CLAIM,
        f"{title}: until it carries 95 % again, from the end of the burst",
        ("queue, rate x RTT; burst, of the line", "NewReno", "HSTCP", "ratio", "HSTCP times 9 against NewReno"),
        tuple(_row(f"{queue:.0%}; {share:.0%}", pair) for (queue, share), pair in pairs.items()),
        "Median of five seeds (and their range). Measured over 100 ms, in steps of 20 ms.",
    )


def _never_table(kept: Mapping[str, Any]) -> Table:
    era = regions.fig10_setups()
    rows = []
    for key, item in regions.fig10_setups("never").items():
        if key not in era:
            continue
        both = [(one, compared(one["reno"], one["highspeed"])) for one in (era[key], item)]
        if both[0][1] is Found.NOTHING:
            continue
        hosts, _, burst_s, share, queue = key
        name = f"{'hosts' if hosts else 'full line'}; {queue:.0%}; {share:.0%}; {burst_s:g} s"
        rows.append((name, *(f"{_ratio(one, found)}, {found.value}" for one, found in both)))
    heads = ("sender; queue; burst; its length", "lost retransmissions noticed", "not noticed")
    return Table(
        CLAIM, "Ratio by the sender's loss recovery", heads, tuple(rows), f"{kept['command']}, {kept['date']}."
    )


def _other_table(kept: Mapping[str, Any]) -> Table:
    rows = []
    for key, item in regions.fig10_setups().items():
        if item["packet"] not in PACKETS:
            found = compared(item["reno"], item["highspeed"])
            window = regions.Fig10(*key).window
            seconds = ", ".join(str(value) for value in item["reno"]), ", ".join(map(str, item["highspeed"]))
            name = f"{item['packet']} B, {window}; {item['queue']:.0%}; {item['share']:.0%}"
            rows.append((name, *seconds, _ratio(item, found), found.value))
    heads = ("packet, window; queue; burst", "NewReno, s", "HSTCP, s", "ratio", "HSTCP times 9 against NewReno")
    return Table(
        CLAIM, "Larger windows, burst of 2 s, seed by seed", heads, tuple(rows), f"{kept['command']}, {kept['date']}."
    )

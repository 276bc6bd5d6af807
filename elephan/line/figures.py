"""Figures of line tests: those that the paper has, and loss and latency over time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from elephan.line.methods.rfc2544 import LatencyAt, Loss, Result, Throughput
from elephan.line.methods.rfc6349 import Path, TcpRun
from elephan.line.methods.y1564 import Step
from elephan.line.mix import Mix
from elephan.line.soak import Soak
from elephan.line.text import ratio
from elephan.line.trial import Row
from elephan.report.figures import MOST_CURVES, Curve, Figure, HistogramFigure, SweepFigure, TimeFigure
from elephan.report.metrics import Metric
from elephan.report.statistics import Estimate
from elephan.report.timeline import Floats, Line, thinned
from elephan.units import count, duration, rate

BINS = 40
"""Intervals of a histogram."""
WHOLE = 0.9
"""Share of the asked length from which an interval has a rate: real ones end some microseconds early or late."""
NEAR = 1.3
"""Ratio of two sizes below which only the larger one has its name."""
TIME_UNITS = ((2 * 3600.0, 3600.0, "h"), (600.0, 60.0, "min"), (0.0, 1.0, "s"))
"""Least length, unit in s, and its name."""

FRAME_RATE = Metric(
    "frame_bps", "rate of frames", "bit/s", rate, "higher", "Ethernet frames, without preamble and gap."
)
LATENCY = Metric("latency_s", "one-way latency", "s", duration, "lower", "By the clocks of both ends as compared.")
GOODPUT = Metric("goodput_bps", "TCP throughput", "bit/s", rate, "higher", "Payload that arrived, in order.")
LOSS = Metric("loss_ratio", "frames lost", "", lambda value: ratio(value or 0.0), "lower", "Share of frames sent.")


def rfc2544_figures(results: Sequence[Result], line_bps: int) -> list[Figure]:
    """Return throughput by frame size against the line's maximum, latency by frame size, loss by load."""
    figures: list[Figure] = []
    throughputs = [one for one in results if isinstance(one, Throughput)]
    if len(throughputs) > 1:
        most = [(one.frame_bytes, Mix.of(one.frame_bytes).frame_bps(line_bps)) for one in throughputs]
        measured = [(one.frame_bytes, one.frame_bps) for one in throughputs]
        figures.append(
            _by_size(
                "throughput",
                "Throughput by frame size",
                "Largest rate at which no frame was lost (RFC 2544, 26.1), and the most that the line's rate leaves "
                "beside preamble and gap. Bits of Ethernet frames.",
                FRAME_RATE,
                [("the line's maximum", most), ("measured", measured)],
            )
        )
    latencies = [one for one in results if isinstance(one, LatencyAt)]
    if len(latencies) > 1:
        lines = [
            ("mean", [(one.frame_bytes, one.mean_ns / 1e9) for one in latencies]),
            ("min", [(one.frame_bytes, one.min_ns / 1e9) for one in latencies]),
            ("p99", [(one.frame_bytes, one.p99_ns / 1e9) for one in latencies]),
        ]
        caption = "At the throughput's rate (RFC 2544, 26.2)."
        figures.append(_by_size("latency", "One-way latency by frame size", caption, LATENCY, lines))
    losses = [one for one in results if isinstance(one, Loss) and one.loss_ratio is not None]
    sizes = list(dict.fromkeys(one.frame_bytes for one in losses))[:MOST_CURVES]
    if any(one.lost for one in losses):
        loss_lines = tuple(
            (
                f"{size} B",
                colour,
                _line([(one.share, one.loss_ratio or 0.0) for one in losses if one.frame_bytes == size]),
            )
            for colour, size in enumerate(sizes)
        )
        names = tuple((share, f"{share:.0%}") for share in sorted({one.share for one in losses}))
        title, caption = "Frames lost by load", "From the line's rate downwards (RFC 2544, 26.3)."
        figures.append(SweepFigure("loss", title, caption, "load", names, LOSS, loss_lines, False, False))
    return figures


def _by_size(
    key: str, title: str, caption: str, metric: Metric, lines: Sequence[tuple[str, Sequence[tuple[float, float]]]]
) -> SweepFigure:
    sizes = sorted({x for _, line in lines for x, _ in line})
    # Names of sizes near the next one would lie over each other.
    near = {one for one, two in zip(sizes, sizes[1:], strict=False) if two < NEAR * one}
    names = tuple((float(size), "" if size in near else str(int(size))) for size in sizes)
    drawn = tuple((label, colour, _line(line)) for colour, (label, line) in enumerate(lines))
    return SweepFigure(key, title, caption, "frame, B", names, metric, drawn, True, False)


def _line(points: Sequence[tuple[float, float]]) -> tuple[tuple[float, Estimate], ...]:
    return tuple((x, Estimate(y, None, 1)) for x, y in sorted(points))


def y1564_figures(steps: Sequence[Step]) -> list[Figure]:
    """Return sent and received rates of the steps, and the performance test over time."""
    figures: list[Figure] = []
    if len(steps) > 1:
        names = tuple((float(number), step.name) for number, step in enumerate(steps))
        lines = (
            ("sent", 0, _line([(number, step.sent_bps) for number, step in enumerate(steps)])),
            ("received", 1, _line([(number, step.received_bps) for number, step in enumerate(steps)])),
        )
        caption = "Bits of Ethernet frames."
        title = "Rate sent and received in each step"
        figures.append(SweepFigure("steps", title, caption, "step", names, FRAME_RATE, lines, False, False))
    for step in steps:
        rows = step.outcome.series
        if rows:
            figures += _over_time([(row.time_ns / 1e9, row) for row in rows], "")
    return figures


def tcp_figures(path: Path, runs: Sequence[TcpRun]) -> list[Figure]:
    """Return TCP's throughput by window, beside what the window and the path allow."""
    first = [run for run in runs if run.connections == runs[0].connections]
    if len(first) < 2:
        return []
    names = tuple((float(one), f"{one} %") for one in sorted({run.window_per_cent for run in first}))
    lines = (
        ("the path's maximum", 0, _line([(run.window_per_cent, path.ideal_bps) for run in first])),
        ("the window allows", 1, _line([(run.window_per_cent, run.expected_bps) for run in first])),
        ("measured", 2, _line([(run.window_per_cent, run.goodput_bps) for run in first])),
    )
    title, x = "TCP throughput by window", "window, of the bandwidth-delay product"
    caption = "Payload; the maximum has every segment full and none sent twice (RFC 6349, 4.1)."
    return [SweepFigure("tcp", title, caption, x, names, GOODPUT, lines, False, False)]


def soak_figures(found: Soak) -> list[Figure]:
    """Return rate, loss and latency over time, with histograms of the points."""
    rows = list(found.rows())
    if not rows:
        return []
    mean_bytes = found.settings.frames.frame_bytes / found.settings.frames.weights
    seconds = found.settings.series_ns / 1e9
    # An interval that is shorter, as the last one of a part may be: its rate says little.
    lengths_s = [length_ns / 1e9 for part in found.parts for length_ns in _lengths_ns(part.rows)]
    whole = [
        (time_s, row, length_s)
        for (time_s, row), length_s in zip(rows, lengths_s, strict=True)
        if length_s >= WHOLE * seconds
    ]
    rates = [row.received * mean_bytes * 8 / length_s if row.is_answered else np.nan for _, row, length_s in whole]
    figures: list[Figure] = []
    each = f"Each point is of {duration(seconds)}."
    scale, unit = _time_unit([time_s for time_s, _ in rows])
    if whole:
        times = np.asarray([time_s for time_s, _, _ in whole]) / scale
        line = _broken(times, np.asarray(rates), seconds / scale)
        title = "Rate of frames received"
        figure = _time_figure("rate", title, f"Bits of Ethernet frames. {each}", rate, [("received", line)], unit)
        figures += [] if figure is None else [figure]
        known = np.asarray([value for value in rates if np.isfinite(value)])
        if len(known) > 1:
            caption = f"Share of {count(len(known))} points by their rate. {each}"
            figures.append(histogram("rate-histogram", "Points by rate", caption, known, "bit/s"))
    figures += _over_time(rows, each)
    means = np.asarray([row.latency_mean_ns for _, row in rows if row.latency_mean_ns is not None], dtype=float) / 1e9
    if len(means) > 1:
        caption = f"Share of {count(len(means))} points by their mean one-way latency. {each}"
        figures.append(histogram("latency-histogram", "Points by latency", caption, means, "s"))
    return figures


def _lengths_ns(rows: Sequence[Row]) -> Iterator[int]:
    """Yield the time that each row counts, ns: an answer after some that did not come has theirs."""
    before_ns = answered_ns = 0
    for row in rows:
        yield row.time_ns - (answered_ns if row.is_answered else before_ns)
        before_ns = row.time_ns
        answered_ns = row.time_ns if row.is_answered else answered_ns


def _over_time(rows: Sequence[tuple[float, Row]], each: str) -> list[Figure]:
    """Return loss and latency over time, and other faults where there are any."""
    scale, unit = _time_unit([time_s for time_s, _ in rows])
    times = np.asarray([time_s for time_s, _ in rows]) / scale
    step = float(np.median(np.diff(times))) if len(times) > 1 else 0.0

    def line(value: Callable[[Row], int | None]) -> Line:
        values = [value(row) for _, row in rows]
        return _broken(times, np.asarray([np.nan if one is None else float(one) for one in values]), step)

    def seconds(value: Callable[[Row], int | None]) -> Line:
        found = line(value)
        return Line(found.time_s, found.values / 1e9)

    lost = [("lost", line(lambda row: row.lost if row.is_answered else None))]
    latency = [
        ("mean", seconds(lambda row: row.latency_mean_ns)),
        ("min", seconds(lambda row: row.latency_min_ns)),
        ("max", seconds(lambda row: row.latency_max_ns)),
    ]
    clocks = "By the clocks of both ends as compared over control frames."
    found = [
        _time_figure("lost", "Frames lost", f"By interval. {each}", count, lost, unit),
        _time_figure("latency", "One-way latency", f"{clocks} {each}", duration, latency, unit),
    ]
    if any(row.bit_errors for _, row in rows):
        errors = [("bit errors", line(lambda row: row.bit_errors))]
        found.append(_time_figure("bit-errors", "Bit errors in payloads", f"By interval. {each}", count, errors, unit))
    if any(row.no_carrier_frames for _, row in rows):
        without = [("without a carrier", line(lambda row: row.no_carrier_frames))]
        caption = f"Due, and not sent: they count as lost. {each}"
        found.append(_time_figure("no-carrier", "Frames that found no carrier", caption, count, without, unit))
    if any(row.late_frames or row.left_out_frames for _, row in rows):
        faults = [
            ("left late", line(lambda row: row.late_frames)),
            ("left out", line(lambda row: row.left_out_frames)),
        ]
        caption = f"The generator's own faults, no loss of the line. {each}"
        found.append(_time_figure("generator", "Frames that left late or not at all", caption, count, faults, unit))
    return [figure for figure in found if figure is not None]


def _time_figure(
    key: str,
    title: str,
    caption: str,
    show: Callable[[float | None], str],
    lines: Sequence[tuple[str, Line]],
    unit: str,
) -> TimeFigure | None:
    curves = tuple(Curve(label, colour, thinned(line)) for colour, (label, line) in enumerate(lines) if line)
    if not curves:
        return None
    end = max(float(curve.line.time_s[-1]) for curve in curves)
    return TimeFigure(key, title, caption.strip(), show, curves, False, end, time_unit=unit)


def _time_unit(times_s: Sequence[float]) -> tuple[float, str]:
    longest = max(times_s, default=0.0)
    return next((scale, name) for least, scale, name in TIME_UNITS if longest >= least)


def _broken(times: Floats, values: Floats, step: float) -> Line:
    """Return a line that is broken where nothing was measured for more than two intervals."""
    if len(times) < 2:
        return Line(times, values)
    gaps = np.flatnonzero(np.diff(times) > 2 * step) + 1
    return Line(np.insert(times, gaps, times[gaps] - step), np.insert(values, gaps, np.nan))


def histogram(key: str, title: str, caption: str, values: Floats, unit: str) -> HistogramFigure:
    """Return the shares of values in intervals of equal width."""
    low, high = float(values.min()), float(values.max())
    if high - low < 1e-6 * abs(high) or high == low:
        # All the same: one bar in the middle.
        low, high = low - 5e-4 * (abs(low) or 1.0), high + 5e-4 * (abs(high) or 1.0)
    counts, edges = np.histogram(values, bins=BINS, range=(low, high))
    shares = tuple(float(one) for one in counts / len(values))
    return HistogramFigure(key, title, caption, _fine(low, high, unit), tuple(float(one) for one in edges), shares)


PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))


def _fine(low: float, high: float, unit: str) -> Callable[[float | None], str]:
    """Return a text form that tells values of a narrow range apart."""
    largest = max(abs(low), abs(high))
    factor, prefix = next(((one, name) for one, name in PREFIXES if largest >= one), PREFIXES[-1])
    places = max(0, 2 - int(np.floor(np.log10((high - low) / factor))))

    def show(value: float | None) -> str:
        return "" if value is None else f"{value / factor:.{places}f} {prefix}{unit}"

    return show

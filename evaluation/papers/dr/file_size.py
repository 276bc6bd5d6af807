"""Figure 9: FAST by the file's size."""

from __future__ import annotations

from elephan.papers.evaluation import Evaluation, PaperResults, Table, part
from elephan.papers.spread import Measured

from .transfers import READINGS, by_reading, spreads

CLAIM = "dr.fig9"

GIB = 1 << 30


@part("fig9.toml")
def figure9(results: PaperResults) -> Evaluation:
    """Throughput of smaller files relative to the largest: the two farthest from 1, over all applications."""
    measured: dict[str, Measured] = {}
    rows = []
    for reading, transfers in by_reading(results.of("fig9.toml")).items():
        found = spreads(transfers, lambda one: (one.application, one.file_bytes))
        sizes = sorted({size for _, size in found})
        ratios = []
        for name in dict.fromkeys(application for application, _ in found):
            largest = found[name, sizes[-1]].values
            for size in sizes[:-1]:
                seeds = zip(found[name, size].values, largest, strict=True)
                ratios.append([small / large for small, large in seeds])
            rows.append((f"{READINGS[reading]}, {name}", *(str(found[name, size]) for size in sizes)))
        # Of each seed, over applications and sizes.
        by_seed = list(zip(*ratios, strict=True))
        measured[f"{reading}_least"], measured[f"{reading}_most"] = [*map(min, by_seed)], [*map(max, by_seed)]
    table = Table(
        CLAIM,
        "FAST's throughput, MB/s",
        ("path, application", *(f"{size / GIB:g} GB" for size in sizes)),
        tuple(rows),
        "Medians of five seeds, with least and largest where they differ.",
    )
    return Evaluation({CLAIM: measured}, [], [table])

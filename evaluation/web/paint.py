"""First paint and time until charts are drawn, in Chromium on loopback, each time with an empty cache."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from elephan import units
from evaluation.markdown import fill, table
from evaluation.web import site

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TIMES = 15
GOAL_MS = 300
SPANS = ("1h", "24h", "7d", "30d", "1y")

FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
RECEIVED = """
  [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
    .reduce((sum, one) => sum + one.transferSize, 0)
"""


def first_paint(browser: Browser, url: str) -> tuple[float, float, float, int]:
    """Return first contentful paint and first byte, ms, of a load without cache; charts drawn, ms; bytes received."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    try:
        page = context.new_page()
        page.goto(url)
        drawn_ms = 0.0
        if "/paths/" in url:
            page.wait_for_selector("#charts[data-drawn]")
            drawn_ms = float(page.evaluate("performance.now()"))
        paint_ms = 0.0
        while not paint_ms:
            paint_ms = float(page.evaluate(FIRST_PAINT))
        byte_ms = float(page.evaluate("performance.getEntriesByType('navigation')[0].responseStart"))
        return paint_ms, byte_ms, drawn_ms, int(page.evaluate(RECEIVED))
    finally:
        context.close()


def measure(run: str, size: str) -> tuple[str, bool]:
    """Return the part of the page, and True if every page's median is within the goal."""
    pages = [*site.PATHS, f"/runs/{run}", f"/ledger/{run}"]
    busy = site.others()
    rows, good = [], True
    drawn_rows = []
    with site.served() as (url, process), site.chromium() as browser:
        data = [f"/paths/synthetic/vienna/data?span={span}" for span in SPANS]
        site.warm(url, [*pages, *data])
        for path in pages:
            before_s = site.processor_s(process)
            found = [first_paint(browser, url + path) for _ in range(TIMES)]
            took_ms = (site.processor_s(process) - before_s) / TIMES * 1000
            paints = [one[0] for one in found]
            good = good and statistics.median(paints) <= GOAL_MS
            rows.append(
                [
                    path.replace(run, "RUN"),
                    f"{statistics.median(paints):.0f}",
                    f"{min(paints):.0f} to {max(paints):.0f}",
                    f"{statistics.median(one[1] for one in found):.0f}",
                    f"{took_ms:.0f}",
                    units.size(found[0][3]),
                ]
            )
            print(*rows[-1])
        for span in SPANS:
            drawn = [first_paint(browser, f"{url}/paths/synthetic/vienna?span={span}")[2] for _ in range(5)]
            drawn_rows.append([span, f"{statistics.median(drawn):.0f}", f"{min(drawn):.0f} to {max(drawn):.0f}"])
            print(*drawn_rows[-1])
        memory = units.size(site.memory_bytes(process))
    text = fill(
        f"Ten paths, a sample a second, 365 days, of the last {site.RAW_DAYS} all samples: {size}. {TIMES} loads of "
        f"each page with an empty cache, its charts' numbers among the processor time; the goal is a median of "
        f"{GOAL_MS} ms. {busy.capitalize()}; the server took at most {memory}."
    )
    head = ["page", "first paint, ms", "least to most", "first byte, ms", "server's CPU, ms", "received"]
    drawn_text = "All six charts of a path, from the address to the last curve:"
    return "\n\n".join(
        [text, table(head, rows), drawn_text, table(["window", "drawn, ms", "least to most"], drawn_rows)]
    ), good

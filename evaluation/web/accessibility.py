"""axe-core over every page: light, dark, on a telephone, and with its parts opened."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elephan.errors import InputError
from evaluation.markdown import table
from evaluation.runner import OUT
from evaluation.web import site

if TYPE_CHECKING:
    from playwright.sync_api import Browser

AXE = "axe-core@4.14.1"
"""MPL-2.0: fetched for the measurement, and not a part of elephan."""

VIEWS: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 800}, "color_scheme": "light"},
}


def axe() -> str:
    """Return the source of axe-core, by npm. Raises `InputError`."""
    file = OUT / "axe" / "package" / "axe.min.js"
    if not file.is_file():
        if shutil.which("npm") is None:
            raise InputError("needs npm (Debian package npm), which fetches axe-core")
        file.parent.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "pack", "--silent", AXE], cwd=file.parent.parent, check=True, capture_output=True)
        archive = next(Path(file.parent.parent).glob("axe-core-*.tgz"))
        subprocess.run(["tar", "xzf", archive.name], cwd=file.parent.parent, check=True)
    return file.read_text()


def violations(browser: Browser, url: str, view: str, source: str) -> tuple[list[dict[str, Any]], int]:
    """Return the violations of a page, and how many rules it passes."""
    # The policy of the page allows no foreign script, as it should.
    context = browser.new_context(**VIEWS[view], bypass_csp=True)
    try:
        page = context.new_page()
        page.goto(url)
        if "/paths/" in url:
            page.wait_for_selector("#charts[data-drawn]")
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        page.evaluate(source + "; void 0")
        result = page.evaluate("axe.run({resultTypes: ['violations', 'passes']})")
        return result["violations"], len(result["passes"])
    finally:
        context.close()


def measure(run: str) -> tuple[str, bool]:
    """Return the part of the page, and True if no violation is serious or critical."""
    source = axe()
    pages = [*site.PATHS, f"/runs/{run}", f"/ledger/{run}", "/none"]
    rows, good = [], True
    told: list[str] = []
    with site.served() as (url, _), site.chromium() as browser:
        site.warm(url, pages[:-1])
        for path in pages:
            counts: Counter[str] = Counter()
            passed = 0
            for view in VIEWS:
                found, rules = violations(browser, url + path, view, source)
                passed += rules
                for one in found:
                    counts[one["impact"]] += len(one["nodes"])
                    told.append(f"{path} {view}: {one['impact']}: {one['id']}: {one['nodes'][0]['html'][:160]}")
            good = good and not counts["serious"] and not counts["critical"]
            kinds = ("critical", "serious", "moderate", "minor")
            rows.append([path.replace(run, "RUN"), *(str(counts[kind]) for kind in kinds), str(passed)])
            print(*rows[-1])
    print("\n".join(told))
    text = f"{AXE.replace('@', ' ')}, every rule it has, each page in {', '.join(VIEWS)}, all details opened:"
    return "\n\n".join([text, table(["page", "critical", "serious", "moderate", "minor", "rules passed"], rows)]), good

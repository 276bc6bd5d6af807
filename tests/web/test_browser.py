"""The pages in Chromium: drawn, live, by keyboard, on a telephone, in the dark, behind a login."""

from __future__ import annotations

import csv
import io
import re
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from elephan.report import draw
from elephan.web import pages
from elephan.web.tokens import add
from tests.web.conftest import Served, Stored

VIENNA = "/paths/synthetic/vienna"
GENEVA = "/paths/synthetic/%3Cb%3Egeneva%3C%2Fb%3E"
JOBS = [f"/backups/synthetic/{name}" for name in ("archive", "images", "volume")]
WAIT_MS = 60_000
"""For what the page shows by itself: the machine runs other tests too."""

EXPECTED = re.compile("status of 40[34]|ERR_INTERNET_DISCONNECTED|Blocked script execution")

Open = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Open an address in a browser of its own; a fault in its console fails the test."""
    contexts: list[Any] = []
    faults: list[str] = []

    def start(url: str, **options: Any) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        context.set_default_timeout(WAIT_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on(
            "console", lambda m: faults.append(m.text) if m.type == "error" and not EXPECTED.search(m.text) else None
        )
        page.goto(url)
        return page

    yield start
    for context in contexts:
        context.close()
    assert not faults


def drawn(page: Page, window: str = "") -> None:
    """Wait until the charts show a window, by default any."""
    which = f'[data-drawn*="{window}"]' if window else "[data-drawn]"
    page.wait_for_selector(f"#charts{which} .plot canvas")


def addresses(page: Page) -> set[str]:
    """Return all links of a page."""
    found: list[str] = page.eval_on_selector_all("a[href]", "all => all.map(a => a.getAttribute('href'))")
    return {one.partition("#")[0] for one in found if not one.startswith("#")}


def test_every_page_draws_on_every_width_and_every_link_leads_somewhere(
    stored_once: Stored, serve: Served, open_page: Open
) -> None:
    url = serve(stored_once.file)
    page = open_page(url)
    links: set[str] = set()
    for path in ("/", "/alerts", VIENNA, GENEVA, "/backups", *JOBS, "/runs", f"/runs/{stored_once.run}", "/ledger",
                 f"/ledger/{stored_once.run}", "/none"):  # fmt: skip
        page.goto(url + path)
        if path.startswith("/paths"):
            drawn(page)
        for width in (320, 390, 1280):
            page.set_viewport_size({"width": width, "height": 700})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (path, width)
        assert page.locator("h1").count() == 1 and page.title().endswith("· elephan"), path
        assert page.locator("html").get_attribute("lang") == "en"
        unnamed = page.eval_on_selector_all(
            "button, a, input:not([type=hidden]), select, [role=application], [role=region], svg.map",
            """all => all.filter(e => !(e.textContent.trim() || e.ariaLabel || e.getAttribute("aria-labelledby")
               || e.labels?.length)).map(e => e.outerHTML)""",
        )
        assert not unnamed, path
        links |= {link for link in addresses(page) if link.startswith("/")}
    for link in sorted(links):
        assert page.request.get(url + link, headers={"accept": "text/html"}).ok, link
    # A report has its own drawing, in a sandbox: no cookie of ours, no other page.
    page.goto(f"{url}/runs/{stored_once.run}/report")
    assert page.evaluate("self.origin") == "null"
    page.locator(".managed input[type=range]").press("ArrowRight")
    assert "2 s" in page.locator(".managed output").inner_text()


def test_a_ledger_steps_through_its_run(stored_once: Stored, serve: Served, open_page: Open) -> None:
    page = open_page(f"{serve(stored_once.file)}/ledger/{stored_once.run}")
    text = page.locator(".step output")
    expect(text).to_contain_text("1 s · IP 98.0 Mbit/s")
    for _ in range(2):
        page.get_by_role("slider").press("ArrowRight")
    expect(text).to_contain_text("backup on lambda1")
    expect(page.locator("#moves")).to_contain_text("to lambda1")
    expect(page.locator("#moves")).to_contain_text("<branch>")


def test_numbers_and_alerts_come_by_themselves(stored: Stored, serve: Served, open_page: Open) -> None:
    page = open_page(serve(stored.file))
    vienna = stored.paths[0]
    expect(page.locator("#link")).to_have_text("live", timeout=WAIT_MS)
    cell = page.locator(f'td[data-live="{vienna}:rtt_s"]')
    before = cell.inner_text()
    stored.sample(vienna, 0.123)
    expect(cell).to_have_text("123 ms", timeout=WAIT_MS)
    assert before != "123 ms"
    expect(page.locator(f'.map.wide [data-live="{vienna}:rtt_s"]')).to_have_text("123 ms")
    # An alert: on the map, in the list, as a message to whoever is on the page, and in the title.
    stored.alert(vienna, 4711, "vienna: RTT 20.0 ms instead of 8.00 ms")
    toast = page.locator("#toasts")
    expect(toast).to_contain_text("New alert: vienna: RTT 20.0 ms instead of 8.00 ms", timeout=WAIT_MS)
    expect(page.locator("#a4711")).to_contain_text("tonight: 3 h instead of 40 min")
    expect(page.locator(f'.map.wide a[data-path="{vienna}"]')).to_have_class("path alert")
    expect(page.locator(f'.map.wide a[data-path="{vienna}"] .word')).to_contain_text("alert: 1 open")
    assert re.match(r"\(\d+\) Paths", page.title())
    toast.get_by_role("button", name="dismiss").click()
    expect(toast).to_be_empty()
    # It leads to its path at its time, where it is drawn.
    page.locator("#a4711 a").click()
    drawn(page, "from=")
    expect(page.locator("#a4711")).to_be_visible()
    # It ends: without a reload.
    page.goto(page.url.partition("?")[0])
    stored.execute("update monitor_alert set ended = ? where id = 4711", time.time())
    stored.execute("update monitor_path set changed = ? where id = ?", time.time_ns(), vienna)
    expect(page.locator("#a4711 .when")).to_contain_text("over", timeout=WAIT_MS)


def test_a_run_of_a_backup_is_followed_by_itself(stored: Stored, serve: Served, open_page: Open) -> None:
    page = open_page(f"{serve(stored.file)}/backups")
    expect(page.locator("#link")).to_have_text("live", timeout=WAIT_MS)
    row = page.locator("tr", has_text="volume")
    expect(row).to_contain_text("4.00 GB of 10.0 GB (40 %), 910 Mbit/s")
    stored.execute(
        "update backup_run set progress = ? where state = 'running'", '{"bytes_done": 7e9, "bytes_total": 1e10}'
    )
    stored.execute("update backup_job set changed = ? where name = 'volume'", time.time_ns())
    expect(row).to_contain_text("7.00 GB of 10.0 GB (70 %)", timeout=WAIT_MS)
    page.get_by_role("link", name="images").click()
    expect(page.locator("main")).to_contain_text("<b>no route</b>")
    page.get_by_text("attempts", exact=True).last.click()
    expect(page.locator("details[open] li")).to_have_count(2)


def test_a_server_that_ends_says_so_on_the_page(stored_once: Stored, serve: Served, open_page: Open) -> None:
    page = open_page(serve(stored_once.file))
    expect(page.locator("#link")).to_have_text("live", timeout=WAIT_MS)
    page.context.set_offline(True)
    page.evaluate(
        "dispatchEvent(new Event('pagehide')); dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))"
    )
    expect(page.locator("#link")).to_have_text("not connected", timeout=WAIT_MS)


def test_a_chart_is_used_by_keyboard_and_its_window_is_in_the_address(
    stored_once: Stored, serve: Served, open_page: Open
) -> None:
    page = open_page(f"{serve(stored_once.file)}{VIENNA}?span=6h")
    drawn(page, "span=6h")
    # By keys alone: to the content, and on to the first chart.
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('plot')"):
            break
    plot = page.locator('[data-chart="rtt"] .plot')
    expect(plot).to_be_focused()

    def window() -> tuple[float, float]:
        query = parse_qs(urlsplit(page.url).query)
        start, end = (datetime.fromisoformat(query[name][0]).timestamp() for name in ("from", "to"))
        return start, end

    page.keyboard.press("+")
    page.wait_for_url("**from=**")
    start, end = window()
    assert end - start == pytest.approx(3 * 3600, abs=3)
    zoomed = page.url
    page.keyboard.press("ArrowLeft")
    expect(page).not_to_have_url(zoomed)
    assert window()[0] == pytest.approx(start - 0.2 * 3 * 3600, abs=3)
    page.keyboard.press("-")
    drawn(page, "from=")
    page.keyboard.press("Shift+ArrowLeft")
    expect(page.locator('[data-chart="rtt"] .readout')).to_contain_text(re.compile(r"\d\d:\d\d:\d\d.*ms \("))
    # The address alone shows the same to somebody else.
    shown = page.locator(".shown").inner_text()
    link = page.url
    other = open_page(link)
    drawn(other, "from=")
    assert other.locator(".shown").inner_text() == shown
    page.keyboard.press("Home")
    drawn(page, "span=24h")
    # All of it as a table.
    page.locator('[data-chart="rtt"] summary').press("Enter")
    rows = page.locator('[data-chart="rtt"] tbody tr')
    expect(rows.first).to_be_visible()
    assert 10 <= rows.count() <= 60
    assert "ms" in rows.first.inner_text()


def test_a_drag_zooms_shift_drag_pans_and_csv_is_of_the_same_window(
    stored_once: Stored, serve: Served, open_page: Open
) -> None:
    page = open_page(f"{serve(stored_once.file)}{VIENNA}")
    drawn(page, "span=24h")
    box = page.locator('[data-chart="loss"] .u-over').bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2

    def drag(start: float, end: float) -> None:
        page.mouse.move(box["x"] + start * box["width"], y)
        page.mouse.down()
        page.mouse.move(box["x"] + (start + end) / 2 * box["width"], y)
        page.mouse.move(box["x"] + end * box["width"], y)
        page.mouse.up()

    drag(0.5, 0.75)
    drawn(page, "from=")
    first = page.url
    page.keyboard.down("Shift")
    drag(0.5, 0.25)
    page.keyboard.up("Shift")
    expect(page).not_to_have_url(first)
    query = page.url.partition("?")[2]
    expect(page.locator("#charts")).to_have_attribute("data-drawn", query)
    with page.expect_download() as found:
        page.locator('[data-chart="rtt"] .csv').click()
    rows = list(csv.DictReader(io.StringIO(Path(found.value.path()).read_text())))
    start, end = (part.partition("=")[2] for part in query.split("&"))
    assert found.value.suggested_filename == "vienna-rtt.csv" and len(rows) > 100
    assert start <= rows[0]["time"] < rows[-1]["time"] <= end


def test_a_wrong_token_is_refused_and_a_right_one_leads_back(
    stored_once: Stored, serve: Served, open_page: Open, tmp_path: Path
) -> None:
    file = tmp_path / "tokens.json"
    text = add(file, "anna", "reader")
    page = open_page(f"{serve(stored_once.file, tokens=file)}{VIENNA}?span=1h")
    expect(page.get_by_label("Token")).to_be_focused()
    assert page.locator("nav").count() == 0
    page.get_by_label("Token").fill("elephan-nonsense")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert").filter(has_text="no token of this server")).to_be_visible()
    assert "elephan-nonsense" not in page.content()
    page.get_by_label("Token").fill(text)
    page.get_by_role("button", name="Log in").click()
    drawn(page, "span=1h")
    assert page.url.endswith(f"{VIENNA}?span=1h")
    assert text not in str(page.evaluate("document.cookie"))
    page.get_by_role("button", name="log out").click()
    expect(page.get_by_label("Token")).to_be_visible()


def test_a_link_from_another_site_finds_the_session(
    stored_once: Stored, serve: Served, open_page: Open, tmp_path: Path
) -> None:
    """The strict cookie does not come with it; the login page sees that there is one, and goes on."""
    file = tmp_path / "tokens.json"
    text = add(file, "anna", "reader")
    url = serve(stored_once.file, tokens=file)
    page = open_page(f"{url}/runs")
    page.get_by_label("Token").fill(text)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/runs")
    page.goto("data:text/html,<a href='" + url + "/alerts'>look</a>")
    page.get_by_text("look").click()
    expect(page.locator("h1")).to_have_text("Alerts")


def test_dark_and_light_follow_the_system_until_one_is_chosen(
    stored_once: Stored, serve: Served, open_page: Open
) -> None:
    page = open_page(f"{serve(stored_once.file)}{VIENNA}", color_scheme="dark")
    drawn(page)
    paper = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(paper) == "rgb(19, 21, 24)"
    page.emulate_media(color_scheme="light")
    assert page.evaluate(paper) == "rgb(251, 251, 250)"
    page.get_by_role("button", name="dark theme").click()
    assert page.evaluate(paper) == "rgb(19, 21, 24)"
    page.reload()
    # The server writes it: no script has to run before the first paint.
    assert page.locator("html").get_attribute("data-theme") == "dark"
    assert page.evaluate(paper) == "rgb(19, 21, 24)"


def test_curves_have_the_colours_of_reports() -> None:
    style = (pages.STATIC / "style.css").read_text()
    for index, both in enumerate(zip(draw.LIGHT, draw.DARK, strict=True)):
        assert f"--c{index}: light-dark({both[0]}, {both[1]})" in style


def test_a_page_takes_nothing_from_elsewhere() -> None:
    for file in (*pages.STATIC.iterdir(), *pages.TEMPLATES.iterdir()):
        text = re.sub(r"/\*!.*?\*/|xmlns=\"[^\"]+\"|https?://www\.w3\.org/\S+", "", file.read_text(), flags=re.DOTALL)
        assert not re.search(r"(https?:)?//[a-z0-9-]+\.[a-z]+/", text), file.name


def hex_of(page: Page, selector: str, name: str = "fill") -> str:
    found: str = page.eval_on_selector(selector, f"e => getComputedStyle(e).getPropertyValue('{name}')")
    return found


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_alert_that_has_ended_has_no_red_mark(stored: Stored, serve: Served, open_page: Open, theme: str) -> None:
    stored.alert(stored.paths[0], 4712, "vienna: over", ended_s=time.time() - 5)
    stored.alert(stored.paths[0], 4713, "vienna: open")
    page = open_page(serve(stored.file) + "/alerts", color_scheme=theme)
    shapes = [hex_of(page, f"#a{number} h3 svg g > *") for number in (4712, 4713)]
    bad = page.evaluate(
        "(() => { const e = document.createElement('i'); e.style.color = 'var(--bad)'; document.body.append(e);"
        " return getComputedStyle(e).color; })()"
    )
    assert shapes[1] == bad and shapes[0] != bad


def test_the_first_hour_of_a_new_path_fills_its_charts(stored: Stored, serve: Served, open_page: Open) -> None:
    ages = {40 * 60: "1h", 3 * 3600: "6h", 600: "15min", 30 * 3600: "24h"}
    url = serve(stored.file)
    for number, (age_s, span) in enumerate(ages.items()):
        path = 900_000 + number
        stored.execute(
            "insert into monitor_path select ?, monitor, ?, settings, created, state, changed from monitor_path "
            "where id = ?",
            path, f"new{number}", stored.paths[0],
        )  # fmt: skip
        begun_s = time.time() - age_s
        for seconds in (60, 3600):
            start = int(begun_s // seconds * seconds)
            while start + seconds <= time.time():
                stored.execute(
                    "insert into monitor_summary values (?, 'rtt_s', ?, ?, 60, 0, .01, .01, .01, .01, .01, .01)",
                    path, seconds, start,
                )  # fmt: skip
                start += seconds
        page = open_page(f"{url}/paths/synthetic/new{number}")
        drawn(page)
        assert page.locator("#charts").get_attribute("data-span") == span, age_s
        assert page.locator(f'a[data-span="{span}"]').get_attribute("aria-current") == "true"
        page.context.close()


def test_a_loss_has_one_format(stored_once: Stored, serve: Served, open_page: Open) -> None:
    page = open_page(serve(stored_once.file) + VIENNA)
    drawn(page)
    chart = page.locator('[data-chart="loss"]')
    shown = [chart.locator(".readout").inner_text(), page.locator('[data-live$=":loss"]').first.inner_text()]
    chart.locator(".numbers summary").click()
    expect(chart.locator(".numbers tbody tr").first).to_be_visible()
    shown += chart.locator(".numbers tbody td").all_inner_texts()
    values = {text.removeprefix("loss ").strip() for text in shown} - {""}
    assert values and not {one for one in values if not re.fullmatch(r"0|1|–|\d\.\de-\d+", one)}


def test_tables_fit_a_telephone(stored_once: Stored, serve: Served, open_page: Open) -> None:
    page = open_page(serve(stored_once.file), viewport={"width": 400, "height": 800})
    for path in ("", "/alerts", VIENNA, "/backups", *JOBS, "/runs", f"/runs/{stored_once.run}", "/ledger",
                 f"/ledger/{stored_once.run}"):  # fmt: skip
        page.goto(serve_url(page) + path)
        if path.startswith("/paths"):
            drawn(page)
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        page.wait_for_timeout(100)
        wide = page.evaluate(
            "[...document.querySelectorAll('table')].filter(e => e.getClientRects().length"
            " && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.className + ' ' + e.id + ' '"
            " + e.textContent.trim().slice(0, 40))"
        )
        assert not wide, (path, wide)


def serve_url(page: Page) -> str:
    found = urlsplit(page.url)
    return f"{found.scheme}://{found.netloc}"

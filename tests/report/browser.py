"""Pages in Chromium, as wide as a test needs them: facts about their layout, and pictures.

A page is shown in a frame, since a window of Chromium's is never narrower than 500 px. Its letters are matplotlib's own
DejaVu Sans, so that a picture does not hang on the fonts of the machine.
"""

from __future__ import annotations

import base64
import html
import io
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
from PIL import Image

PROGRAM = shutil.which("chromium")

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
)

NARROWEST_WINDOW = 500

LONGEST_S = 120

FACTS = """
function facts(frame) {
  const doc = frame.contentDocument, width = frame.clientWidth, view = doc.defaultView;
  const shown = element => element.getClientRects().length > 0;
  const name = element => element.tagName.toLowerCase() + (element.id ? "#" + element.id : "")
    + [...element.classList].map(c => "." + c).join("") + " " + element.textContent.trim().slice(0, 30);
  const scrolls = element => ["auto", "scroll"].includes(view.getComputedStyle(element).overflowX);
  const inScroll = element => {
    for (let e = element.parentElement; e; e = e.parentElement) if (scrolls(e)) return true;
    return false;
  };
  const all = [...doc.body.querySelectorAll("*")].filter(shown);
  const box = element => element.getBoundingClientRect();
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const names = [...doc.querySelectorAll("svg")].map(svg => [...svg.querySelectorAll("[id]")]
    .filter(g => /-name(-\\d+)?$/.test(g.id)).flatMap(g => [...g.querySelectorAll("text")]).filter(shown));
  const over = names.flatMap(texts => texts.flatMap((a, i) => texts.slice(i + 1)
    .filter(b => meet(box(a), box(b))).map(b => a.textContent + " / " + b.textContent)));
  const px = text => parseFloat(view.getComputedStyle(text).fontSize) * text.getScreenCTM().a;
  const texts = [...doc.querySelectorAll("figure svg text")].filter(shown);
  return {
    width: width,
    page: doc.documentElement.scrollWidth,
    wide: all.filter(e => e.getBoundingClientRect().right > width + 1 && !inScroll(e)).map(name),
    scrolled: all.filter(e => scrolls(e) && e.scrollWidth > e.clientWidth + 1).map(name),
    cut: all.filter(e => !(e instanceof view.SVGElement) && e.scrollWidth > e.clientWidth + 1
      && ["hidden", "clip"].includes(view.getComputedStyle(e).overflowX)).map(name),
    over: over,
    names: names.flat().length,
    smallest_px: texts.length ? Math.min(...texts.map(px)) : null,
  };
}
"""


@cache
def _letters() -> str:
    font = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"
    data = base64.b64encode(font.read_bytes()).decode()
    face = f'@font-face {{ font-family: "Letters"; src: url(data:font/ttf;base64,{data}); }}'
    return f"<style>{face} * {{ font-family: Letters !important; transition: none !important; }}</style>"


def facts(page: Path, widths: Sequence[int], script: str = "null") -> list[dict[str, Any]]:
    """Return facts about a page's layout at each width, all of its details open.

    `script` is an expression of JavaScript over `doc`, the page's document; its value is `said`.
    """
    frames = "".join(_frame(page, width, 4000) for width in widths)
    code = f"""{FACTS}
    addEventListener("load", () => {{
      const found = [...document.querySelectorAll("iframe")].map(frame => {{
        frame.contentDocument.querySelectorAll("details").forEach(details => details.open = true);
        const doc = frame.contentDocument;
        return {{...facts(frame), said: {script}}};
      }});
      document.body.innerHTML = "<pre id=facts></pre>";
      document.getElementById("facts").textContent = JSON.stringify(found);
    }});"""
    dumped = _run(f"<script>{code}</script>{frames}", ["--dump-dom"], 2100, 800, False).decode()
    match = re.search(r'<pre id="facts">(.*?)</pre>', dumped, re.DOTALL)
    assert match, dumped[-2000:]
    found: list[dict[str, Any]] = json.loads(html.unescape(match[1]))
    return found


def picture(page: Path, width: int, height: int, dark: bool) -> Image.Image:
    """Return the top of a page."""
    data = _run(_frame(page, width, height), [], max(NARROWEST_WINDOW, width), height, dark)
    return Image.open(io.BytesIO(data)).convert("RGB").crop((0, 0, width, height))


def _frame(page: Path, width: int, height: int) -> str:
    text = page.read_text().replace("</head>", f"{_letters()}</head>")
    style = "border:0;display:block"
    return f'<iframe width="{width}" height="{height}" style="{style}" srcdoc="{html.escape(text)}"></iframe>'


def _run(body: str, flags: Sequence[str], width: int, height: int, dark: bool) -> bytes:
    """Show a page; return its screenshot, or what Chromium prints with --dump-dom."""
    assert PROGRAM is not None
    with tempfile.TemporaryDirectory(prefix="elephan-chromium-", ignore_cleanup_errors=True) as folder:
        place, shot = Path(folder) / "page.html", Path(folder) / "shot.png"
        place.write_text(f'<!doctype html><html><meta charset="utf-8"><body style="margin:0">{body}</body></html>')
        given = list(flags) or [f"--screenshot={shot}"]
        words = [PROGRAM, *FLAGS, *given, *(["--force-dark-mode"] if dark else [])]
        words += [f"--user-data-dir={folder}/profile", f"--window-size={width},{height}", place.as_uri()]
        done = subprocess.run(words, capture_output=True, timeout=LONGEST_S, check=True)
        return done.stdout if flags else shot.read_bytes()

"""Layout of the pages in a browser: from a telephone to a wide screen nothing is cut off, and names can be read.

Pictures are compared with those in `references`. When a page is to look otherwise:
`ELEPHAN_WRITE_REFERENCES=1 python -m pytest tests/report/test_layout.py`, then look at them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from elephan.congestion_control import find
from elephan.loss_response.curves import simulate
from elephan.loss_response.page import write as write_cc
from tests.report import browser, pages

pytestmark = pytest.mark.skipif(browser.PROGRAM is None, reason="chromium is not installed")

WIDTHS = (360, 480, 600, 768, 900, 1024, 1200, 1440, 1920, 2000)
"""From a telephone to a wide screen."""

PICTURED = (360, 768, 1200, 2000)
HEIGHT = 1500

REFERENCES = Path(__file__).parent / "references"
SHRUNK = 5
"""References are smaller by this: letters are gone, what stands where is not."""

DIFFERENT = 36
"""Of 255, from which a point of a shrunk picture counts as different."""

MOST_DIFFERENT = 0.02
"""Part of the points that may be."""

SMALLEST_PX = 7.4
"""Letters in figures that can be read."""

Make = Callable[..., Any]


@pytest.fixture(scope="module")
def shown(make_record: Make, make_series: Make, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every kind of page, made once."""
    cc = find("storage_friendly")
    return {
        "wide": pages.wide(make_record, make_series, tmp_path_factory.mktemp("wide")),
        "long": pages.long(make_record, tmp_path_factory.mktemp("long")),
        "compare": pages.comparison(make_record, make_series, tmp_path_factory.mktemp("compare")),
        "paper": pages.paper(tmp_path_factory.mktemp("paper")),
        "congestion_control": write_cc(
            cc, simulate(cc), tmp_path_factory.mktemp("congestion_control"), ["elephan kernel load x"]
        )[0],
    }


@pytest.mark.parametrize("name", ["wide", "long", "compare", "congestion_control", "paper"])
def test_nothing_is_cut_off_from_a_telephone_to_a_wide_screen(shown: dict[str, Path], name: str) -> None:
    """At 1200 px the last column of a wide table read 1, 1, 3, 7 where there was 10, 17, 32, 70."""
    for found in browser.facts(shown[name], WIDTHS):
        width = found["width"]
        assert found["page"] <= width, f"{width} px: the page is {found['page']} px wide"
        assert not found["wide"], f"{width} px: beyond the edge"
        assert not found["cut"], f"{width} px: cut off"
        # A C file, a command, a scenario: their lines stay as they are, and scroll within their box.
        assert not [e for e in found["scrolled"] if not e.startswith("pre")], f"{width} px: to be scrolled"
        smallest_px = found["smallest_px"]
        assert smallest_px is None or smallest_px >= SMALLEST_PX, f"{width} px: letters of {smallest_px:.1f} px"


@pytest.mark.parametrize("width", [360, 600, 1200, 2000])
def test_names_in_figures_do_not_lie_over_each_other(shown: dict[str, Path], width: int) -> None:
    """Eight of the fourteen dots of the comparison lie together; its figures over time have eight curves each."""
    (found,) = browser.facts(shown["compare"], [width])
    assert found["names"] >= len(pages.MANY) and not found["over"]


HIGHLIGHT = """(() => {
  const legend = [...doc.querySelectorAll(".curves .legend [data-curve]")];
  legend[2].focus();
  const opacity = curve => [...doc.querySelectorAll(`.curves svg [id*="-curve-${curve}-"]`)]
    .map(e => parseFloat(doc.defaultView.getComputedStyle(e).opacity));
  return legend.map(e => [e.textContent, opacity(e.dataset.curve)]);
})()"""


def test_one_of_many_curves_stands_out_when_its_name_is_looked_at(shown: dict[str, Path]) -> None:
    (found,) = browser.facts(shown["compare"], [1200], HIGHLIGHT)
    assert len(found["said"]) == 8
    for number, (name, opacities) in enumerate(found["said"]):
        assert opacities and set(opacities) == {1.0 if number == 2 else 0.12}, name


def shrunk(picture: Image.Image) -> Image.Image:
    size = (picture.width // SHRUNK, picture.height // SHRUNK)
    return picture.resize(size, Image.Resampling.BOX)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", PICTURED)
@pytest.mark.parametrize("name", ["wide", "compare"])
def test_pages_look_as_they_did(shown: dict[str, Path], name: str, width: int, dark: bool) -> None:
    picture = shrunk(browser.picture(shown[name], width, HEIGHT, dark))
    place = REFERENCES / f"{name}-{width}-{'dark' if dark else 'light'}.png"
    if os.environ.get("ELEPHAN_WRITE_REFERENCES"):
        picture.quantize(48).save(place, optimize=True)
    reference = Image.open(place).convert("RGB")
    assert picture.size == reference.size
    apart = np.abs(np.asarray(picture, dtype=int) - np.asarray(reference, dtype=int)).max(axis=2)
    different = float((apart > DIFFERENT).mean())
    assert different <= MOST_DIFFERENT, f"{different:.1%} of {place.name} look different"


OVERPRINTED = """(() => {
  const box = e => e.getBoundingClientRect();
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2;
  return [...doc.querySelectorAll("figure svg")].filter(svg => svg.getClientRects().length).flatMap(svg => {
    const texts = [...svg.querySelectorAll("text")].filter(e => e.getClientRects().length && e.textContent.trim());
    return texts.flatMap((a, i) => texts.slice(i + 1).filter(b => meet(box(a), box(b)))
      .map(b => a.textContent.trim() + " / " + b.textContent.trim()));
  });
})()"""


@pytest.mark.parametrize("name", ["wide", "long", "compare", "congestion_control", "paper"])
def test_no_text_of_a_figure_lies_over_another(shown: dict[str, Path], name: str) -> None:
    """At 400 px, where the page enlarges letters, titles of axes were printed over ticks."""
    for found in browser.facts(shown[name], [400, 800, 1200], OVERPRINTED):
        assert not found["said"], found["width"]


RANKING = """(() => {
  const view = doc.defaultView, table = doc.getElementById("ranking"), all = doc.getElementById("everything");
  const heads = e => [...e.querySelectorAll("thead th")].map(th => th.textContent);
  return {display: view.getComputedStyle(table).display, heads: heads(table), all: heads(all),
    inside: all.closest("details") !== null, rows: table.querySelectorAll("tbody tr:not(.below)").length};
})()"""


def test_a_comparison_is_a_table_of_six_columns_with_the_others_on_demand(shown: dict[str, Path]) -> None:
    for found in browser.facts(shown["compare"], [1200, 800], RANKING):
        said = found["said"]
        assert said["display"] == "table" and said["rows"] == len(pages.MANY)
        assert said["heads"] == ["rank", "congestion control", "goodput", "drops caused", "queue", "neighbour keeps"]
        assert said["inside"] and set(said["heads"]) < set(said["all"])


SINGLE = """[...doc.querySelectorAll(".figures")].filter(e => e.children.length === 1)
  .map(e => e.firstElementChild.getBoundingClientRect().width / e.getBoundingClientRect().width)"""


def test_a_single_figure_uses_the_page(shown: dict[str, Path]) -> None:
    (found,) = browser.facts(shown["wide"], [1200], SINGLE)
    assert found["said"] and min(found["said"]) > 0.7

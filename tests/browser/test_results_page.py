"""The results page in a real browser: sorted by mouse and keyboard, wide and narrow, light and dark."""

from __future__ import annotations

import pytest
from tests.experiments.outputs.made import line

from crust.experiments.outputs.results_html import build
from crust.experiments.outputs.table_summary import ResultIndex, TableCellSpec, summarise
from crust.experiments.paper import EXPERIMENTS, write_results_page

pytestmark = pytest.mark.browser

HALF = "symmetric:0.5"
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"
LINES = [
    line("erm", HALF, 0.40),
    line("erm", HALF, 0.42, 1),
    line("co-teaching", HALF, 0.55),
    line("incv", HALF, 0.50, iterations=2, sub_epochs=10),
    line("crust", HALF, 0.60),
    line("crust", HALF, 0.64, 1),
]


@pytest.fixture
def results(tmp_path):
    return write_results_page(EXPERIMENTS, LINES, "cpu", tmp_path / "results.html")


def methods(page):
    return page.eval_on_selector_all("#table1 tbody th", "cells => cells.map(cell => cell.textContent)")


def test_a_heading_sorts_down_up_and_back(open_page, results):
    page = open_page(results)
    before = methods(page)
    assert before[0] == "erm"
    head = page.locator("#table1 thead th", has_text="CIFAR-10 sym 0.5")
    head.locator("button").click()
    assert methods(page)[:4] == ["crust", "co-teaching", "incv", "erm"]  # missing ones after them
    assert head.get_attribute("aria-sort") == "descending"
    head.locator("button").click()
    assert methods(page)[:4] == ["erm", "incv", "co-teaching", "crust"]
    assert head.get_attribute("aria-sort") == "ascending"
    head.locator("button").click()
    assert methods(page) == before
    assert head.get_attribute("aria-sort") is None


def test_the_keyboard_is_enough(open_page, results):
    page = open_page(results)
    page.locator("#table1 thead button", has_text="method").focus()
    page.keyboard.press("Enter")
    assert methods(page) == sorted(methods(page))
    page.keyboard.press("Space")
    assert methods(page) == sorted(methods(page), reverse=True)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    heads = page.locator("#table1 thead th")
    assert heads.nth(0).get_attribute("aria-sort") is None
    assert heads.nth(1).get_attribute("aria-sort") == "descending"


def test_sorting_one_table_leaves_the_others(open_page, results):
    page = open_page(results)
    first = methods(page)
    page.locator("#runs thead button", has_text="last epoch").click()
    rows = page.eval_on_selector_all("#runs tbody tr", "rows => rows.map(row => row.cells[5].textContent)")
    assert rows == ["64.0%", "60.0%", "55.0%", "50.0%", "42.0%", "40.0%"]
    assert methods(page) == first


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 400, 1280, 1920])
def test_only_tables_scroll_sideways(open_page, results, width, scheme):
    page = open_page(results, width=width, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.locator("#figure1 svg polyline").count() > 0
    back, ink = (page.evaluate(f"getComputedStyle(document.body).{what}") for what in ("backgroundColor", "color"))
    assert (_brightness(back) > _brightness(ink)) == (scheme == "light")


def test_the_first_column_stays_while_a_table_scrolls(open_page, results):
    page = open_page(results, width=400)
    name = page.locator("#table1 tbody th").first
    before = name.bounding_box()["x"]
    page.locator("#table1 .wide").evaluate("box => { box.scrollLeft = 300; }")
    assert abs(name.bounding_box()["x"] - before) < 1


def test_tables_use_a_wide_window(open_page, results):
    page = open_page(results, width=1920)
    for table in ("#table1", "#table2", "#runs"):
        hidden = page.locator(f"{table} .wide").evaluate("box => box.scrollWidth - box.clientWidth")
        assert hidden == 0, table


def test_long_names_leave_room_for_numbers_on_a_narrow_screen(open_page, tmp_path):
    long = "random model=mlp epochs=3 learning_rate=0.05 fraction=0.3"  # many wide letters
    summary = summarise("t", "T", "", [TableCellSpec(long, "a", "crust", HALF)], ResultIndex(LINES), "cpu", [0])
    (tmp_path / "page.html").write_text(build("T", "", [summary]))
    page = open_page(tmp_path / "page.html", width=390)
    assert page.locator("#t tbody th").bounding_box()["width"] < 390 / 2
    for label in page.locator("#t svg text.end").all():
        box = label.bounding_box()
        assert box["x"] + box["width"] <= 390 - 5


def test_hostile_names_are_shown_and_not_run(open_page, tmp_path):
    entries = [TableCellSpec(HOSTILE, HOSTILE, "erm", HALF), TableCellSpec("crust", HOSTILE, "crust", HALF)]
    run = {**line("erm", HALF, 0.5), "date": HOSTILE}
    summary = summarise("t", HOSTILE, HOSTILE, entries, ResultIndex([run]), "cpu", [0])
    (tmp_path / "page.html").write_text(build(HOSTILE, HOSTILE, [summary], lines=[run]))
    page = open_page(tmp_path / "page.html")
    asked = []
    page.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    assert page.locator("h1").inner_text() == HOSTILE
    assert page.locator("img").count() == 0
    page.locator("#t thead button").first.click()
    assert asked == []


def _brightness(colour):
    return sum(map(float, colour[colour.index("(") + 1 : -1].split(",")[:3]))

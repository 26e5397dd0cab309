"""Working in a review: classes by number, exclusions, notes, the map, tables and texts, a phone, the end."""

import numpy as np
import pytest
from tests.audit.samples import audit
from tests.audit.serving import CLASSES, serving
from tests.browser.reviewing import kept, ready, settled, suspects

from crust.report.payload import marked_cells
from crust.report.previews import rows_of

pytestmark = pytest.mark.browser

N = 60
TOWNS = ["Ulm", "Bonn", "Köln"]


def frame():
    found = audit(N, CLASSES)
    found["medoids"] = [[(i + 3) % N, (i + 6) % N, (i + 9) % N] for i in range(N)]
    return found


def data():
    town = [TOWNS[i % 3] for i in range(N)]
    town[7] = "Bonn" if town[7] != "Bonn" else "Ulm"
    return {"age": [30 + i % 3 for i in range(N)], "town": town, "note": ["long words " * 30] * N}


def test_numbers_are_classes(open_page, server, table):
    first, second = suspects(table)[:2]
    page = ready(open_page(server.link))
    other = next(i for i, name in enumerate(CLASSES) if name != table["given_label"][first])
    page.keyboard.press(str(other + 1))
    settled(page, 1, ".relabel")
    same = CLASSES.index(table["given_label"][second])
    page.keyboard.press(str(same + 1))  # its own label: it is kept
    settled(page, 1, ".keep")
    page.keyboard.press("9")  # no class has it
    assert kept(server) == {first: ("relabel", other), second: ("keep", None)}
    page.locator("#labels button").nth(other).click()
    settled(page, 3)


def test_digits_are_their_own_keys(open_page, tmp_path):
    table = audit(N, (0, 3, 7))
    with serving(tmp_path, table, (0, 3, 7)) as server:
        page = ready(open_page(server.link))
        assert page.locator("#labels button").all_inner_texts() == ["3", "7", "0"]
        first = suspects(table)[0]
        other = next(name for name in (3, 7) if name != table["given_label"][first])
        page.keyboard.press(str(other))
        settled(page, 1, ".relabel")
        assert kept(server) == {first: ("relabel", (0, 3, 7).index(other))}
        page.context.close()


def test_excluded_with_a_reason_and_taken_back(open_page, server, table):
    first, second = suspects(table)[:2]
    page = ready(open_page(server.link))
    page.keyboard.press("x")
    page.wait_for_selector("#why[open]")
    page.keyboard.press("k")  # nothing but a reason is taken here
    page.keyboard.press("2")
    settled(page, 1, ".exclude")
    assert "excluded: unreadable by first" in page.inner_text(f"#grid [data-index='{first}'] .state")
    page.click("#exclude")
    page.click("#reasons button >> nth=0")
    settled(page, 2, ".exclude")
    decisions = {one.example: (one.kind, one.reason) for one in server.store.decisions()}
    assert decisions == {first: ("exclude", "unreadable"), second: ("exclude", "no class fits")}
    page.select_option("#what", "excluded")
    assert page.locator("#grid .item").count() == 2
    page.keyboard.press("Escape")
    page.locator("h1").click()
    page.keyboard.press("u")
    settled(page, 1, ".exclude")
    assert kept(server) == {first: ("exclude", None)}


def test_a_note_stays_beside_whatever_is_decided(open_page, server, table):
    first = suspects(table)[0]
    page = ready(open_page(server.link))
    page.keyboard.press("t")
    page.keyboard.type("<b>ask</b> the lab")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.activeElement.dataset.index !== undefined")
    page.keyboard.press("k")
    settled(page, 1, ".keep")
    page.reload()
    ready(page)
    page.select_option("#what", "noted")
    assert page.locator("#grid .item").count() == 1
    assert page.input_value("#note") == "<b>ask</b> the lab"
    one = server.store.decisions()[0]
    assert (one.example, one.kind, one.note, one.version) == (first, "keep", "<b>ask</b> the lab", 2)


def test_sorted_and_what_is_left(open_page, server, table):
    page = ready(open_page(server.link))
    page.select_option("#sort", "index")
    shown = page.eval_on_selector_all("#grid .item", "all => all.map((one) => Number(one.dataset.index))")
    assert shown == sorted(suspects(table))[: len(shown)]
    page.locator("h1").click()
    page.keyboard.press("k")
    settled(page, 1)
    many = len(suspects(table))
    assert page.inner_text("#progress") == f"1 of {many} label issues decided, {many - 1} left; you are first"
    assert page.eval_on_selector("#bar", "bar => [bar.value, bar.max]") == [1, many]


def test_rows_of_a_table_are_a_table(open_page, tmp_path):
    table = frame()
    with serving(tmp_path, table, looks=rows_of(data())) as server:
        page = ready(open_page(server.link, width=1400))
        heads = page.locator("table.examples thead th").all_inner_texts()
        assert heads[-3:] == ["age", "town", "note"]
        page.select_option("#what", "all")
        order = table.sort_values("label_quality")["index"].tolist()
        place = order.index(7)
        for _ in range(place // 24):
            page.click("#next")
        page.locator("#grid [data-index='7']").click()
        assert page.locator("#grid [data-index='7'] mark").all_inner_texts() == ["Ulm"]
        side = page.locator("#evidence .beside-each-other tbody tr")
        assert side.nth(1).locator("td").all_inner_texts() == ["31", "31", "31", "31"]
        assert "of 3 labelled" in page.inner_text("#evidence .hint")
        row = page.locator("#grid [data-index='7']")
        assert row.inner_text().count("long words") < 8
        row.locator(".more").click()  # the whole cell; and the row is not chosen by it
        assert row.inner_text().count("long words") == 30
        page.keyboard.press("Escape")
        page.locator("#grid [data-index='7']").click()
        page.keyboard.press("k")
        settled(page, 1)
        assert kept(server) == {7: ("keep", None)}
        page.keyboard.press("ArrowDown")
        page.keyboard.press(" ")
        assert page.inner_text("#selected") == "1 selected"
        page.context.close()


def test_marked_cells_are_those_that_differ_most():
    rows = {str(i): [str(30 + i % 3), TOWNS[i % 3], f"id {i}"] for i in range(30)}
    rows["4"] = ["90", "Ulm", "id 4"]
    near = {str(i): [{"index": (i + 3) % 30}, {"index": (i + 6) % 30}] for i in range(30)}
    marks = marked_cells(rows, near)
    assert marks["4"] == [0]  # one of three; the name of every row differs, and says nothing
    assert set(marks) <= {"4", "1", "28"}  # and those beside it


def test_duplicates_stand_side_by_side(open_page, tmp_path):
    table = frame()
    order = suspects(table)
    table["duplicate_of"] = -1
    one, other = sorted(order[:2])
    table.loc[other, "duplicate_of"] = one
    with serving(tmp_path, table, looks=rows_of({"text": [f"text {i}" for i in range(N)]})) as server:
        page = ready(open_page(server.link))
        assert "Another example is the very same" in page.inner_text("#evidence")
        last = page.locator("#evidence .near").last
        assert f"text {order[1]}" in last.inner_text()
        assert table["given_label"][order[1]] in last.inner_text()
        page.context.close()


def points():
    return np.stack([np.linspace(0, 1, 120), np.full(120, 0.5)], axis=1).astype(np.float32), "made-up numbers"


def test_the_map_selects_into_the_list(open_page, tmp_path, table):
    with serving(tmp_path, table, points=points) as server:
        page = ready(open_page(server.link))
        page.click("#show-map")
        page.wait_for_selector(".map[data-ready=yes]")
        box = page.locator(".map canvas").bounding_box()
        middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        side = min(box["width"], box["height"]) * 0.94
        page.mouse.click(*middle)  # the nearest point; examples lie from left to right by their index
        assert page.locator("#grid .item").count() == 1
        assert int(page.get_attribute("#grid .item", "data-index")) in (59, 60)
        page.mouse.move(middle[0] - side * 0.51, middle[1] - 30)
        page.mouse.down()
        for x, y in ((-0.25, -30), (-0.25, 30), (-0.51, 30)):
            page.mouse.move(middle[0] + side * x, middle[1] + y, steps=4)
        page.mouse.up()
        assert page.inner_text("#count").startswith("30 examples")
        shown = page.eval_on_selector_all("#grid .item", "all => all.map((one) => Number(one.dataset.index))")
        assert max(shown) < 30
        page.select_option(".map [name=colour]", "quality")
        assert "low label quality" in page.inner_text(".legend")
        page.select_option(".map [name=colour]", "issue")
        assert page.locator(".legend li").all_inner_texts() == ["label issues", "all others"]
        page.click(".map [name=none]")
        assert page.inner_text("#count").startswith(f"{len(suspects(table))} examples")  # as it was before
        page.select_option("#what", "all")
        page.focus(".map canvas")
        for key in (*"+++++++", "ArrowRight", "Enter"):
            page.keyboard.press(key)
        assert not page.inner_text("#count").startswith("120 examples")
        page.mouse.move(*middle)
        page.context.close()


def test_on_a_phone_the_details_open_over_the_list(open_page, server, table):
    page = ready(open_page(server.link, width=400, height=800))
    assert not page.is_visible("#panel")
    page.locator("#grid .item").nth(1).click()
    assert page.is_visible("#panel")
    box = page.locator("#panel").bounding_box()
    assert (box["y"], box["width"]) == (0, 400)
    assert page.inner_text("#panel h2") == table["id"][suspects(table)[1]]
    page.click("#keep")
    settled(page, 1)
    assert page.inner_text("#panel h2") == table["id"][suspects(table)[2]]  # the next one
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.click("#close-panel")
    assert not page.is_visible("#panel")


def test_the_end_says_what_is_next(open_page, tmp_path, table):
    with serving(tmp_path, table, next_steps=["crust apply 'a run'"]) as server:
        page = ready(open_page(server.link))
        page.keyboard.press("Enter")
        settled(page, 1)
        page.click("#finish")
        assert page.inner_text("#commands") == "crust apply 'a run'"
        assert "new labels" in page.inner_text("#sums")
        page.click("#go-on")
        page.keyboard.press("k")
        settled(page, 2)
        page.click("#finish")
        page.click("#end")
        page.wait_for_selector("#end:disabled")
        assert server.finished
        page.context.close()


def test_the_server_is_asked_for_what_the_page_does_not_hold(open_page, tmp_path, table):
    with serving(tmp_path, table, most=40) as server:
        page = ready(open_page(server.link))
        order = table.sort_values("label_quality")["index"].tolist()
        page.select_option("#what", "all")
        assert "40 examples of the lowest label quality, of 120" in page.inner_text("#rest")
        wanted = order[100]
        page.fill("#search", table["id"][wanted])
        page.wait_for_function("() => document.querySelectorAll('#grid .item').length === 0")
        page.click("#rest button")
        page.wait_for_selector(f"#grid [data-index='{wanted}']")
        assert page.locator("#grid .item").count() == 1
        page.focus("#grid .item")
        page.keyboard.press("k")
        settled(page, 1)
        assert kept(server) == {wanted: ("keep", None)}
        page.fill("#search", "")
        page.wait_for_function("() => document.querySelectorAll('#grid .item').length === 24")
        page.select_option("#given", label="dog")
        page.click("#rest button")
        fitting = [i for i in order if table["given_label"][i] == "dog"]
        page.wait_for_function(f"() => document.querySelector('#count').textContent.startsWith('{len(fitting)} ')")
        shown = page.eval_on_selector_all("#grid .item", "all => all.map((one) => Number(one.dataset.index))")
        assert shown == fitting[:24]  # in one order, from wherever they came
        page.context.close()

"""The report in a real browser: it opens without a network, filters, sorts and searches, and shows text as text."""

import numpy as np
import pytest
from benchmarks.pages import FRAMES, MOVE
from tests.audit.samples import HOSTILE, audit
from tests.report.test_audit_page import calibration

from crust.report.page import audit_page
from crust.report.previews import Pictures, as_image, rows_of

pytestmark = pytest.mark.browser

CLASSES = ["cat", "dog", "cow"]


def write(path, table, classes=CLASSES, **options):
    path.write_text(audit_page(table, classes, **options), encoding="utf-8")
    return path


def colours(index):
    return as_image(np.full((3, 32, 32), index % 256, np.uint8))


def ready(page):
    page.wait_for_selector("html[data-ready=yes]")
    return page


def cards(page, part):
    return page.locator(f"#gallery .card {part}").all_inner_texts()


@pytest.fixture
def table():
    found = audit(300, CLASSES, [f"folder/image {i:03d}.png" for i in range(300)])
    found["medoids"] = [[(i + 1) % 300, (i + 7) % 300] for i in range(300)]
    return found


def test_it_filters_sorts_searches_and_turns_pages(open_page, tmp_path, table):
    page = ready(open_page(write(tmp_path / "report.html", table, looks=Pictures(colours), calibration=calibration())))
    worst = table.sort_values("label_quality")
    listed = worst[1 - worst["label_quality"] >= calibration()["cut"]["threshold"]]
    assert cards(page, ".name") == listed["id"].tolist()[:60]  # the suspects first
    assert page.inner_text(".tiles dd >> nth=0") == f"{len(listed)}"
    page.select_option("#what", "all")
    assert cards(page, ".name") == worst["id"].tolist()[:60]
    assert "300 of 300 examples; page 1 of 5" in page.inner_text("#count")
    assert page.evaluate("[...document.images].every((image) => image.complete && image.naturalWidth > 0)")
    page.click("#next")
    assert cards(page, ".name") == worst["id"].tolist()[60:120]
    page.keyboard.press("ArrowLeft")
    assert cards(page, ".name") == worst["id"].tolist()[:60]
    page.select_option("#given", label="dog")
    page.select_option("#suggested", label="cow")
    some = worst[(worst["given_label"] == "dog") & (worst["predicted_label"] == "cow")]
    assert cards(page, ".name") == some["id"].tolist()[:60]
    page.select_option("#sort", "index")
    assert cards(page, ".name") == some.sort_values("index")["id"].tolist()[:60]
    page.click("#clear")
    assert cards(page, ".name") == listed["id"].tolist()[:60]
    page.select_option("#what", "differs")
    assert cards(page, ".name") == worst[worst["given_label"] != worst["predicted_label"]]["id"].tolist()[:60]
    page.select_option("#what", "all")
    page.select_option("#sort", "sure")
    assert cards(page, ".name") == worst["id"].tolist()[::-1][:60]
    page.keyboard.press("Escape")
    page.locator("h1").click()
    page.keyboard.press("/")
    page.keyboard.type("image 12")
    page.wait_for_function("() => document.querySelectorAll('#gallery .card').length === 10")
    assert all("image 12" in name for name in cards(page, ".name"))
    page.fill("#search", "no such thing")
    page.wait_for_function("() => document.querySelectorAll('#gallery .card').length === 0")
    assert page.inner_text("#count") == "No example fits these filters."


def test_a_number_of_the_matrix_leads_to_its_examples(open_page, tmp_path, table):
    page = ready(open_page(write(tmp_path / "report.html", table)))
    page.click('.matrix button[data-given="0"][data-suggested="2"]')
    some = table[(table["given_label"] == "cat") & (table["predicted_label"] == "cow")]
    assert page.inner_text("#count").startswith(f"{len(some)} of 300")
    assert page.eval_on_selector("#given", "e => e.value") == "0"
    assert page.evaluate("document.querySelector('#suspects').getBoundingClientRect().top < innerHeight")


def test_one_example_with_its_evidence_by_keyboard(open_page, tmp_path, table):
    page = ready(open_page(write(tmp_path / "report.html", table, looks=Pictures(colours))))
    worst = table[table["given_label"] != table["predicted_label"]].sort_values("label_quality")
    page.focus("#gallery .card")
    page.keyboard.press("Enter")
    assert page.inner_text("#detail h3") == worst["id"].iloc[0]
    shown = page.locator("#detail .near .labels").all_inner_texts()
    assert shown == [table["given_label"][i] for i in worst["medoids"].iloc[0]]
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#detail h3") == worst["id"].iloc[1]
    page.keyboard.press("Escape")
    page.wait_for_function("() => document.activeElement.dataset.place === '1'")


def test_hostile_data_is_shown_as_text(open_page, tmp_path):
    n = len(HOSTILE)
    plain = [text.replace("\0", "\ufffd").replace("\ud800", "\ufffd").replace("\x1b", "\ufffd") for text in HOSTILE]
    table = audit(n, HOSTILE, HOSTILE)
    page = ready(
        open_page(write(tmp_path / "report.html", table, HOSTILE, looks=rows_of({"text": HOSTILE}), name=HOSTILE[0]))
    )
    assert page.evaluate("window.broken") is None
    assert page.inner_text("h1") == f"Label audit of {HOSTILE[0]}"
    page.select_option("#what", "all")
    order = table.sort_values("label_quality")["index"].tolist()
    names = page.eval_on_selector_all("#gallery .name", "all => all.map((one) => one.textContent)")
    assert names == [plain[i] for i in order]
    options = page.eval_on_selector_all("#given option", "all => all.map((one) => one.textContent)")
    assert options == ["any", *plain]
    page.locator("#gallery .card").nth(order.index(7)).click()
    assert page.eval_on_selector("#detail .row", "one => one.textContent") == plain[7]  # 10 kB, whole
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_it_fits_every_screen_and_paper(open_page, tmp_path, table):
    path = write(tmp_path / "report.html", table, looks=Pictures(colours), calibration=calibration())
    for width, scheme in ((320, "dark"), (390, "light"), (768, "dark"), (1920, "light")):
        page = ready(open_page(path, width=width, scheme=scheme))
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.locator("#gallery .card").first.click()
        assert page.evaluate("document.querySelector('#detail').getBoundingClientRect().right <= innerWidth")
    page.keyboard.press("Escape")
    page.emulate_media(media="print")
    assert not page.is_visible("#filters")
    assert page.is_visible("#gallery .card")


def large(n=100_000):
    classes = [f"class {i}" for i in range(100)]
    return audit(n, classes, [f"folder {i % 100}/image number {i:06d}.jpeg" for i in range(n)]), classes


@pytest.mark.slow  # measures time
def test_a_hundred_thousand_examples(open_page, tmp_path):
    """Usable within two seconds: opened, and a filter and a search answered. The best of some: machines are busy."""
    table, classes = large()
    path = write(tmp_path / "report.html", table, classes)
    assert path.stat().st_size < 8_000_000
    seconds = []
    for _ in range(10):
        page = ready(open_page(path))
        opened = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
        page.select_option("#what", "all")
        assert page.locator("#gallery .card").count() == 60  # one page in the document, however many there are
        work = page.evaluate(
            """() => {
              const start = performance.now();
              const given = document.getElementById("given");
              given.value = "7";
              given.dispatchEvent(new Event("change"));
              return performance.now() - start;
            }"""
        )
        shown = page.inner_text("#count")
        assert shown.startswith(f"{int((table['given_label'] == 'class 7').sum()):,} of 100,000 examples")
        seconds.append((opened + work) / 1000)
        page.select_option("#given", "-1")
        page.fill("#search", "number 099999")
        page.wait_for_function("() => document.querySelectorAll('#gallery .card').length === 1")
        page.fill("#search", "")
        page.wait_for_function("() => document.querySelectorAll('#gallery .card').length === 60")
        page.click("#last")
        assert "page 1,667 of 1,667" in page.inner_text("#count")
        if seconds[-1] < 2:
            break
    assert min(seconds) < 2, seconds


def test_a_map_of_a_hundred_thousand_moves_smoothly(open_page, tmp_path):
    """Twenty frames a second, dragged and zoomed. The best of some: machines are busy."""
    table, classes = large()
    points = np.random.default_rng(0).random((len(table), 2)).astype(np.float32)
    path = tmp_path / "report.html"
    path.write_text(audit_page(table, classes, points=(points, "features")), encoding="utf-8")
    page = ready(open_page(path, width=1400))
    page.wait_for_selector(".map[data-ready=yes]")
    drawn = []
    for zooms in (False, True):
        drawn.append(0.0)
        for _ in range(10):
            drawn[-1] = max(drawn[-1], page.evaluate(MOVE, zooms))
            if drawn[-1] >= FRAMES:
                break
    assert min(drawn) >= FRAMES, drawn

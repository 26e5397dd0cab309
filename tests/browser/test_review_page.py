"""The review page in a real browser: by keyboard, many at once, in two windows, and again after it was closed."""

import pytest
from tests.audit.samples import HOSTILE, audit
from tests.audit.serving import CLASSES, serving
from tests.browser.reviewing import colours, kept, not_looking, ready, settled, suspects

from crust.report.previews import Pictures, rows_of
from crust.runs.review_session import way_to

pytestmark = pytest.mark.browser


def test_ten_relabelled_are_found_again(open_page, tmp_path, table):
    ten = suspects(table)[:10]
    with serving(tmp_path, table) as server:
        page = ready(open_page(server.link))
        for _ in ten:
            page.keyboard.press("Enter")
        settled(page, 10, ".relabel")
        assert (
            page.inner_text("#progress")
            == f"10 of {len(suspects(table))} label issues decided, {len(suspects(table)) - 10} left; you are first"
        )
        page.context.close()
    with serving(tmp_path, table, who="second") as server:
        expected = {i: ("relabel", CLASSES.index(table["predicted_label"][i])) for i in ten}
        assert kept(server) == expected
        page = ready(open_page(server.link))
        settled(page, 10, ".relabel")
        assert [
            int(i) for i in page.eval_on_selector_all("#grid li.done", "all => all.map(e => e.dataset.index)")
        ] == ten
        assert page.get_attribute("#grid li.current", "data-index") == str(suspects(table)[10])
        assert "by first" in page.inner_text("#grid li.done .state >> nth=0")
        page.context.close()


def test_the_file_for_the_browser_leads_to_the_page(open_page, server):
    with way_to(server.link) as path:
        page = open_page(path)
        page.wait_for_url(server.link)
        ready(page)
    page.context.close()


def test_the_link_without_its_last_slash_works(open_page, server):
    page = ready(open_page(server.link.removesuffix("/")))
    assert page.url == server.link
    page.context.close()


def test_every_decision_has_a_key(open_page, server, table):
    order = suspects(table)
    page = ready(open_page(server.link))
    page.wait_for_function("() => document.querySelector('#grid img').naturalWidth > 0")  # its picture has come
    page.keyboard.press("k")
    page.keyboard.press("s")
    page.keyboard.press("r")
    given, other = table["given_label"][order[2]], next(c for c in CLASSES if c != table["given_label"][order[2]])
    page.keyboard.type(other)
    page.keyboard.press("Enter")
    settled(page, 3)
    assert kept(server) == {
        order[0]: ("keep", None), order[1]: ("skip", None), order[2]: ("relabel", CLASSES.index(other))
    }  # fmt: skip
    page.keyboard.press("u")
    settled(page, 2)
    assert order[2] not in kept(server)
    assert page.get_attribute("#grid li.current", "data-index") == str(order[2])
    page.keyboard.press("r")  # another label, but the given one after all: that is to keep it
    page.keyboard.type(given)
    page.keyboard.press("Enter")
    settled(page, 3)
    assert kept(server)[order[2]] == ("keep", None)
    page.keyboard.press("r")
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowLeft")
    assert page.get_attribute("#grid li.current", "data-index") == str(order[2])
    assert len(kept(server)) == 3
    page.keyboard.press("n")
    assert page.inner_text("#place").startswith("page 2 of")
    page.keyboard.press("p")
    assert page.inner_text("#place").startswith("page 1 of")


def test_several_at_once_and_undone_at_once(open_page, server, table):
    order = suspects(table)
    page = ready(open_page(server.link))
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    assert page.inner_text("#selected") == "3 selected"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    assert page.inner_text("#selected") == "4 selected"
    page.click("#keep")
    settled(page, 4, ".keep")
    assert kept(server) == dict.fromkeys(order[:4], ("keep", None))
    page.keyboard.press("Escape")
    page.locator("#grid li").nth(5).click()
    page.locator("#grid li").nth(7).click(modifiers=["Shift"])
    page.keyboard.press("Enter")
    settled(page, 3, ".relabel")
    assert set(kept(server)) == {*order[:4], *order[5:8]}
    page.keyboard.press("u")
    settled(page, 4)
    page.click("#undo")
    settled(page, 0)
    assert kept(server) == {}
    page.keyboard.press("a")
    page.keyboard.press("s")
    page.wait_for_function("() => document.querySelector('#place').textContent.startsWith('page 2 of')")
    page.keyboard.press("p")
    settled(page, 24, ".skip")
    assert kept(server) == dict.fromkeys(order[:24], ("skip", None))


def test_two_windows_do_not_lose_each_others_work(open_page, server, table):
    order = suspects(table)
    one, two = ready(open_page(server.link)), ready(open_page(server.link))
    with not_looking(two):
        one.keyboard.press("k")
        settled(one, 1)
        two.keyboard.press("Enter")
        two.wait_for_selector("#banner:not([hidden])")
    assert "Changed in another window meanwhile" in two.inner_text("#banner")
    assert f"Example {order[0]} is kept by first" in two.inner_text("#banner")
    assert kept(server) == {order[0]: ("keep", None)}
    two.click("#ours")
    settled(two, 1, ".relabel")
    mine = ("relabel", CLASSES.index(table["predicted_label"][order[0]]))
    assert kept(server) == {order[0]: mine}
    settled(one, 1, ".relabel")  # the first window sees it too
    one.keyboard.press("Enter")
    settled(one, 2)
    settled(two, 2)
    one.keyboard.press("u")
    settled(two, 1)
    assert kept(server) == {order[0]: mine}


def test_a_key_held_down_moves_but_decides_once(open_page, server, table):
    order = suspects(table)
    page = ready(open_page(server.link))

    def hold(key):
        for _ in range(10):
            page.keyboard.down(key)  # again and again without up: as a keyboard repeats
        page.keyboard.up(key)

    for number, key in enumerate(("Enter", "k", "s"), 1):
        hold(key)
        settled(page, number)
        page.wait_for_timeout(100)  # long enough for more
        assert list(kept(server)) == sorted(order[:number])
    hold("u")
    settled(page, 2)
    page.wait_for_timeout(100)
    assert len(kept(server)) == 2
    page.focus("#take")
    hold("Enter")
    settled(page, 3)
    page.wait_for_timeout(100)
    assert len(kept(server)) == 3
    page.focus("#other")  # where Enter opens the list, and goes on in it
    hold("Enter")
    assert page.is_visible("#picker")
    page.keyboard.press("Escape")
    assert len(kept(server)) == 3
    page.focus("#grid li >> nth=0")
    page.keyboard.press("Home")
    hold("ArrowRight")
    assert page.get_attribute("#grid li.current", "data-index") == str(order[10])


def test_leaving_it_as_the_other_window_has_it(open_page, server, table):
    one, two = ready(open_page(server.link)), ready(open_page(server.link))
    with not_looking(two):
        one.keyboard.press("a")
        one.keyboard.press("k")
        one.wait_for_function("() => document.querySelector('#progress').textContent.startsWith('24 of')")
        two.keyboard.press("s")
        two.wait_for_selector("#theirs")
    two.click("#theirs")
    assert not two.is_visible("#banner")
    assert kept(server)[suspects(table)[0]] == ("keep", None)


def test_filters_and_what_to_show(open_page, server, table):
    order = suspects(table)
    page = ready(open_page(server.link))
    shown = "all => all.map(e => Number(e.dataset.index))"
    page.select_option("#given", label="dog")
    some = [i for i in order if table["given_label"][i] == "dog"]
    assert page.eval_on_selector_all("#grid li", shown) == some[:24]
    page.focus("#grid li.current")
    page.keyboard.press("k")
    settled(page, 1)
    page.select_option("#given", "-1")
    page.select_option("#what", "decided")
    assert page.eval_on_selector_all("#grid li", shown) == some[:1]
    page.select_option("#what", "open")
    assert page.eval_on_selector_all("#grid li", shown) == [i for i in order if i != some[0]][:24]
    page.select_option("#what", "all")
    assert page.inner_text("#count").startswith("120 examples")
    page.fill("#search", "image 11")
    page.wait_for_function("() => document.querySelectorAll('#grid li').length === 10")


def test_evidence_is_beside_the_example(open_page, server, table):
    first = suspects(table)[0]
    page = ready(open_page(server.link))
    assert page.inner_text("#panel h2") == table["id"][first]
    assert page.locator("#panel .near .labels").all_inner_texts() == [
        table["given_label"][i] for i in table["medoids"][first]
    ]
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#panel h2") == table["id"][suspects(table)[1]]


def test_hostile_data_is_shown_as_text(open_page, tmp_path):
    table = audit(len(HOSTILE), HOSTILE, HOSTILE)
    plain = [text.replace("\0", "\ufffd").replace("\ud800", "\ufffd").replace("\x1b", "\ufffd") for text in HOSTILE]
    words = {"who": "<b>first</b>", "name": HOSTILE[1]}
    with serving(tmp_path, table, HOSTILE, rows_of({"text": HOSTILE}), least=0.0001, **words) as server:
        page = ready(open_page(server.link))
        assert page.inner_text("h1") == page.title() == f"Review of {HOSTILE[1]}"
        page.select_option("#what", "all")
        order = table.sort_values("label_quality")["index"].tolist()
        names = page.eval_on_selector_all("#grid .name", "all => all.map((one) => one.textContent)")
        assert names == [plain[i] for i in order]
        page.locator("#grid li").nth(order.index(7)).click()
        page.wait_for_function("() => document.querySelector('#panel .text').textContent.length > 10000")
        page.keyboard.press("r")
        page.keyboard.type("<img")
        assert page.locator("#classes li").count() == 1
        page.keyboard.press("Enter")
        settled(page, 1)
        assert "<b>first</b>" in page.inner_text("#grid li.done .state")
        assert page.evaluate("window.broken") is None
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.context.close()


def test_an_image_that_is_gone_is_said_to_be(browser, tmp_path, table):
    from crust.errors import InputError

    def read(index):
        if index == suspects(table)[0]:
            raise InputError("it has moved")
        return colours(index)

    with serving(tmp_path, table, looks=Pictures(read)) as server:
        page = browser.new_page()  # the browser itself complains of the missing image, as it should
        page.goto(server.link)
        ready(page)
        page.wait_for_selector("#grid li.current .missing")
        assert page.inner_text("#grid li.current .missing") == "this image cannot be read, or is no longer there"
        page.keyboard.press("k")
        settled(page, 1)
        page.close()


@pytest.mark.parametrize(("width", "scheme"), [(320, "dark"), (390, "light"), (768, "dark"), (1920, "light")])
def test_it_fits_every_screen(open_page, server, width, scheme):
    page = ready(open_page(server.link, width=width, scheme=scheme))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.click("#take")
    settled(page, 1)
    assert page.evaluate("document.querySelector('#actions').getBoundingClientRect().bottom <= innerHeight + 1")


@pytest.mark.slow  # measures time
def test_a_hundred_thousand_examples(open_page, tmp_path):
    """Usable within two seconds: opened, and the first decision on disk. The best of some: machines are busy."""
    classes = [f"class {i}" for i in range(100)]
    table = audit(100_000, classes, [f"folder/image {i}" for i in range(100_000)])
    with serving(tmp_path, table, classes, Pictures(colours)) as server:
        seconds = []
        for number in range(10):
            page = ready(open_page(server.link))
            page.keyboard.press("Enter")
            settled(page, number + 1)
            seconds.append(page.evaluate("performance.now()") / 1000)  # since it was asked for
            page.context.close()
            if seconds[-1] < 2:
                break
        assert min(seconds) < 2, seconds

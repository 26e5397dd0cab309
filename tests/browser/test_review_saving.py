"""The review page in a real browser: what is not saved yet, or cannot be, and undo."""

import sqlite3

import pytest
from tests.audit.serving import CLASSES, serving
from tests.browser.reviewing import held_back, kept, ready, settled, suspects

pytestmark = pytest.mark.browser


@pytest.fixture
def window(browser, server):
    """A page of whose failed requests the browser may complain."""
    page = browser.new_page()
    page.goto(server.link)
    yield ready(page)
    page.close()


def test_undo_waits_for_what_is_being_saved(open_page, server, table):
    first, second = suspects(table)[:2]
    page = ready(open_page(server.link))
    page.keyboard.press("k")
    settled(page, 1)
    asked = []
    page.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
    with held_back(page, "**/decide") as held:
        with page.expect_request("**/decide"):
            page.keyboard.press("Enter")
        page.keyboard.press("u")
        page.wait_for_timeout(200)  # long enough for an undo that does not wait
        assert len(held) == 1
        assert "undo" not in asked
    page.wait_for_selector(f"#grid li.current[data-index='{second}']:not(.relabel)")
    assert kept(server) == {first: ("keep", None)}
    assert server.store.changes(0)[1] == 3  # saved, and then undone
    page.keyboard.press("u")
    settled(page, 0)
    assert kept(server) == {}


def test_what_could_not_be_undone_is_undone_the_next_time(window, server, table):
    first, second = suspects(table)[:2]
    window.keyboard.press("k")
    window.keyboard.press("s")
    settled(window, 2)
    with held_back(window, "**/undo") as held:
        with window.expect_request("**/undo"):
            window.keyboard.press("u")
        window.keyboard.press("u")  # the older one is not undone without the newer
        held.pop().abort()
        window.wait_for_selector("#banner:has-text('Not undone.')")
        window.wait_for_timeout(200)  # long enough for another
        assert held == []
    assert set(kept(server)) == {first, second}
    window.keyboard.press("u")
    settled(window, 1)
    assert kept(server) == {first: ("keep", None)}
    window.keyboard.press("u")
    settled(window, 0)
    assert window.is_disabled("#undo")


def test_undo_of_what_is_not_saved_after_all_takes_nothing_else(window, server, table):
    first, second = suspects(table)[:2]
    window.keyboard.press("k")
    settled(window, 1)
    with held_back(window, "**/decide") as held:
        with window.expect_request("**/decide"):
            window.keyboard.press("Enter")
        window.keyboard.press("u")
        held.pop().abort()
        window.wait_for_selector(f"#grid li.unsaved[data-index='{second}']")
    window.keyboard.press("s")  # in its turn after the undoing, if there were any
    settled(window, 2)
    assert kept(server)[first] == ("keep", None)


def test_what_another_window_has_undone_does_not_stand_in_the_way(window, open_page, server, table):
    window.keyboard.press("k")
    window.keyboard.press("k")
    settled(window, 2)
    other = ready(open_page(server.link))
    other.keyboard.press("u")
    settled(other, 1)
    window.keyboard.press("u")
    window.wait_for_selector("#banner:has-text('is undone already')")
    window.keyboard.press("u")
    settled(window, 0)
    assert kept(server) == {}


def test_what_is_not_saved_is_shown_as_not_saved(browser, tmp_path, table, monkeypatch):
    monkeypatch.setattr("crust.review.decision_store.WAIT", 0.05)
    first = suspects(table)[0]
    suggested = table["predicted_label"][first]
    with serving(tmp_path, table) as server:
        page = browser.new_page()
        page.goto(server.link)
        ready(page)
        other = sqlite3.connect(server.store.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        page.keyboard.press("Enter")
        page.wait_for_selector("#banner:has-text('Not saved.')")
        assert "review.sqlite was locked by another program" in page.inner_text("#banner")
        state = page.locator(f"#grid li.unsaved[data-index='{first}'] .state")
        assert state.inner_text() == f"not saved: “{suggested}”"
        page.click("#banner button")
        page.keyboard.press("n")
        page.keyboard.press("p")
        assert state.inner_text() == f"not saved: “{suggested}”"  # until it is saved
        assert page.inner_text("#progress").startswith("0 of")
        assert page.is_disabled("#undo")
        other.execute("ROLLBACK")
        other.close()
        page.focus(f"#grid li[data-index='{first}']")
        page.keyboard.press("Enter")
        settled(page, 1, ".relabel")
        assert state.count() == 0
        assert kept(server) == {first: ("relabel", CLASSES.index(suggested))}
        page.close()

"""A real browser, without a network: pages are opened from files or from this machine alone."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.audit.samples import audit
from tests.audit.serving import CLASSES, serving
from tests.browser.reviewing import colours

from crust.report.previews import Pictures

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = (
    "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
HERE = ("127.0.0.1", "localhost", "::1")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, started once; where there is none, tests are skipped and say why."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next((found for found in map(shutil.which, NAMES) if found), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is on the path")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=program, args=list(QUIET))
        yield started
        started.close()


@pytest.fixture
def windows() -> list[Any]:
    """Those that are open."""
    return []


def close(windows: list[Any]) -> None:
    while windows:
        windows.pop().close()


@pytest.fixture
def open_page(browser: Any, windows: list[Any]) -> Iterator[Callable[..., Any]]:
    """A function that opens a file or an address in a fresh window.

    What goes to the console as an error or a warning, what a script throws, and what is asked of other machines is
    collected; a test that leaves any of it behind fails.
    """
    complaints: list[str] = []

    def listen(page: Any) -> None:
        page.on("console", lambda said: said.type in ("error", "warning") and complaints.append(said.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda asked: _elsewhere(asked.url) and complaints.append(f"asked for {asked.url}"))

    def open_one(address: str | Path, *, width: int = 1280, height: int = 800, scheme: str = "light") -> Any:
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        windows.append(context)
        page = context.new_page()
        listen(page)
        page.goto(address.resolve().as_uri() if isinstance(address, Path) else address)
        return page

    yield open_one
    close(windows)
    assert complaints == []


def _elsewhere(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in ("http", "https", "ws", "wss") and parts.hostname not in HERE


@pytest.fixture
def table() -> Any:
    """An audit that can be reviewed."""
    found = audit(120, CLASSES, [f"image {i:03d}" for i in range(120)])
    found["medoids"] = [[(i + 1) % 120, (i + 7) % 120] for i in range(120)]
    return found


@pytest.fixture
def server(tmp_path: Path, table: Any, windows: list[Any]) -> Iterator[Any]:
    """Its review, served with pictures."""
    with serving(tmp_path, table, looks=Pictures(colours)) as found:
        yield found
        close(windows)  # before the server goes: one that asks once more would complain

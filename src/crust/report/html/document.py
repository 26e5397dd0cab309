"""The page around the parts: head, style, sections, tables."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path

from crust.report.html.builder import Html, join, tag

__all__ = ["page", "section", "table"]

STYLE = Path(__file__).parents[1] / "style.css"
# The browser itself refuses whatever is not in the file: no network, and no style or script but the ones it names.
POLICY = (
    "default-src 'none'; style-src {style}; script-src {script}; img-src data:; base-uri 'none'; form-action 'none'"
)


def page(title: str, *body: object, style: str = "", script: str = "", data: Html | None = None) -> Html:
    """A whole document that stands alone: what it needs is in it, nothing is fetched.

    Args:
        title: of the window and the page.
        body: sections, or anything else.
        style: more style, after that of all pages.
        script: what runs once the page is there; from the program, never from data.
        data: JSON from `as_json`, for the script to read.

    Example:
        >>> text = page("5 < 6", section("Numbers", "all of them"))
        >>> text.startswith("<!doctype html>"), "<h1>5 &lt; 6</h1>" in text, "http" in text.replace("http-equiv", "")
        (True, True, False)
    """
    style = STYLE.read_text(encoding="utf-8") + style
    policy = POLICY.format(style=_hash(style), script=_hash(script) if script else "'none'")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Html(style)),
    )
    main = tag("main", tag("h1", title), *body)
    held = "" if data is None else tag("script", data, type="application/json", id="data")
    code = tag("script", Html(script)) if script else ""
    return join([Html("<!doctype html>\n"), tag("html", head, tag("body", main, held, code), lang="en"), "\n"])


def _hash(text: str) -> str:
    """How a policy names the one text that it lets through."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def section(title: str, *body: object, hint: object = None) -> Html:
    """A part of the page under a heading of its own, with a line of explanation.

    Example:
        >>> section("Curves", "...", hint="over the epochs")
        '<section><h2>Curves</h2><p class="hint">over the epochs</p>...</section>'
    """
    return tag("section", tag("h2", title), "" if hint is None else tag("p", hint, class_="hint"), *body)


def table(heads: Sequence[object], rows: Sequence[Sequence[object]]) -> Html:
    """A table whose first column names the row; it scrolls by itself where the screen is narrow.

    Example:
        >>> table(["", "a"], [["accuracy", "91 %"]])
        '<div class="wide"><table>...<th scope="row">accuracy</th><td>91 %</td>...</table></div>'
    """
    first = tag("tr", *(tag("th", head, scope="col") if str(head) else tag("td") for head in heads))
    lines = [tag("tr", tag("th", row[0], scope="row"), *(tag("td", cell) for cell in row[1:])) for row in rows]
    return tag("div", tag("table", tag("thead", first), tag("tbody", join(lines))), class_="wide")

"""The page around the parts: head, style, sections, tables."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path

from crust.audit.report.markup import Html, join, tag

__all__ = ["page", "section", "table"]

STYLE = Path(__file__).with_name("style.css")
# The browser itself refuses whatever is not in the file: no network, and no script but the one that is named.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page(title: str, *body: object, style: str = "", script: str = "") -> Html:
    """A whole document that stands alone: the style is in it, nothing is fetched, nothing but the script is run.

    Args:
        title: of the window and the page.
        body: sections, or anything else.
        style: more of it, from the program, never from data.
        script: likewise; the browser is told to run no other.

    Example:
        >>> text = page("5 < 6", section("Numbers", "all of them"))
        >>> text.startswith("<!doctype html>"), "<h1>5 &lt; 6</h1>" in text, "http" in text.replace("http-equiv", "")
        (True, True, False)
    """
    policy, code = POLICY, Html("")
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy, code = f"{POLICY}; script-src 'sha256-{digest}'", Html(f"<script>{script}</script>")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Html(STYLE.read_text(encoding="utf-8") + style)),
    )
    main = tag("main", tag("h1", title), *body)
    return join([Html("<!doctype html>\n"), tag("html", head, tag("body", main, code), lang="en"), "\n"])


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

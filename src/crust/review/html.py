"""The files of the review page: they come with crust, the data comes beside them as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crust.report.html.builder import Html, join, tag
from crust.report.payload import as_json
from crust.report.previews import Looks

__all__ = ["files"]

HERE = Path(__file__).parent
REPORT = HERE.parent / "report"
ICON = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><circle cx="4" cy="4" r="3" fill="#1d6fb8"/></svg>'
KEYS = [
    ("←↑→↓", "move"),
    ("Enter", "take the predicted label"),
    ("k", "keep the label"),
    ("r", "another label"),
    ("s", "skip"),
    ("u", "undo"),
    ("Space", "select"),
    ("a", "select the page"),
    ("Esc", "select none"),
    ("n, p", "next, previous page"),
    ("/", "search"),
]


def files(packed: dict[str, Any], who: str, name: str, looks: Looks | None) -> dict[str, tuple[bytes, str]]:
    """All that is served as it is: by name, the content and its media type.

    Args:
        packed: the audit, from `pack`.
        who: decides.
        name: what is reviewed.
        looks: how the examples are shown.

    Example:
        >>> sorted(files({"count": 0}, "first", "a run", None))
        ['', 'data', 'icon.svg', 'review.js', 'style.css']
    """
    style = [REPORT / "style.css", REPORT / "report.css", HERE / "review.css"]
    scripts = [REPORT / "shared.js", HERE / "review.js"]
    kind = "none" if looks is None else "rows" if looks.columns else "images"
    return {
        "": (page(name).encode(), "text/html; charset=utf-8"),
        "icon.svg": (ICON.encode(), "image/svg+xml"),
        "style.css": (_together(style), "text/css; charset=utf-8"),
        "review.js": (_together(scripts), "text/javascript; charset=utf-8"),
        "data": (as_json({**packed, "who": who, "looks": kind}).encode(), "application/json"),
    }


def page(name: str) -> Html:
    """The page itself, without any data."""
    title = f"Review of {name}" if name else "Review"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        Html('<link rel="stylesheet" href="style.css">'),
        Html('<link rel="icon" href="icon.svg">'),
    )
    body = tag(
        "main",
        tag("header", tag("h1", title), tag("p", id="progress", role="status")),
        _controls(),
        tag("div", id="banner", role="alert", hidden="hidden"),
        tag("p", id="count", class_="hint"),
        tag("ul", id="grid", class_="gallery", role="listbox", aria_multiselectable="true", aria_label="examples"),
        tag(
            "nav",
            tag("button", "← previous page", type="button", id="back"),
            tag("span", id="place"),
            tag("button", "next page →", type="button", id="next"),
            class_="controls pager",
        ),
        tag("aside", id="panel", aria_label="the current example"),
        _actions(),
        _dialog(),
    )
    script = Html('<script src="review.js"></script>')
    return join([Html("<!doctype html>\n"), tag("html", head, tag("body", body, script), lang="en"), "\n"])


def _controls() -> Html:
    what = {"suspects": "suspects", "open": "suspects not decided", "decided": "decided", "all": "all examples"}
    return tag(
        "form",
        tag("label", tag("span", "show"), tag("select", *_options(what), id="what")),
        tag("label", tag("span", "given"), tag("select", id="given")),
        tag("label", tag("span", "predicted"), tag("select", id="suggested")),
        tag(
            "label", tag("span", "search"), tag("input", type="search", id="search", placeholder="name, index or text")
        ),
        id="filters",
        class_="controls",
    )


def _options(texts: dict[str, str]) -> list[Html]:
    return [tag("option", text, value=key) for key, text in texts.items()]


def _actions() -> Html:
    keys = [tag("span", tag("kbd", key), f" {text}") for key, text in KEYS]
    return tag(
        "footer",
        tag(
            "div",
            tag("button", "take the predicted label", type="button", id="take", class_="main"),
            tag("button", "keep", type="button", id="keep"),
            tag("button", "another label", type="button", id="other"),
            tag("button", "skip", type="button", id="skip"),
            tag("button", "undo", type="button", id="undo"),
            tag("span", id="selected", role="status"),
            class_="controls",
        ),
        tag("p", join(keys, " "), class_="keys"),
        id="actions",
    )


def _dialog() -> Html:
    return tag(
        "dialog",
        tag("label", "another label", tag("input", type="search", id="wanted", aria_controls="classes")),
        tag("ul", id="classes", role="listbox"),
        tag("p", "↑ ↓ choose, Enter takes it, Esc leaves all as it was", class_="keys"),
        id="picker",
        aria_label="another label",
    )


def _together(paths: list[Path]) -> bytes:
    return b"\n".join(path.read_bytes() for path in paths)

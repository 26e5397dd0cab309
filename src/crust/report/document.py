"""HTML pages from the templates beside the code: what comes from the data is shown as text, never as markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

__all__ = ["as_json", "page", "render"]

ROOT = Path(__file__).parents[1]  # of the package: templates, styles and scripts are named from here
# What no page may hold: control characters, and halves of characters, which file names can contain.
UNFIT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")

TEMPLATES = Environment(
    loader=FileSystemLoader(ROOT),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=lambda value: "" if value is None else value,
    trim_blocks=True,
    lstrip_blocks=True,
)


def _policy_hash(text: str) -> str:
    """How a content security policy names the one style or script that it lets through."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


TEMPLATES.filters["policy_hash"] = _policy_hash


def render(template: str, **values: Any) -> Markup:
    """A template filled in.

    Args:
        template: its path inside the package.
        values: what it shows; all of it is text but for what was rendered before.

    Example:
        >>> str(render("review/open.html.j2", link='"><script>' + "\\0")).splitlines()[-1]
        '<p>The review is at <a href="&#34;&gt;&lt;script&gt;\ufffd">&#34;&gt;&lt;script&gt;\ufffd</a></p>'
    """
    return Markup(UNFIT.sub("\ufffd", TEMPLATES.get_template(template).render(values)))


def page(
    template: str,
    title: str,
    *,
    styles: Sequence[str] = (),
    scripts: Sequence[str] = (),
    data: Any = None,
    **values: Any,
) -> str:
    """A whole document that stands alone: what it needs is in it, nothing is fetched.

    Args:
        template: one that extends `report/document.html.j2`, by its path inside the package.
        title: of the window and the page.
        styles: more style, after that of all pages, by file.
        scripts: what runs once the page is there, by file.
        data: plain values for the script to read.
        values: for the template.

    Example:
        >>> text = page("report/document.html.j2", "5 < 6", data=["</script>"])
        >>> text.startswith("<!doctype html>"), "<h1>5 &lt; 6</h1>" in text, "http" in text.replace("http-equiv", "")
        (True, True, False)
    """
    held = None if data is None else as_json(data)
    style, script = Markup(read_together("report/style.css", *styles)), Markup(read_together(*scripts))
    # A plain string: a whole document is no part of another one.
    return str(render(template, title=title, style=style, script=script, data=held, **values))


def read_together(*names: str) -> str:
    """Files of the package, one after the other."""
    return "".join((ROOT / name).read_text(encoding="utf-8") for name in names)


def as_json(value: Any) -> Markup:
    """JSON that may stand inside a page: no end of a script, no comment.

    Example:
        >>> str(as_json(["</script><!--", "é"]))
        '["\\\\u003c/script\\\\u003e\\\\u003c!--","é"]'
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)

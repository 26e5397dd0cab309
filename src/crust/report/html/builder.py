"""HTML from plain functions. A string is text and gets escaped; only what these functions return counts as HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

__all__ = ["Html", "escape", "join", "tag"]

# What no page may hold: control characters, and halves of characters, which file names can contain.
UNFIT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
VOID = {"br", "img", "input", "meta"}


class Html(str):
    """Text that is HTML already.

    Example:
        >>> escape(Html("<b>")), escape("<b>")
        ('<b>', '&lt;b&gt;')
    """

    __slots__ = ()


def escape(value: object) -> Html:
    """Anything as text for a page or an attribute; what is `Html` stays as it is.

    Args:
        value: a string, a number, `Html`; None is nothing.

    Example:
        >>> escape('<script>"&' + "\\0")
        '&lt;script&gt;&quot;&amp;\ufffd'
    """
    if isinstance(value, Html):
        return value
    return Html("" if value is None else html.escape(UNFIT.sub("\ufffd", str(value))))


def join(parts: Iterable[object], between: str = "") -> Html:
    """Parts in a row, each escaped where it is not HTML yet.

    Example:
        >>> join(["a & b", tag("br")])
        'a &amp; b<br>'
    """
    return Html(escape(between).join(map(escape, parts)))


def tag(element: str, /, *children: object, **attributes: object) -> Html:
    """One element.

    Args:
        element: its name; from the program, never from data.
        children: what it holds, escaped where it is not HTML yet.
        attributes: their values are escaped, and None leaves one out. In their names an underscore at the end falls
            away, as in class_, and one inside becomes a hyphen.

    Example:
        >>> tag("td", "5 < 6", class_="number", title='"')
        '<td class="number" title="&quot;">5 &lt; 6</td>'
        >>> tag("img", src="x.png", alt=None)
        '<img src="x.png">'
    """
    known = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    start = " ".join([element, *(f'{key}="{escape(value)}"' for key, value in known.items())])
    return Html(f"<{start}>" if element in VOID else f"<{start}>{join(children)}</{element}>")

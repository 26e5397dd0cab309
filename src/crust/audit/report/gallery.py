"""Examples whose labels are in doubt, as cards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from crust.audit.report.markup import Html, tag

__all__ = ["Suspect", "gallery"]


@dataclass(frozen=True)
class Suspect:
    """One example of the audit.

    Args:
        name: what to call it, such as its file.
        given: its label.
        suggested: the label it should rather have.
        probability: of the suggested label.
        doubt: of the given label, from 0 to 1.
        image: a data URI, where it is an image.
        note: one more line, such as what is known about it.
        alarm: whether the note says that the label is wrong indeed.

    Example:
        >>> Suspect("example 7", "3", "8", 0.9, 0.95).given
        '3'
    """

    name: str
    given: str
    suggested: str
    probability: float
    doubt: float
    image: str | None = None
    note: str | None = None
    alarm: bool = False


def gallery(suspects: Iterable[Suspect], *, ink: bool = False) -> Html:
    """A card for each of them, as many in a row as the screen has room for.

    Args:
        suspects: in the order they are shown.
        ink: whether the images are dark ink on white, to be inverted where the page is dark.

    Example:
        >>> gallery([Suspect("example 7", "<3>", "8", 0.9, 0.95)])
        '<ul class="gallery"><li title="example 7">...<bdi>&lt;3&gt;</bdi>...</li></ul>'
    """
    return tag("ul", *(_card(one, ink) for one in suspects), class_="gallery")


def _card(one: Suspect, ink: bool) -> Html:
    picture: object = ""
    if one.image is not None:
        picture = tag("img", src=one.image, alt=f"{one.name}, labelled {one.given}", class_="ink" if ink else None)
    return tag(
        "li",
        picture,
        tag(
            "p",
            tag("span", "given "),
            tag("bdi", one.given),
            tag("span", " suggested "),
            tag("bdi", one.suggested, class_=None if one.given == one.suggested else "suggested"),
            class_="labels",
        ),
        tag("p", f"probability {one.probability:.2f}", class_="numbers"),
        tag("p", f"doubt {one.doubt:.2f}", class_="numbers"),
        "" if one.note is None else tag("p", one.note, class_="note alarm" if one.alarm else "note"),
        title=one.name,
    )

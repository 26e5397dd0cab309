"""Curves as SVG inside a page: colours come from the page's style, so that they suit its dark form too."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from crust.report.html.builder import Html, tag

__all__ = ["Line", "line_chart"]

At = Callable[[float, float], tuple[float, float]]
Show = Callable[[float], str]

WIDTH, HEIGHT = 440, 270
LEFT, RIGHT, TOP, BOTTOM = 44, 78, 12, 40
LETTER = 7.8  # the width of one in a name
LABEL = 32  # between the names at the ends of the lines, which would else cover each other
MOST = 174  # the room that names may take
ROW = 13  # more for each further row of a name


@dataclass(frozen=True)
class Line:
    """One curve.

    Args:
        name: shown at its end.
        values: one for each x from the first on; None where nothing is known.
        tone: which of the style's colours it has.
        spread: how far above and below each value a band reaches, such as a standard deviation over runs.
        label: the name at the end of the curve, row by row, where it is too long to be written in one.

    Example:
        >>> Line("erm", [0.5, None, 0.7]).points(1)
        [(1, 0.5), (3, 0.7)]
    """

    name: str
    values: Sequence[float | None]
    tone: int = 0
    spread: Sequence[float | None] = ()
    label: Sequence[str] = ()

    @property
    def rows(self) -> Sequence[str]:
        """The name as it is written at the end of the curve."""
        return self.label or [self.name]

    def points(self, start: int) -> list[tuple[int, float]]:
        """The known values with their x, of which the first one is `start`."""
        known = [(start + i, value) for i, value in enumerate(self.values) if value is not None]
        return [(x, value) for x, value in known if math.isfinite(value)]

    def band(self, start: int) -> list[tuple[int, float, float]]:
        """The lower and upper end of the band at each x, of shares within 0 and 1; nothing where it has no width.

        Example:
            >>> Line("erm", [0.5, 0.7], spread=[0.25, 0.0]).band(1), Line("erm", [0.75], spread=[0.5]).band(1)
            ([(1, 0.25, 0.75), (2, 0.7, 0.7)], [(1, 0.25, 1.0)])
        """
        points, wide = self.points(start), dict(enumerate(self.spread, start))
        shares = all(0 <= value <= 1 for _, value in points)  # a deviation around 95% does not reach 105%
        least, most = (0.0, 1.0) if shares else (-math.inf, math.inf)
        found = [(x, max(least, y - (wide.get(x) or 0.0)), min(most, y + (wide.get(x) or 0.0))) for x, y in points]
        return found if any(low < high for _, low, high in found) else []


def line_chart(
    lines: Sequence[Line],
    title: str,
    *,
    x_name: str = "epoch",
    start: int = 1,
    show: Show = "{:.1%}".format,
    tick: Show = "{:.0%}".format,
    top: float | None = 1.0,
) -> Html:
    """Curves over whole numbers such as epochs.

    Args:
        lines: the curves.
        title: for those who cannot see it, and above the picture.
        x_name: what is counted along x.
        start: the first x.
        show: a value as text.
        tick: a round number along y as text.
        top: the upper end of y; None takes that of the values.

    Returns:
        A figure of fixed proportions that grows and shrinks with the page.

    Example:
        >>> text = line_chart([Line("erm", [0.6, 0.9]), Line("a<b", [0.7])], "Accuracy")
        >>> text.count("<polyline"), "a&lt;b" in text
        (2, True)
    """
    drawn = [(line, line.points(start)) for line in lines]
    ys = [y for _, points in drawn for _, y in points] or [0.0]
    ys += [y for line in lines for _, *ends in line.band(start) for y in ends]
    xs = [x for _, points in drawn for x, _ in points] or [start]
    ticks = scale(min(ys), max(ys) if top is None else top)
    left, right = min(xs), max(max(xs), min(xs) + 1)
    rows = [row for line, points in drawn if points for row in line.rows]
    room = max([RIGHT, *(min(MOST, round(18 + LETTER * len(row))) for row in rows)])

    def at(x: float, y: float) -> tuple[float, float]:
        across = LEFT + (x - left) / (right - left) * (WIDTH - LEFT - room)
        up = (y - ticks[0]) / (ticks[-1] - ticks[0]) * (HEIGHT - TOP - BOTTOM)
        return round(across, 1), round(HEIGHT - BOTTOM - up, 1)

    parts = [*_grid(ticks, tick, at(right, 0)[0], at), *_axis(left, right, x_name, at)]
    for line in lines:
        parts += _band(line, start, at)
    for line, points in drawn:
        parts += _curve(line, points, x_name, show, at)
    ends = [(line, *points[-1]) for line, points in drawn if points]
    more = ROW * (max((len(line.rows) for line, *_ in ends), default=1) - 1)
    heights = spread([at(x, y)[1] for _, x, y in ends], LABEL + more, TOP + 10, HEIGHT - BOTTOM - 14 - more)
    for (line, _, y), height in zip(ends, heights, strict=True):
        where = WIDTH - room + 10
        parts.append(
            tag(
                "text",
                *(tag("tspan", row, x=where, dy=ROW * (n > 0), class_="name") for n, row in enumerate(line.rows)),
                tag("tspan", show(y), x=where, dy=15),
                y=round(height, 1),
                class_=f"end tone-{line.tone}",
            )
        )
    said = f"{title}: " + ", ".join(f"{line.name} ends at {show(y)}" for line, _, y in ends)
    picture = tag("svg", *parts, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=said)
    return tag("figure", tag("figcaption", title), picture, class_="chart")


def scale(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers from at or below `low` to at or above `high`.

    Example:
        >>> scale(0.34, 1), scale(30, 70)
        ([0.2, 0.4, 0.6, 0.8, 1.0], [30.0, 40.0, 50.0, 60.0, 70.0])
    """
    size = max(1.0, abs(low), abs(high))
    if high - low < 1e-6 * size:  # all but equal: a flat line belongs in the middle
        low, high = low - size / 2, high + size / 2
    rough = (high - low) / (most - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * each for each in (1, 2, 5, 10) if power * each >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """The same places, moved as little as needed to lie `gap` apart; within the bounds as far as there is room.

    Example:
        >>> spread([50, 40, 41], 10, 0, 100), spread([99, 98], 10, 0, 100)
        ([60, 40, 50], [100, 90])
    """
    order = sorted(range(len(places)), key=lambda i: places[i])
    found = list(places)
    for before, i in zip([None, *order], order, strict=False):
        found[i] = max(found[i], low if before is None else found[before] + gap)
    ceiling = high
    for i in reversed(order):
        found[i] = min(found[i], ceiling)
        ceiling = found[i] - gap
    return found


def _grid(ticks: list[float], text: Show, end: float, at: At) -> list[Html]:
    parts = []
    for tick in ticks:
        y = at(0, tick)[1]
        parts.append(tag("line", x1=LEFT, x2=end, y1=y, y2=y, class_="grid"))
        parts.append(tag("text", text(tick), x=LEFT - 7, y=y + 4, class_="tick", text_anchor="end"))
    return parts


def _axis(left: int, right: int, name: str, at: At) -> list[Html]:
    inner = [x for x in map(round, scale(left, right)) if left < x < right]
    low = HEIGHT - BOTTOM
    near = 0.08 * (right - left)  # numbers so near to the ends would run into theirs
    marks = [left, *(x for x in inner if left + near < x < right - near), right]
    parts = [
        tag("text", x, x=at(x, 0)[0], y=low + 17, class_="tick", text_anchor="middle") for x in dict.fromkeys(marks)
    ]
    middle = round((at(left, 0)[0] + at(right, 0)[0]) / 2, 1)
    return [*parts, tag("text", name, x=middle, y=HEIGHT - 6, class_="tick", text_anchor="middle")]


def _band(line: Line, start: int, at: At) -> list[Html]:
    ends = line.band(start)
    around = [at(x, low) for x, low, _ in ends] + [at(x, high) for x, _, high in reversed(ends)]
    path = " ".join(f"{x:g},{y:g}" for x, y in around)
    return [tag("polygon", points=path, class_=f"band tone-{line.tone}")] if ends else []


def _curve(line: Line, points: list[tuple[int, float]], x_name: str, show: Show, at: At) -> list[Html]:
    places = [at(x, y) for x, y in points]
    path = " ".join(f"{x:g},{y:g}" for x, y in places)
    parts = [tag("polyline", points=path, class_=f"curve tone-{line.tone}")] if places else []
    if places:
        parts.append(tag("circle", cx=places[-1][0], cy=places[-1][1], r=3.5, class_=f"dot tone-{line.tone}"))
    for (x, y), (cx, cy) in zip(points, places, strict=True):
        said = tag("title", f"{line.name}, {x_name} {x}: {show(y)}")
        parts.append(tag("circle", said, cx=cx, cy=cy, r=7, class_="touch"))
    return parts

"""Curves inside a page: places worked out here, drawn as SVG by `chart.html.j2`."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from crust.report.document import render

__all__ = ["Line", "calibration_chart", "line_chart"]

Place = tuple[float, float]
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
) -> Markup:
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

    def at(x: float, y: float) -> Place:
        across = LEFT + (x - left) / (right - left) * (WIDTH - LEFT - room)
        up = (y - ticks[0]) / (ticks[-1] - ticks[0]) * (HEIGHT - TOP - BOTTOM)
        return round(across, 1), round(HEIGHT - BOTTOM - up, 1)

    curves = [
        {
            "tone": line.tone,
            "rows": line.rows,
            "value": show(points[-1][1]) if points else None,
            "band": _band_path([(at(x, low), at(x, high)) for x, low, high in line.band(start)]),
            "touches": [(at(x, y), f"{line.name}, {x_name} {x}: {show(y)}") for x, y in points],
        }
        for line, points in drawn
    ]
    said = f"{title}: " + ", ".join(f"{line.name} ends at {show(points[-1][1])}" for line, points in drawn if points)
    inner = [x for x in map(round, scale(left, right)) if left < x < right]
    near = 0.08 * (right - left)  # numbers so near to the ends would run into theirs
    marks = dict.fromkeys([left, *(x for x in inner if left + near < x < right - near), right])
    return _drawn(
        curves,
        title=title,
        said=said,
        ticks=[(at(left, y)[1], tick(y)) for y in ticks],
        marks=[(at(x, 0)[0], str(x)) for x in marks],
        x_name=x_name,
        room=room,
    )


def calibration_chart(found: dict[str, Any]) -> Markup:
    """Expected precision and recall over the number of labels looked at, with their intervals.

    Args:
        found: what `crust verify` has found.

    Example:
        >>> half = {"value": 0.5, "low": 0.4, "high": 0.6}
        >>> points = [{"threshold": 0.9, "flagged": n, "precision": half, "recall": half} for n in (10, 20)]
        >>> calibration_chart({"curve": points, "cut": points[0]}).count("<polyline")
        2
    """
    points = [point for point in found["curve"] if point["flagged"] > 0]
    most = max((point["flagged"] for point in points), default=1)

    def at(x: float, y: float) -> Place:
        across = LEFT + x / most * (WIDTH - LEFT - RIGHT)
        return round(across, 1), round(HEIGHT - BOTTOM - y * (HEIGHT - TOP - BOTTOM), 1)

    curves = []
    for tone, name in enumerate(("precision", "recall")):
        known = [(point["flagged"], point[name], point["threshold"]) for point in points if point[name] is not None]
        touches = [
            (at(x, share["value"]), f"{name} {_share(share)} among {x:,} labels with {_quality(threshold)}")
            for x, share, threshold in known
        ]
        band = _band_path([(at(x, share["low"]), at(x, share["high"])) for x, share, _ in known])
        curves.append({"tone": tone, "rows": [name], "value": None, "band": band, "touches": touches})
    cut = found.get("cut")
    if cut and cut["flagged"]:
        said = f"recommended: the {cut['flagged']:,} labels with {_quality(cut['threshold'])}"
        cut = {"x": at(cut["flagged"], 0)[0], "said": said}
    else:
        cut = None
    title = "Expected precision and recall, by the number of labels looked at"
    return _drawn(
        curves,
        title=title,
        said=title,
        ticks=[(at(0, y)[1], f"{100 * y:.0f} %") for y in (0, 0.25, 0.5, 0.75, 1)],
        marks=[(at(x, 0)[0], f"{x:,}") for x in (round(x) for x in scale(0, most) if x <= most)],
        x_name="labels looked at, the lowest label quality first",
        room=RIGHT,
        cut=cut,
    )


def _share(found: dict[str, float]) -> str:
    return f"{100 * found['value']:.0f} % ({100 * found['low']:.0f} to {100 * found['high']:.0f} %)"


def _quality(threshold: float) -> str:
    return f"a label quality of {1 - threshold:.2f} or less"


def _drawn(curves: list[dict[str, Any]], *, room: int, cut: dict[str, Any] | None = None, **words: Any) -> Markup:
    """The figure: names at the ends of curves are moved apart, `room` is what they have at the right."""
    named = [curve for curve in curves if curve["touches"]]
    more = ROW * (max((len(curve["rows"]) for curve in named), default=1) - 1)
    ends = [curve["touches"][-1][0] for curve in named]
    heights = spread([y for _, y in ends], LABEL + more, TOP + 10, HEIGHT - BOTTOM - 14 - more)
    for curve, end, height in zip(named, ends, heights, strict=True):
        curve |= {"path": _path([place for place, _ in curve["touches"]]), "end": end, "height": round(height, 1)}
    frame = {"width": WIDTH, "height": HEIGHT, "left": LEFT, "right": WIDTH - room, "top": TOP, "low": HEIGHT - BOTTOM}
    middle = round((LEFT + WIDTH - room) / 2, 1)
    return render("report/chart.html.j2", curves=curves, cut=cut, middle=middle, row_height=ROW, **frame, **words)


def _path(places: Sequence[Place]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in places)


def _band_path(ends: Sequence[tuple[Place, Place]]) -> str:
    """Along the lower ends and back along the upper ones."""
    return _path([low for low, _ in ends] + [high for _, high in reversed(ends)])


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

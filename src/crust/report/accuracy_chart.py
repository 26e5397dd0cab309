"""Expected precision and recall over the number of labels looked at, with their intervals."""

from __future__ import annotations

from typing import Any

from crust.report.html.builder import Html, tag
from crust.report.html.line_chart import BOTTOM, HEIGHT, LABEL, LEFT, RIGHT, TOP, WIDTH, At, scale, spread

__all__ = ["calibration_chart"]

NAMES = ("precision", "recall")


def calibration_chart(found: dict[str, Any]) -> Html:
    """The curve of a calibration.

    Args:
        found: what `calibration.json` holds.

    Example:
        >>> half = {"value": 0.5, "low": 0.4, "high": 0.6}
        >>> points = [{"threshold": 0.9, "flagged": n, "precision": half, "recall": half} for n in (10, 20)]
        >>> calibration_chart({"curve": points, "cut": points[0]}).count("<polyline")
        2
    """
    curve = [point for point in found["curve"] if point["flagged"] > 0]
    most = max((point["flagged"] for point in curve), default=1)

    def at(x: float, y: float) -> tuple[float, float]:
        across = LEFT + x / most * (WIDTH - LEFT - RIGHT)
        return round(across, 1), round(HEIGHT - BOTTOM - y * (HEIGHT - TOP - BOTTOM), 1)

    parts: list[Html] = []
    for tick in (0, 0.25, 0.5, 0.75, 1):
        y = at(0, tick)[1]
        parts.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="grid"))
        parts.append(tag("text", f"{100 * tick:.0f} %", x=LEFT - 7, y=y + 4, class_="tick", text_anchor="end"))
    for mark in (round(x) for x in scale(0, most) if x <= most):
        where = {"x": at(mark, 0)[0], "y": HEIGHT - BOTTOM + 17}
        parts.append(tag("text", f"{mark:,}", **where, class_="tick", text_anchor="middle"))
    middle = (LEFT + WIDTH - RIGHT) / 2
    name = "labels looked at, the lowest label quality first"
    parts.append(tag("text", name, x=middle, y=HEIGHT - 6, class_="tick", text_anchor="middle"))
    parts += _cut(found.get("cut"), at)
    ends = []
    for tone, name in enumerate(NAMES):
        known = [(point["flagged"], point[name], point["threshold"]) for point in curve if point[name] is not None]
        if known:
            parts += _line(known, tone, name, at)
            ends.append((tone, name, known[-1][1]["value"]))
    heights = spread([at(0, value)[1] for _, _, value in ends], LABEL, TOP + 10, HEIGHT - BOTTOM - 14)
    for (tone, name, _), height in zip(ends, heights, strict=True):
        where = {"x": WIDTH - RIGHT + 10, "y": round(height, 1)}
        parts.append(tag("text", tag("tspan", name, class_="name"), **where, class_=f"end tone-{tone}"))
    said = "Expected precision and recall, by the number of labels looked at"
    picture = tag("svg", *parts, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=said)
    return tag("figure", tag("figcaption", said), picture, class_="chart")


def _line(known: list[tuple[int, dict[str, float], float]], tone: int, name: str, at: At) -> list[Html]:
    upper = [at(x, value["high"]) for x, value, _ in known]
    lower = [at(x, value["low"]) for x, value, _ in reversed(known)]
    parts = [
        tag("polygon", points=_path([*upper, *lower]), class_=f"band tone-{tone}"),
        tag("polyline", points=_path([at(x, value["value"]) for x, value, _ in known]), class_=f"curve tone-{tone}"),
    ]
    for x, value, threshold in known:
        cx, cy = at(x, value["value"])
        said = (
            f"{name} {100 * value['value']:.0f} % ({100 * value['low']:.0f} to {100 * value['high']:.0f} %) "
            f"among {x:,} labels with a label quality of {1 - threshold:.2f} or less"
        )
        parts.append(tag("circle", tag("title", said), cx=cx, cy=cy, r=6, class_="touch"))
    return parts


def _cut(cut: dict[str, Any] | None, at: At) -> list[Html]:
    if not cut or not cut["flagged"]:
        return []
    x, top = at(cut["flagged"], 1)
    low = at(cut["flagged"], 0)[1]
    said = tag(
        "title",
        f"recommended: the {cut['flagged']:,} labels with a label quality of {1 - cut['threshold']:.2f} or less",
    )
    return [tag("line", said, x1=x, x2=x, y1=top, y2=low, class_="cut")]


def _path(places: list[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in places)

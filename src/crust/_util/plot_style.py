"""Panels side by side in one PNG, in the style of all our plots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

from crust.errors import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#7b8794",
}


def png(draws: Sequence[Callable[[Axes], None]], *, width: float, height: float, sharex: bool = False) -> bytes:
    """A PNG with a panel for each function that draws one; sizes of a panel in inches."""
    matplotlib = require("matplotlib", extra="plot")
    from matplotlib.figure import Figure

    buffer = BytesIO()
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width * len(draws), height), dpi=130, layout="constrained")
        for axes, draw in zip(figure.subplots(1, len(draws), squeeze=False, sharex=sharex)[0], draws, strict=True):
            draw(axes)
        figure.savefig(buffer, format="png")
    return buffer.getvalue()

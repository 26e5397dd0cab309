"""What a diagnosis looks like: the spectrum with its cut, labels over epochs, errors over the size of the coreset."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any, TypeAlias

from crust._util.atomic_write import write_atomic
from crust._util.plot_style import png

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Draw: TypeAlias = "Callable[..., None]"  # axes, and the summary
GREY, INK, RED, BLUE, GREEN = "#9aa5b1", "#1f2933", "#d64545", "#2f6fb0", "#3f9142"
LINES = {
    "right": ("right labels", GREEN),
    "wrong": ("wrong labels", RED),
    "all": ("all", INK),
    "coreset": ("coreset", BLUE),
}
ERRORS = {"norm_share": ("largest singular value (ε/‖J‖)", INK), "gram": ("JᵀJ", BLUE), "gradient": ("gradient", RED)}


def diagnosis_plots(summary: dict[str, Any]) -> dict[str, bytes]:
    """The plots of a diagnosis as PNG, by name; those without data are left out."""
    return {name: _plot_png([draw], summary) for name, draw in _draws(summary).items()}


def write_picture(path: str | Path, summary: dict[str, Any]) -> None:
    """All plots of a diagnosis side by side in one PNG, whole or not at all."""
    write_atomic(path, _plot_png(list(_draws(summary).values()), summary))


def _draws(summary: dict[str, Any]) -> dict[str, Draw]:
    sizes = {"epsilon": draw_sizes} if summary["sizes"] else {}
    return {"spectrum": draw_spectrum, "alignment": draw_alignment, **sizes}


def draw_spectrum(axes: Axes, summary: dict[str, Any]) -> None:
    """Singular values of each epoch, and where each is cut."""
    moments = summary["moments"]
    for number, moment in enumerate(moments):
        values = [value for value in moment["singular_values"] if value > 0]
        shade = 0.25 + 0.75 * (number + 1) / len(moments)
        axes.plot(range(1, len(values) + 1), values, color=INK, alpha=shade, label=f"epoch {moment['epoch']}")
        rank = min(moment["rank"], len(values))
        axes.plot(rank, values[rank - 1], "o", color=RED, alpha=shade, markersize=5)
    axes.plot([], [], "o", color=RED, markersize=5, label=f"cut: {shown_cut(summary['cut'])}")
    axes.set(xscale="log", yscale="log")
    _finish(axes, "Spectrum of the Jacobian", "number", "singular value of J")


def draw_alignment(axes: Axes, summary: dict[str, Any]) -> None:
    """The share of the labels in the information space, epoch by epoch."""
    moments = summary["moments"]
    epochs = [moment["epoch"] for moment in moments]
    for name, (label, colour) in LINES.items():
        found = [moment["sets"].get(name) for moment in moments]
        if any(one is not None for one in found):
            shares = [float("nan") if one is None else one["labels"]["information"] for one in found]
            axes.plot(epochs, shares, "-", color=colour, marker="o", markersize=4, label=label)
    drawn = [[one["labels"]["information"] for one in moment["random_sets"]] for moment in moments]
    if any(drawn):
        means = [mean(some) if some else float("nan") for some in drawn]
        axes.plot(epochs, means, "--", color=BLUE, label="random subsets")
    axes.plot(epochs, [moment["sets"]["all"]["chance"] for moment in moments], ":", color=GREY, label="by chance")
    axes.set_ylim(0, 1.02)
    _finish(axes, "Alignment of the labels", "epoch", "share in the information space")


def draw_sizes(axes: Axes, summary: dict[str, Any]) -> None:
    """Errors of coresets of different sizes (lines), and the means of random subsets (dashed)."""
    shares = [size["share"] for size in summary["sizes"]]
    for name, (label, colour) in ERRORS.items():
        axes.plot(shares, [size["errors"][name] for size in summary["sizes"]], "o-", color=colour, label=label)
        if all(size["random"] for size in summary["sizes"]):
            means = [mean(one[name] for one in size["random"]) for size in summary["sizes"]]
            axes.plot(shares, means, "--", color=colour, alpha=0.7)
    axes.set_ylim(bottom=0)
    _finish(axes, "Error over the size of the coreset", "share of the examples", "relative error (dashed: random)")


def _finish(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set(xlabel=x, ylabel=y)
    axes.set_title(title, loc="left", color=INK)
    axes.legend(frameon=False)


def shown_cut(cut: Any) -> str:
    """A cut in words.

    Example:
        >>> shown_cut(0.9), shown_cut(10), shown_cut("gap")
        ('90% of the energy', 'rank 10', 'the largest gap')
    """
    if cut == "gap":
        return "the largest gap"
    return f"{cut:.0%} of the energy" if isinstance(cut, float) else f"rank {cut}"


def _plot_png(draws: list[Draw], summary: dict[str, Any]) -> bytes:
    return png([partial(draw, summary=summary) for draw in draws], width=5.2, height=4.0)

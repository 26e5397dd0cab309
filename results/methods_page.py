"""The page on which all methods stand side by side: what they reach, what they cost, and what they had to know."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from crust.errors import InputError
from crust.experiments.outputs.table_markdown import markdown
from crust.experiments.paper.tables_and_figures import own_settings
from crust.methods import METHODS
from results.methods_reading import HALF, reading
from results.tables import INTRODUCTION, NOISES, bold_best, cell, is_ceiling, of_runs, passes, runs

Lines = Sequence[dict[str, Any]]
SECONDS = Path("benchmarks/results/methods.json")  # of `python -m benchmarks.methods`, on a quiet machine
OWN = Path("docs/methods")
PAGE = "[all methods](../results/methods.md)"
MISSING = (
    "A dash is a run that has not been made yet. Passes: examples that went through a network, forward and backward, "
    "of all stages, as a multiple of `erm`'s. Seconds: the same for a whole run, all of them in one run of "
    "`python -m benchmarks.methods` ({date}, {images:,} images, {epochs} epochs). In bold: the best without oracle "
    "knowledge. `oracle` is told which labels are right; all others see given labels only here."
)


def methods_page(lines: Lines) -> str:
    """All methods side by side; what has not been run shows a dash."""
    timed = json.loads(SECONDS.read_text()) if SECONDS.exists() else {"methods": []}
    seconds = {row["method"]: row["seconds"] for row in timed["methods"]}
    told = MISSING if timed["methods"] else MISSING.split(" Seconds:")[0] + " Seconds are not compared yet."
    about = {name: timed[name] for name in ("date", "images", "epochs") if name in timed}
    parts = ["# All methods, measured", INTRODUCTION, told.format(**about) if about else told]
    for labels, title in NOISES.items():
        parts += [f"## {title}", _table(lines, labels, seconds), *_reading(lines, labels)]
    why = reading(lines)
    parts += ["## Who wins where, and why" if why else "", why, "## What they were told", _knowledge(lines)]
    return "\n\n".join(part for part in parts if part) + "\n"


def own_page(name: str, lines: Lines) -> str:
    """A method's own page, with what was measured in place of its last paragraph, which begins with `Measured`."""
    text = (OWN / f"{name}.md").read_text(encoding="utf-8")
    written, mark, _ = text.rpartition("\nMeasured")
    if not mark:
        raise InputError(f"docs/methods/{name}.md has no last paragraph that begins with Measured: see TEMPLATE.md")
    return f"{written}\n{measured(name, lines)}\n"


def measured(name: str, lines: Lines) -> str:
    """One paragraph: accuracy beside `erm`, audit and cost."""
    found = []
    for labels, title in NOISES.items():
        some, plain = runs(lines, name, labels, **own_settings(name, "cpu")), runs(lines, "erm", labels)
        if not some:
            found.append(f"{title}: not measured yet")
            continue
        words = f"{title}: {cell(of_runs(some, 'accuracy', 'last'))}%"
        if name != "erm" and plain:
            words += f" (`erm` {cell(of_runs(plain, 'accuracy', 'last'))})"
        doubts = of_runs(some, "audit", "auroc")
        words += f", audit AUROC {cell(doubts, scale=1, digits=3)}" if doubts else ""
        own, base = passes(some), passes(plain)
        if name != "erm" and own is not None and base is not None:
            words += f", {own / base:.2f} of `erm`'s passes"
        found.append(words)
    return f"Measured on CIFAR-10 in small, last epoch ({PAGE}): " + "; ".join(found) + "."


def _all(lines: Lines, labels: str) -> dict[str, tuple[str, list[dict[str, Any]]]]:
    """Rows of a table by their names: the method, and its runs."""
    found = {
        f"[`{name}`](../methods/{name}.md)": (name, runs(lines, name, labels, **own_settings(name, "cpu")))
        for name in METHODS
    }
    half = runs(lines, "erm", labels, **HALF)
    return {**found, "`erm`, half of the epochs (as many updates as a coreset of 50%)": ("erm", half)}


def _table(lines: Lines, labels: str, seconds: dict[str, float]) -> str:
    rows, competes = [], []
    base = passes(runs(lines, "erm", labels))
    for name, (method, some) in _all(lines, labels).items():
        competes.append(not is_ceiling(method))
        own = passes(some)
        halved = "half" in name
        cost = seconds.get(method) if not halved else 0.5 * seconds["erm"] if "erm" in seconds else None
        rows.append(
            [
                name,
                *(cell(of_runs(some, "accuracy", each)) for each in ("last", "last10", "best")),
                cell(of_runs(some, "audit", "auroc"), scale=1, digits=3),
                "–" if own is None or base is None else f"{own / base:.2f}",
                "–" if cost is None else f"{cost:.2f}",
                str(len(some)),
            ]
        )
    header = ["method", "last epoch", "mean of last 10", "best epoch", "audit AUROC", "passes", "seconds", "seeds"]
    return markdown(header, bold_best(rows, [1, 2, 4], competes))


def _reading(lines: Lines, labels: str) -> list[str]:
    """What the numbers say, computed from them."""
    known = {
        name: mean(of_runs(some, "accuracy", "last"))
        for name, (method, some) in _all(lines, labels).items()
        if some and not is_ceiling(method)
    }
    plain = {name: value for name, value in known.items() if name.startswith("[")}
    erm = known.get(next(name for name in _all(lines, labels) if name.startswith("[`erm`")))
    if len(plain) < 2:
        return []
    order = sorted(plain, key=lambda name: -plain[name])
    best = ", ".join(f"{_bare(name)} {100 * plain[name]:.1f}" for name in order[:4])
    words = f"The best on the last epoch: {best}."
    if erm is not None:
        below = [_bare(name) for name in order if plain[name] < erm - 0.005]
        words += f" `erm` reaches {100 * erm:.1f}"
        words += (
            f"; below it by more than half a point: {', '.join(below)}." if below else "; none is clearly below it."
        )
    return [words]


def _bare(name: str) -> str:
    return name[1:].split("]")[0] if name.startswith("[") else name


def _knowledge(lines: Lines) -> str:
    """What methods needed to know of the noise, where they took it from, and what it was."""
    rows = []
    for name, kind in METHODS.items():
        if kind.needs == "nothing":
            continue
        cells = [f"`{name}`", kind.needs]
        for labels in NOISES:
            found = []
            for line in runs(lines, name, labels, **own_settings(name, "cpu")):
                known = line["facts"].get("noise_info", {})
                found += [
                    f"{what.replace('_', ' ')} {_shown(one['value'])} ({one['source']})" for what, one in known.items()
                ]
            cells.append("; ".join(found) or "–")
        rows.append(cells)
    return markdown(["method", "needs", *NOISES.values()], rows)


def _shown(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)

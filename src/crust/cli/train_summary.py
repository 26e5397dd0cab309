"""What is said at the end of a training run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import typer

from crust.cli.formatting import duration, percent

if TYPE_CHECKING:
    from crust.runs.result import Result


def _measured(history: Any) -> dict[str, str]:
    """The accuracies of a run by their names in its history, and what they are called: `imagenet top-5 accuracy`."""
    names = {key for line in history for key in line if re.match(r"test_(accuracy|top\d+)", key)}
    found = {}
    for key in sorted(names, key=lambda key: (key.split("_")[2:], key)):
        _, kind, *words = key.split("_", 2)
        top = "" if kind == "accuracy" else f" top-{kind.removeprefix('top')}"
        found[key] = f"{words[0] if words else 'test'}{top} accuracy"
    return {**found, "val_accuracy": "validation (noisy) accuracy"}


def summary(result: Result, options: dict[str, Any], seconds: float) -> dict[str, Any]:
    """What was reached and where it lies, for a machine."""
    lines, table = result.history.lines, result.audit()
    return {
        "run": str(result.run_dir),
        "data": options["data"],
        "method": options["method"],
        "model": options["model"],
        "epochs": len(lines),
        "kept_epoch": result.best_epoch,
        "accuracy": {key: result.history.accuracy(key) for key in _measured(result.history)},
        "examples": len(table),
        "label_issues": int(table["is_label_issue"].sum()),
        "noise_rate": vars(result.noise_rate()),
        "warnings": result.warnings(),
        "passes": (lines[-1].get("passes") or {}) if lines else {},
        "seconds": round(seconds, 3),
    }


def print_summary(result: Result, options: dict[str, Any], seconds: float, resumed: bool) -> None:
    """What was reached, what was known, and where it lies."""
    history, lines, folder = result.history, result.history.lines, result.run_dir
    since = " since it was resumed" if resumed else ""
    typer.echo(
        f"{options['method']}, {options['model']} on {options['data']}: "
        f"{len(history)} epoch{'s' * (len(history) > 1)}, {duration(seconds)}{since}"
    )
    for key, name in _measured(history).items():
        found = history.accuracy(key)
        if found["last"] is not None:
            last, last10, best = (percent(found[each]) for each in ("last", "last10", "best"))
            typer.echo(f"{name}: last {last}, mean of the last ten {last10}, best {best}")
    for name, known in ((lines[-1].get("noise_info") or {}) if lines else {}).items():
        shown = percent(known["value"]) if isinstance(known["value"], float) else known["value"]
        typer.echo(f"trained as if the {name.replace('_', ' ')} were: {shown} ({known['source']})")
    if lines and "stopped" in lines[-1]:
        passes = sum(lines[-1]["passes"].values())
        typer.echo(f"stopped after {passes} passes on examples, as the budget says")
    if lines and lines[-1].get("clean_fraction") is not None:
        typer.echo(f"right labels among those trained on: {percent(lines[-1]['clean_fraction'])}")
    if result.best_epoch is not None and "val_accuracy" in history.lines[-1]:
        typer.echo(f"kept: the model of epoch {result.best_epoch}, the best on held-out noisy labels")
    if not lines or "stopped" not in lines[-1]:
        typer.echo(result.noise_rate().sentence())
        for line in result.warnings():
            typer.echo(line)
    typer.echo(f"written to: {folder}")

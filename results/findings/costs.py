"""The epoch that is reported, and speed against full training."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import mean
from typing import Any

from crust.experiments.outputs.table_markdown import markdown
from crust.experiments.outputs.table_summary import passes_of_line
from crust.experiments.paper.tables_and_figures import VARIANTS
from results.findings.numbers import NOISES, Finding, Runs, every, of_variants, shown


def best_epoch(runs: Runs) -> Finding:
    """What choosing the epoch by the test set adds."""
    rows = []
    gains: dict[str, list[float]] = {"erm": [], **{name: [] for name in VARIANTS}}
    for labels, title in NOISES.items():
        row = [title]
        for name, found in gains.items():
            lines = runs.lines(name, labels).values()
            more = [100 * (line["accuracy"]["best"] - line["accuracy"]["last"]) for line in lines]
            found += [mean(more)] if more else []
            row.append(shown(more))
        rows.append(row)
    parts = [f"`{name}` {mean(found):+.1f}" for name, found in gains.items() if found]
    words = [
        f"Best minus last epoch, on average over the noises that have been run: {', '.join(parts)} points."
        if parts
        else "Not measured yet.",
        "The published code reports the best test epoch; all our tables report the last one.",
    ]
    header = ["best minus last epoch", *(f"`{name}`" for name in gains)]
    return Finding("The epoch that is reported", "", "", words, markdown(header, rows))


def speed(runs: Runs, speed: Mapping[str, Any] | None) -> Finding:
    """Against full training: passes of our runs, and time as the benchmark measures it."""
    rows, ratios = [], {}
    for name in VARIANTS:
        found = []
        for labels in NOISES:
            ours, plain_ = runs.lines(name, labels), runs.lines("erm", labels)
            for seed in ours.keys() & plain_.keys():
                cost = [passes_of_line(line) for line in (ours[seed], plain_[seed])]
                found.append(cost[0] / cost[1])
        if found:
            ratios[name] = mean(found)
        rows.append([f"`{name}`", f"{mean(found):.2f}×" if found else "missing", str(len(found))])
    words = []
    if ratios:
        parts = ", ".join(f"`{name}` {ratio:.2f}×" for name, ratio in ratios.items())
        words.append(f"Examples that go forward or backward through the network, relative to plain training: {parts}.")
    timed = _timed(speed)
    words += timed[1]
    faster = [[100 * (1 - ratio)] for ratio in timed[0]]
    if not words:
        words = ["Not measured yet."]
    claim = "Training with CRUST is even faster than training on the entire dataset."
    header = ["method", "passes relative to `erm`", "pairs of runs"]
    verdict = of_variants({"crust-half": every(faster)})  # the one whose epochs are shorter, which the benchmark times
    return Finding("Speed against full training", claim, verdict, words, markdown(header, rows))


def _timed(speed: Mapping[str, Any] | None) -> tuple[list[float], list[str]]:
    ratios, words = [], []
    for case in (speed or {}).get("cases", []):
        for row in case.get("rows", []):
            if row.get("what") == "an epoch of crust-half over one of erm":
                low, high = row["spread"]
                ratios.append(float(row["found"]))
                words.append(
                    f"Time of an epoch of `crust-half`, selection included, relative to `erm` ({case['case']}): "
                    f"{row['found']:.2f} ({low:.2f} to {high:.2f})."
                )
    if words:
        words.append("The time is that of [benchmarks](../benchmarks/results/training.json), on a quiet machine.")
    return ratios, words

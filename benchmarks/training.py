"""Epochs of `crust-half` and `crust` beside those of `erm`, and `erm` beside the usual way to write it: ratios count.

python -m benchmarks.training                              ResNet-32 and ResNet-8, some minutes
python -m benchmarks.training --model resnet8 --images 512 --repeats 1

CIFAR-10 comes from --data, else $CRUST_DATA, else ./data. An epoch has --images images instead of 50,000, so that the
ways to train can take turns: round by round, in changing order, one epoch each (two with selection every second epoch).
`crust` finds out by itself when to look and how many to train on: its epochs here are the first of a long run, in which
it looks often and trains on everyone.
A ratio is taken within a round, to the `erm` epoch of that round; found is the median over the rounds. The first round
warms up and is left out. What a fit took is what the parts of its own history say (the epoch with its selection, and
the look at all gradients), and these are held against the wall clock. Selection grows with the square of a group, so
it is also measured by itself on all 50,000 images and set against the time an `erm` epoch of 50,000 would take at the
images a second that were measured: these rows say "estimated".
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
from datetime import date
from pathlib import Path
from typing import Any

import torch

from benchmarks import verdicts
from benchmarks.epochs import BATCH, NOISE, Runner
from crust.runs.recipe import parse_settings

RESULTS = Path(__file__).parent / "results"
# As in the paper; at the cpu scale of our experiments images are not augmented.
AUGMENT = {"resnet32": True, "resnet8": False}
# warmup 0: its epochs on everything are no different from those of erm
HALF = {"method": "crust-half", "fraction": 0.5, "select_after": 0}
WAYS: dict[str, tuple[str, dict[str, Any], int]] = {  # who, settings, epochs a round
    "erm": ("ours", {"method": "erm"}, 1),
    "crust-half": ("ours", HALF, 1),
    "crust-half, every 2": ("ours", {**HALF, "select_every": 2}, 2),
    "crust": ("ours", {"method": "crust"}, 1),
    "the usual way": ("usual", {}, 1),
}
PARTS = ("epoch", "gradients")  # selection is a part of epoch


def measure(options: argparse.Namespace, model: str) -> dict[str, list[dict[str, float]]]:
    """Epochs of all ways in turns: for each way the parts of its rounds, summed over a round's epochs."""
    repeats = options.repeats
    runners: dict[str, Runner] = {}
    found: dict[str, list[dict[str, float]]] = {name: [] for name in WAYS}
    try:
        for name, (way, settings, each) in WAYS.items():
            job = {"model": model, "images": options.images, "data": options.data, "augment": AUGMENT.get(model, True)}
            job |= {"settings": {**settings, **parse_settings(options.set)}, "epochs": each * (1 + repeats)}
            runners[name] = Runner(way, job)
        for runner in runners.values():
            runner.ready()
        for number in range(1 + repeats):
            for name in list(WAYS) if number % 2 == 0 else reversed(WAYS):
                turns = [runners[name].turn() for _ in range(WAYS[name][2])]
                parts = {part: sum(turn.get(part, 0.0) for turn in turns) for part in (*PARTS, "selection", "wall")}
                if number:
                    found[name].append(parts)
            print(f"{model}: round {number} of {repeats}", file=sys.stderr, flush=True)
        for runner in runners.values():
            runner.finish()
    finally:
        for runner in runners.values():
            runner.stop()
    return found


def measure_selection(options: argparse.Namespace) -> dict[str, Any]:
    """Seconds of the selection alone; the first one, which compiles, is left out."""
    repeats = options.repeats
    job = {"images": options.all_images, "data": options.data, "settings": HALF, "epochs": 1 + repeats}
    runner = Runner("selecting", job)
    try:
        runner.ready()
        taken = [runner.turn()["selection"] for _ in range(1 + repeats)][1:]
        return {**runner.finish(), "seconds": taken}
    finally:
        runner.stop()


def seconds(rounds: list[dict[str, float]]) -> list[float]:
    """What training took in each round."""
    return [sum(parts[part] for part in PARTS) for parts in rounds]


def row(what: str, found: list[float], **bound: float) -> dict[str, Any]:
    return {"what": what, "found": statistics.median(found), "spread": [min(found), max(found)], **bound}


def judged(found: dict[str, Any], whole: dict[str, Any], images: int, bounds: bool) -> list[dict[str, Any]]:
    """The rows of one network; `whole` is the selection on all images."""
    erm = seconds(found["erm"])
    rate = images / statistics.median(erm)
    selecting = [taken * rate / whole["images"] for taken in whole["seconds"]]

    def over_erm(these: list[float], epochs: int = 1) -> list[float]:
        return [a / epochs / b for a, b in zip(these, erm, strict=True)]

    def part(name: str, what: str) -> list[float]:
        return [parts[what] for parts in found[name]]

    def on_all(name: str, epochs: int) -> list[float]:
        """The ratio with the selection on all images in place of that on a few; the rest grows with the images."""
        rest = [a - b for a, b in zip(seconds(found[name]), part(name, "selection"), strict=True)]
        return [ratio + statistics.median(selecting) / epochs for ratio in over_erm(rest, epochs)]

    def must(**bound: float) -> dict[str, float]:
        return bound if bounds else {}

    ours = [parts for name, (way, _, _) in WAYS.items() if way == "ours" for parts in found[name]]
    second, same = "crust-half, every 2", f"the same on {whole['images']:,}, estimated"
    return [
        row("an epoch of crust-half over one of erm", over_erm(seconds(found["crust-half"])), **must(most=0.85)),
        row(same, on_all("crust-half", 1), **must(most=0.85)),
        row("with selection every second epoch", over_erm(seconds(found[second]), 2), **must(most=0.70)),
        row(same, on_all(second, 2), **must(most=0.70)),
        row("an early epoch of crust over one of erm", over_erm(seconds(found["crust"]))),
        row("the look at all gradients, over an erm epoch", over_erm(part("crust-half", "gradients"))),
        row(
            "selection without the look, over an erm epoch",
            over_erm(part("crust-half", "selection")),
            **must(most=0.03),
        ),
        row(same, selecting, **must(most=0.03)),
        row("the usual way over erm", over_erm(seconds(found["the usual way"])), **must(least=1.2)),
        row(
            "parts in the history over wall clock",
            [sum(parts[name] for name in PARTS) / parts["wall"] for parts in ours],
        ),
    ]


def show(title: str, images: int, found: dict[str, Any], rows: list[dict[str, Any]]) -> bool:
    """Print one network's tables; False where it falls short."""
    print(f"\n### {title}\n\n| who | seconds an epoch | images a second |\n|---|---|---|")
    for name, (_, _, each) in WAYS.items():
        typical = statistics.median(seconds(found[name])) / each
        print(f"| {name} | {typical:.3g} | {images / typical:.0f} |")
    return verdicts.show(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=None, help="the folder that holds CIFAR-10")
    parser.add_argument("--model", action="append", help="resnet32 and resnet8, or only these")
    parser.add_argument("--images", type=int, default=2560, help="images in an epoch")
    parser.add_argument("--all-images", type=int, default=50_000, help="images for the selection by itself")
    parser.add_argument("--repeats", type=int, default=4, help="rounds that count")
    parser.add_argument("--set", action="append", default=[], help="a setting of every run of ours, as NAME=VALUE")
    parser.add_argument("--output", type=Path, default=RESULTS / "training.json", help="where the results go")
    options = parser.parse_args()
    models = options.model or ["resnet32", "resnet8"]
    measured = {model: measure(options, model) for model in models}
    whole = measure_selection(options)
    sizes = sorted(whole["groups"])
    print(f"\nselection of {whole['chosen']:,} from {whole['images']:,} images with {NOISE}: ", end="")
    print(f"{statistics.median(whole['seconds']):.3g} s; groups of {sizes[0]:,} to {sizes[-1]:,}")
    cases, fine = [], True
    for model, found in measured.items():
        # The targets are for ResNet-32; in a small network everything beside the training weighs more.
        title = f"{model}, epochs of {options.images:,} images, batch {BATCH}"
        rows = judged(found, whole, options.images, bounds=model == "resnet32")
        fine &= show(title, options.images, found, rows)
        cases.append({"case": title, "images": options.images, "rows": rows, "runs": found})
    about = {
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "repeats": options.repeats,
        "set": options.set,
        "noise": NOISE,
    }
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps({**about, "selection": whole, "cases": cases}, indent=1) + "\n")
    return int(not fine)


if __name__ == "__main__":
    sys.exit(main())

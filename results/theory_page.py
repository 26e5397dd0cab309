"""The theory asked of CIFAR-10 with half of its labels wrong: the runs, their page, and what it says of them.

python -m results.theory_page train RUNS --data-dir DATA    trains what the page needs, keeping checkpoints
python -m results.theory_page build RUNS/* -o docs/results/theory.md --data-dir DATA

`build` asks each run once and leaves the answer in its folder as theory.json; what is there is not computed again.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from crust._util.atomic_write import write_atomic
from crust.errors import InputError
from crust.experiments.engines import LocalGrid
from crust.experiments.grid import run_grid
from crust.experiments.outputs.table_markdown import markdown
from crust.experiments.results_file import read_results
from crust.experiments.specs import make
from crust.experiments.task import Event, Work
from crust.runs.checkpoints import reopen
from crust.theory.diagnose import diagnose
from crust.theory.plots import shown_cut, write_picture
from results.tables import cell

NOISE = "symmetric:0.5"
METHODS = ("crust-paper", "crust-released", "crust-half", "crust", "random")
# At a rate of 0.1 the units of the MLP die within ten epochs, whatever the method, and nothing is left to ask.
MODELS: dict[str, dict[str, Any]] = {"resnet8": {}, "mlp": {"learning_rate": 0.01}}
KEEP_EVERY = 10


def specs(seed: int = 0, scale: str = "cpu") -> list[dict[str, Any]]:
    """The runs of the page.

    Example:
        >>> [(spec["method"], spec["model"]) for spec in specs()][:2]
        [('crust-paper', 'resnet8'), ('crust-paper', 'mlp')]
    """
    return [
        make(method, NOISE, scale=scale, seed=seed, model=model, **more)
        for method in METHODS
        for model, more in MODELS.items()
    ]


def train_all(work: Work) -> int:
    """Train what has no result yet, one run after another; the number of those that failed."""
    failed = []

    def tell(event: Event) -> None:
        if event.kind != "epoch":
            print(event.kind, event.spec["method"], event.spec["model"], event.error)
        if event.kind == "failed":
            failed.append(event)

    with LocalGrid() as engine:
        run_grid(specs(), engine, work, tell, retry_failed=True)
    return len(failed)


def ask(folder: Path, spec: dict[str, Any] | None, data_dir: str | None, **options: Any) -> dict[str, Any]:
    """The diagnosis of a run, from its folder where it has been made with the same options."""
    kept = folder / "theory.json"
    asked = json.loads(json.dumps(options))
    if kept.is_file():
        found = json.loads(kept.read_text())
        if found.get("options") == asked:
            return dict(found)
    run = reopen(folder, spec, data_dir=data_dir)
    summary = diagnose(run, **options, say=lambda text: print(f"{folder.name}: {text}", file=sys.stderr))
    found = {**summary.summary(), "options": asked}
    write_atomic(kept, json.dumps(found, ensure_ascii=False).encode())
    return found


def page(summaries: Sequence[dict[str, Any]], picture: str = "theory") -> str:
    """The whole page in Markdown; `picture` is how the names of the plots begin."""
    first = summaries[0]
    parts = [
        "# The theory, measured",
        (
            f"CIFAR-10, {NOISE.replace(':', ' noise of ')}, the runs of `python -m results.theory_page`: at "
            f"some epochs of each run, {first['points']} of its training examples. Each method chooses anew from these "
            "with the weights and the memory of that epoch. Information space: "
            f"{shown_cut(first['cut'])}. Random subsets: mean ± standard deviation. What the columns mean is in "
            "[theory.md](../theory.md)."
        ),
        "## Do clean labels lie in the information space, and wrong ones in the nuisance?",
        "Share of the given labels' vector in the information space of each set's own Jacobian; by chance: of all.",
        _alignment_table(summaries),
        "## The claim ‖Π_N(y_S)‖/√k ≤ ‖Π_N(y)‖/√n",
        _claim_table(summaries),
        "## What the coresets are worth",
        (
            "The share of wrong labels among the chosen, and three errors of standing for all examples; in brackets "
            "those of random subsets of the same size."
        ),
        _quality_table(summaries),
        "## Theorem 1 at the last epoch",
        "The factor by which each premise is missed (above 1) or kept, and what the descent did.",
        _theorem_table(summaries),
        "## What this says about why each works or does not",
        *[f"- {sentence}" for sentence in reading(summaries)],
        "## Pictures",
        *[f"![{title(one)}]({picture}-{one['method']}-{one['model']}.png)" for one in summaries],
    ]
    return "\n\n".join(parts).replace("\n\n- ", "\n- ") + "\n"


def _alignment_table(summaries: Sequence[dict[str, Any]]) -> str:
    rows = []
    for summary in summaries:
        for moment in summary["moments"]:
            sets = moment["sets"]
            cells = [title(summary), str(moment["epoch"]), str(moment["rank"])]
            names = ("all", "right", "wrong", "coreset")
            cells += [_percent(sets[name]["labels"]["information"]) if name in sets else "–" for name in names]
            cells.append(_percents([one["labels"]["information"] for one in moment["random_sets"]]))
            cells.append(_percent(sets["all"]["error"]["information"]) if sets["all"]["error"] else "–")
            rows.append([*cells, _percent(sets["all"]["chance"])])
    heads = ["run", "epoch", "rank", "all", "right", "wrong", "coreset", "random", "label error", "by chance"]
    return markdown(heads, rows)


def _claim_table(summaries: Sequence[dict[str, Any]]) -> str:
    rows = []
    for summary in summaries:
        for moment in summary["moments"]:
            if moment["claim"] is None:
                continue
            sets = moment["sets"]
            drawn = [one["labels"]["nuisance"] for one in moment["random_sets"]]
            rows.append(
                [
                    title(summary),
                    str(moment["epoch"]),
                    f"{sets['all']['labels']['nuisance']:.3f}",
                    f"{sets['coreset']['labels']['nuisance']:.3f}",
                    "yes" if moment["claim"] else "no",
                    cell(drawn, scale=1, digits=2),
                    _percent(moment["claim_at_random"]),
                ]
            )
    heads = ["run", "epoch", "all", "coreset", "claim holds", "random", "claim holds of random"]
    return markdown(heads, rows)


def _quality_table(summaries: Sequence[dict[str, Any]]) -> str:
    rows = []
    for summary in summaries:
        for moment in summary["moments"]:
            quality = moment["quality"]
            if quality is None:
                continue
            cells = [title(summary), str(moment["epoch"]), _percent(quality["noise"])]
            cells += [f"{quality['alpha']:.3g}", f"{quality['beta']:.3g}"]
            for name in ("norm_share", "gram", "gradient"):
                drawn = cell([one[name] for one in quality["random"]], scale=1, digits=2)
                cells.append(f"{quality['errors'][name]:.2f} ({drawn})")
            rows.append(cells)
    return markdown(["run", "epoch", "wrong labels", "α", "β", "ε/‖J‖", "JᵀJ", "gradient"], rows)


def _theorem_table(summaries: Sequence[dict[str, Any]]) -> str:
    known = [(summary, summary["guarantee"]) for summary in summaries if summary["guarantee"] is not None]
    if not known:
        return "No run has true labels and a coreset."
    rows = []
    for number, premise in enumerate(known[0][1]["premises"]):
        factors = [found["premises"][number]["factor"] for _, found in known]
        rows.append([premise["name"], *("∞" if factor is None else f"{factor:.3g}" for factor in factors)])
    for name, what in (("right", "true labels after the descent"), ("right_of_wrong", "of those given a wrong one")):
        values = [None if found["outcome"] is None else found["outcome"][name] for _, found in known]
        rows.append([what, *("–" if value is None else _percent(value) for value in values)])
    counts = [
        "–" if found["outcome"] is None else f"{found['outcome']['steps']:,} of "
        + ("∞" if found["steps"] is None else f"{found['steps']:,.0f}")
        for _, found in known
    ]  # fmt: skip
    rows.append(["steps made, of those asked for", *counts])
    return markdown(["", *(title(summary) for summary, _ in known)], rows)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def _percents(values: Sequence[float]) -> str:
    if not values:
        return "–"
    return _percent(mean(values)) + (f" ± {_percent(stdev(values))}" if len(values) > 1 else "")


def main(words: Sequence[str] | None = None) -> int:
    """Train the runs of the page, or build it from runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_subparsers(dest="what", required=True)
    train = what.add_parser("train")
    train.add_argument("folder", type=Path)
    train.add_argument("--results", type=Path, default=None, help="default: theory.jsonl in the folder")
    build = what.add_parser("build")
    build.add_argument("runs", type=Path, nargs="+")
    build.add_argument("-o", "--output", type=Path, default=Path("docs/results/theory.md"))
    build.add_argument("--results", type=Path, default=None, help="result lines, for runs without spec.json")
    build.add_argument("--points", type=int, default=300)
    build.add_argument("--repeats", type=int, default=10)
    build.add_argument("--steps", type=int, default=500)
    build.add_argument("--epochs", type=lambda text: [int(part) for part in text.split(",")], default=None)
    for each in (train, build):
        each.add_argument("--data-dir", default=None)
    options = parser.parse_args(words)
    if options.what == "train":
        results = options.results or options.folder / "theory.jsonl"
        data_dir = None if options.data_dir is None else Path(options.data_dir)
        return train_all(Work(results, options.folder, data_dir, keep_every=KEEP_EVERY))
    known = {} if options.results is None else {line["key"]: line["spec"] for line in read_results(options.results)}
    runs = [run for run in options.runs if (run / "config.yaml").is_file()]
    if not runs:
        raise InputError("none of these folders holds a run: give those of `train`")
    asked = {"epochs": options.epochs, "points": options.points, "repeats": options.repeats}
    asked |= {"max_steps": options.steps}
    summaries = [ask(run, known.get(run.name), options.data_dir, **asked) for run in runs]
    summaries.sort(key=lambda one: (list(MODELS).index(one["model"]) if one["model"] in MODELS else 9, one["method"]))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    for one in summaries:
        stem = options.output.stem
        write_picture(options.output.with_name(f"{stem}-{one['method']}-{one['model']}.png"), one)
    write_atomic(options.output, page(summaries, options.output.stem).encode())
    return 0


Summary = dict[str, Any]


def title(summary: Summary) -> str:
    """A run's name on the page."""
    return f"{summary['method']}, {summary['model']}"


def reading(summaries: Sequence[Summary]) -> list[str]:
    """Sentences on every kind of network, then on every run; all of the last epoch that was asked."""
    models = list(dict.fromkeys(summary["model"] for summary in summaries))
    return [
        *(_of_model(model, [one for one in summaries if one["model"] == model]) for model in models),
        *(_of_run(summary) for summary in summaries),
    ]


def against(value: float, drawn: Sequence[float]) -> int:
    """1 where a value is above what chance gives by more than two standard deviations, -1 below, else 0.

    Example:
        >>> against(5.0, [1.0, 2.0, 3.0]), against(3.5, [1.0, 2.0, 3.0]), against(5.0, [1.0])
        (1, 0, 0)
    """
    if len(drawn) < 2:
        return 0
    far = value - mean(drawn)
    return 0 if abs(far) <= 2 * stdev(drawn) else 1 if far > 0 else -1


def _of_model(model: str, runs: Sequence[Summary]) -> str:
    last = [run["moments"][-1] for run in runs]
    sizes = [moment["sets"]["all"]["chance"] for moment in last]
    words = f"**{model}**: the information space has {_range(sizes)} of the dimensions"
    sides = [moment["sets"] for moment in last if {"right", "wrong"} <= set(moment["sets"])]
    if sides:
        right, wrong = ([sets[name]["labels"]["information"] for sets in sides] for name in ("right", "wrong"))
        gaps = [100 * (a - b) for a, b in zip(right, wrong, strict=True)]
        words += (
            f", and in it lie {_range(right)} of the right labels' vector and {_range(wrong)} of the wrong ones': "
            f"{_span(gaps)} points between them"
        )
    return words + "."


def _of_run(summary: Summary) -> str:
    last = summary["moments"][-1]
    words = [f"**{title(summary)}**, epoch {last['epoch']}:"]
    quality = last["quality"]
    if quality is None:
        return f"{words[0]} nothing is chosen."
    cleaner = 0
    if quality["noise"] is not None:
        cleaner = _cleaner(quality, summary["points"])
        words.append(f"{quality['noise']:.0%} of the chosen labels are wrong, of all {quality['noise_of_all']:.0%};")
    lies = last["sets"]["coreset"]["labels"]["information"]
    drawn = [one["labels"]["information"] for one in last["random_sets"]]
    side = against(lies, drawn)
    words.append(
        f"{lies:.0%} of their vector lies in the information space, "
        f"{('less than', 'as much as', 'more than')[side + 1]} of random subsets ({mean(drawn):.0%}):"
    )
    words.append(_choice(cleaner, side))
    near = {
        what: -against(quality["errors"][name], [one[name] for one in quality["random"]])
        for name, what in (("gram", "JᵀJ"), ("gradient", "the gradient"))
    }
    said = ("is farther from {} of all than a random subset is", "is as near to {} of all as a random subset is",
            "is nearer to {} of all than a random subset is")  # fmt: skip
    words.append(
        "It " + ", and ".join(said[side + 1].format(what) for what, side in near.items()) + _means(cleaner, near)
    )
    if summary["guarantee"] is not None:
        premises = summary["guarantee"]["premises"]
        words.append(f"It keeps {sum(one['holds'] for one in premises)} of the theorem's {len(premises)} premises.")
    return " ".join(words)


def _cleaner(quality: dict[str, Any], n: int) -> int:
    """1 where fewer of the chosen labels are wrong than a random choice gives, -1 where more, beyond two deviations."""
    p, k = quality["noise_of_all"], quality["members"]
    spread = math.sqrt(p * (1 - p) / k * (n - k) / max(1, n - 1))
    far = quality["noise"] - p
    return 0 if abs(far) <= 2 * spread else -1 if far > 0 else 1


def _choice(cleaner: int, side: int) -> str:
    if cleaner > 0:
        return (
            "it leaves out wrong labels, and those are the ones that the network's leading directions cannot fit."
            if side > 0
            else "it leaves out wrong labels, though not those that the leading directions cannot fit."
        )
    if cleaner < 0:
        return "it prefers wrong labels: their gradients lie apart from all others, so that each stands for itself."
    return "its labels are no better than chance has them."


def _means(cleaner: int, near: dict[str, int]) -> str:
    if cleaner > 0 and max(near.values()) <= 0:
        return ": what it gains comes from the labels it leaves out, not from standing for all the data."
    if cleaner <= 0 and max(near.values()) > 0:
        return ": it stands for all the data, and for the wrong labels in it."
    return "."


def _range(shares: Sequence[float]) -> str:
    low, high = (f"{100 * one:.0f}" for one in (min(shares), max(shares)))
    return f"{low}%" if low == high else f"{low} to {high}%"


def _span(values: Sequence[float]) -> str:
    low, high = (f"{one:.0f}" for one in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


if __name__ == "__main__":
    sys.exit(main())

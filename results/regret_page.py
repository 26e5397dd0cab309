"""The scoreboard as a page, a table of all numbers, and a picture, from the lines of `python -m benchmarks.regret`."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO, StringIO
from statistics import mean
from typing import TYPE_CHECKING, Any

from benchmarks.regret.conditions import (
    CHOOSE,
    CIFAR,
    CLEAN,
    CONFIRM,
    CONTENDERS,
    SEEDS,
    SHORT,
    Condition,
    Job,
    Noise,
    conditions,
)  # fmt: skip
from benchmarks.regret.lines import Lines, passes, score

from crust.experiments.outputs.table_markdown import markdown, mean_sd
from results.regret_numbers import Estimate, average, cheap, deficit, regret, relative
from results.tables import is_ceiling

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DEFAULT, LARGER = "crust", "crust-semi"  # whose limits are checked; the larger one may take twice the passes
FEW_WRONG = 0.2
PICTURE = "regret.png"
PARTS = {
    CONFIRM: ("Confirming", "sets, noises and seeds that no rule was chosen on; the limits are for these"),
    CHOOSE: ("Choosing", "what rules may be chosen on"),
    CIFAR: ("CIFAR-10 in small", "the `cpu` scale; the first rule of `crust` was chosen by looking at it"),
}
INTRODUCTION = """\
What it costs to have chosen a method: **regret** is the accuracy of the best of the others in a condition minus its \
own, in points, on the model that a run delivers (chosen on held-out noisy labels, for all methods alike). The best of \
the others is picked on half of the seeds and scored on the other half, so a method that is the best itself has a \
negative regret. Balanced accuracy counts where classes are of very different size. `oracle`, which is told what is \
right, is never the best. A condition is a set, a noise, and one protocol for all methods; splits and wrong labels are \
drawn anew for every seed. ± is the paired standard error. Passes are examples through all networks, forward and \
backward, every evaluation pass and every estimate counted, relative to `erm` in the same condition.

Conditions were split before anything was run: choosing on {choosing} (seeds {choosing_seeds}), confirming on \
{confirming} (seeds {confirming_seeds}), with kinds of noise that are not among the choosing ones. The lines are in \
[regret.jsonl](../../results/regret.jsonl), those of CIFAR-10 also in [cpu.jsonl](../../results/cpu.jsonl); \
`python -m benchmarks.regret` makes what is missing, `python -m results.generate_pages` builds this page."""


ONE_NETWORK = ("erm", "mixup", "gce", "sce", "elr", "crust")
BY_NOISE = """\
Accuracy of the delivered model in percent (balanced where classes are unequal), mean over the confirming tables and \
mails with an MLP, over the splits that all of these methods have been run on."""


@dataclass
class Scores:
    """What is known of a condition, by method and seed: accuracies in percent, passes, AUROC of the audit."""

    condition: Condition
    delivered: dict[str, dict[int, float]] = field(default_factory=dict)
    last: dict[str, dict[int, float]] = field(default_factory=dict)
    passes: dict[str, dict[int, float]] = field(default_factory=dict)
    auroc: dict[str, dict[int, float]] = field(default_factory=dict)

    def rivals(self, only_cheap: bool) -> list[str]:
        """Those who compete."""
        found = cheap(self.passes) if only_cheap else list(self.delivered)
        return [name for name in found if not _is_ceiling(name)]


def scores_of(lines: Iterable[dict[str, Any]]) -> list[Scores]:
    """The scores of all conditions that have a line."""
    known, found = Lines(line for line in lines if "accuracy" in line), []
    for condition in conditions():
        scores = Scores(condition)
        for contender in CONTENDERS:
            for seed in SEEDS[condition.part]:
                line = known.of(Job(condition, contender, seed)) if contender.is_there else None
                if line is not None:
                    _take(scores, contender.name, seed, line)
        if scores.delivered:
            found.append(scores)
    return found


def _take(scores: Scores, name: str, seed: int, line: dict[str, Any]) -> None:
    for kind, into in (("delivered", scores.delivered), ("last", scores.last)):
        value = score(line, scores.condition.balanced, kind)
        if value is not None:
            into.setdefault(name, {})[seed] = 100 * value
    scores.passes.setdefault(name, {})[seed] = passes(line)
    if line.get("audit"):
        scores.auroc.setdefault(name, {})[seed] = line["audit"]["auroc"]


def regret_page(lines: Iterable[dict[str, Any]]) -> str:
    """The page."""
    scores = scores_of(lines)
    parts = ["# No regret: all methods, condition by condition", _introduction()]
    if not scores:
        return "\n\n".join([*parts, "No run has been made yet."]) + "\n"
    parts += [f"![regret of each method in each condition]({PICTURE})", _state(scores)]
    parts += ["## The limits", _limits(scores)]
    for part, (title, about) in PARTS.items():
        some = [one for one in scores if one.condition.part == part]
        if some:
            parts += [f"## {title}", f"{about[0].upper()}{about[1:]}: {len(some)} conditions."]
            parts += ["### Methods of at most 1.1 times the passes of `erm`", _table(some, only_cheap=True)]
            parts += ["### All methods", _table(some, only_cheap=False)]
            if part == CONFIRM:
                parts += ["### By kind of noise", BY_NOISE, noise_table(scores)]
    return "\n\n".join(parts) + "\n"


def noise_table(scores: Sequence[Scores]) -> str:
    """What methods with one network reach under each kind of noise: a row a noise, the best in bold."""
    some = [one for one in scores if one.condition.part == CONFIRM and one.condition.protocol == "mlp"]
    rows = []
    for noise in dict.fromkeys(one.condition.noise for one in some):
        reached: dict[str, list[float]] = {name: [] for name in ONE_NETWORK}
        for one in (one for one in some if one.condition.noise == noise):
            by_seed = [one.delivered.get(name, {}) for name in ONE_NETWORK]
            for seed in sorted(set.intersection(*map(set, by_seed))):
                for name, known in zip(ONE_NETWORK, by_seed, strict=True):
                    reached[name].append(known[seed])
        if reached[DEFAULT]:
            shown = {name: f"{mean(values):.1f}" for name, values in reached.items()}
            best = max(map(float, shown.values()))
            cells = [f"**{value}**" if float(value) == best else value for value in shown.values()]
            rows.append([_in_words(noise), *cells, str(len(reached[DEFAULT]))])
    return markdown(["wrong labels", *(f"`{name}`" for name in ONE_NETWORK), "runs each"], rows)


def _in_words(noise: Noise) -> str:
    """
    Example:
        >>> _in_words(Noise("symmetric:0.3", 0.3, 20)), _in_words(CLEAN)
        ('symmetric 0.3, classes 20:1', 'none')
    """
    if _is_clean(noise):
        return "none"
    kind = noise.labels.replace(":", " ")
    return kind if noise.imbalance is None else f"{kind}, classes {noise.imbalance}:1"


def _introduction() -> str:
    named: dict[str, list[str]] = {CHOOSE: [], CONFIRM: []}
    for condition in conditions():
        if condition.part in named and condition.data not in named[condition.part]:
            named[condition.part].append(condition.data)
    return INTRODUCTION.format(
        choosing=", ".join(named[CHOOSE]),
        confirming=", ".join(named[CONFIRM]),
        choosing_seeds=f"{SEEDS[CHOOSE][0]} to {SEEDS[CHOOSE][-1]}",
        confirming_seeds=f"{SEEDS[CONFIRM][0]} to {SEEDS[CONFIRM][-1]}",
    )


def _state(scores: Sequence[Scores]) -> str:
    made = sum(len(seeds) for one in scores for seeds in one.passes.values())
    asked = sum(len(SEEDS[condition.part]) for condition in conditions() for _ in CONTENDERS)
    gone = [contender.name for contender in CONTENDERS if not any(contender.name in one.passes for one in scores)]
    words = f"{made:,} of {asked:,} runs have been made."
    if gone:
        words += f" None yet of {', '.join(f'`{name}`' for name in gone)}."
    return words + (
        " A method is compared over the seeds that it has, with those that have all of them; the numbers of rows with "
        "fewer conditions than others are not to be compared with theirs. The AUROC of an audit is by the label "
        "quality of the version that made the line."
    )


# ------------------------------------------------------------------------------------------- tables


def regrets(scores: Scores, only_cheap: bool, last: bool = False) -> dict[str, Estimate]:
    """The regret of every method in a condition; of cheap ones among cheap ones."""
    rivals = scores.rivals(only_cheap)
    known = scores.last if last else scores.delivered
    found = {name: regret(known, name, rivals) for name in known if name in rivals or _is_ceiling(name)}
    return {name: one for name, one in found.items() if one is not None}


def _table(scores: Sequence[Scores], only_cheap: bool) -> str:
    delivered = [(one, regrets(one, only_cheap)) for one in scores]
    last = [regrets(one, only_cheap, last=True) for one in scores]
    rows: list[list[str]] = []
    for contender in CONTENDERS:
        name = contender.name
        there = [(one, found[name]) for one, found in delivered if name in found]
        if not there:
            continue
        over = average([estimate for _, estimate in there])
        where, worst = max(there, key=lambda pair: pair[1].mean)
        at_end = [found[name] for found in last if name in found]
        rows.append(
            [
                f"`{name}`",
                _shown(over, 2),
                f"{_shown(worst)} ({_title(where.condition)})",
                _shown(average(at_end), 2) if at_end else "–",
                _mean((relative(one.passes, name) for one, _ in there), 2),
                _mean((mean(one.auroc[name].values()) for one, _ in there if name in one.auroc), 3),
                str(len(there)),
            ]
        )
    rows.sort(key=lambda row: (_is_ceiling(row[0].strip("`")), float(row[1].split(" ")[0])))
    lowest = [row for row in rows if not _is_ceiling(row[0].strip("`"))]
    if lowest:
        lowest[0][1] = f"**{lowest[0][1]}**"
    header = ["method", "mean regret", "worst regret", "mean regret, last epoch", "passes", "audit AUROC", "conditions"]
    return markdown(header, rows)


def _is_ceiling(name: str) -> bool:
    return is_ceiling(next(contender.method for contender in CONTENDERS if contender.name == name))


def _title(condition: Condition) -> str:
    return f"{condition.data}, {condition.noise.name}"


def _shown(of: Estimate, digits: int = 1) -> str:
    return mean_sd(of.mean, of.error, digits)


def _mean(values: Iterable[float | None], digits: int) -> str:
    known = [value for value in values if value is not None]
    return f"{mean(known):.{digits}f}" if known else "–"


# ------------------------------------------------------------------------------------------- limits


def _limits(scores: Sequence[Scores]) -> str:
    """What the default must reach on the confirming conditions, and whether it does."""
    confirm = [one for one in scores if one.condition.part == CONFIRM]
    long = [one for one in confirm if one.condition.protocol != "text-5"]
    clean = _deficits(long, _is_clean)
    few = _deficits(long, _is_light)
    rivals = [(one, regrets(one, only_cheap=True)) for one in confirm]
    among = {_title(one.condition): found[DEFAULT] for one, found in rivals if DEFAULT in found}
    tokens = [one for one in scores if one.condition.protocol == "text-5"]
    rows = [
        _limit_row("clean data, behind `erm`: mean over sets", 0.3, _together(clean)),
        _limit_row("clean data, behind `erm`: worst set", 1.0, clean),
        _limit_row("up to 20% wrong labels, behind `erm`: worst", 0.3, few),
        _limit_row("mean regret, at most 1.1 passes", 0.5, _together(among)),
        _limit_row("worst regret, at most 1.1 passes", 2.0, among),
        _smallest_row("mean regret, at most 1.1 passes", confirm, DEFAULT, only_cheap=True),
        _smallest_row("mean regret among all", confirm, LARGER, only_cheap=False),
        _limit_row("5 epochs on tokens, clean, behind `erm`: worst", 0.3, _deficits(tokens, _is_clean)),
        _limit_row("5 epochs on tokens, symmetric 0.3, behind `erm`: worst", 0.0, _deficits(tokens, _is_short)),
        _passes_row(scores),
        *(_cifar_row(scores, labels, least) for labels, least in ON_CIFAR.items()),
    ]
    words = (
        f"For `{DEFAULT}` where nothing else is said, in points. A limit is missed where it is exceeded by more than "
        "two paired standard errors, for the worst in any condition; by less, it is within the error."
    )
    return f"{words}\n\n{markdown(['what', 'limit', 'found', 'verdict'], rows)}"


ON_CIFAR = {  # accuracy of the last epoch
    "symmetric:0.2": 62.5, "symmetric:0.5": 56.5, "symmetric:0.8": 27.0, "derangement:0.4": 53.5, "human:worse": 57.5,
}  # fmt: skip
UNKNOWN = ["–", "not measured yet"]
VERDICTS = ("missed", "open, one seed", "within the error", "reached")  # the worst first


def _is_clean(noise: Noise) -> bool:
    return noise == CLEAN


def _is_short(noise: Noise) -> bool:
    return noise == SHORT


def _is_light(noise: Noise) -> bool:
    return 0 < noise.share <= FEW_WRONG


def _together(found: Mapping[str, Estimate]) -> dict[str, Estimate]:
    return {"": average(list(found.values()))} if found else {}


def _deficits(scores: Sequence[Scores], wanted: Callable[[Noise], bool]) -> dict[str, Estimate]:
    """How far the default is behind plain training, by condition."""
    some = [one for one in scores if wanted(one.condition.noise)]
    found = {_title(one.condition): deficit(one.delivered, DEFAULT, "erm") for one in some}
    return {name: one for name, one in found.items() if one is not None}


def _limit_row(what: str, limit: float, found: Mapping[str, Estimate]) -> list[str]:
    if not found:
        return [what, f"{limit:g}", *UNKNOWN]
    name = max(found, key=lambda one: found[one].mean)
    verdicts = [one.verdict(limit) for one in found.values()]
    verdict = next(word for word in VERDICTS if word in verdicts)
    if verdict == "missed" and len(found) > 1:
        verdict += f" in {verdicts.count(verdict)} of {len(found)}"
    return [what, f"{limit:g}", f"{_shown(found[name], 2)}{f' ({name})' if name else ''}", verdict]


def _smallest_row(what: str, scores: Sequence[Scores], name: str, only_cheap: bool) -> list[str]:
    """Whether nobody's mean is smaller, over the conditions that both have."""
    each = [regrets(one, only_cheap) for one in scores]
    limit = "the smallest"
    behind = {}
    for contender in CONTENDERS:
        both = [found for found in each if name in found and contender.name in found]
        if both and contender.name != name and not _is_ceiling(contender.name):
            behind[contender.name] = mean(found[name].mean - found[contender.name].mean for found in both)
    title = f"{what}{'' if name == DEFAULT else f', of `{name}`'}"
    if not behind:
        return [title, limit, *UNKNOWN]
    nearest = max(behind, key=lambda one: behind[one])
    verdict = "missed" if behind[nearest] > 0 else "reached"
    return [title, limit, f"{-behind[nearest]:+.2f} ahead of `{nearest}`", verdict]


def _passes_row(scores: Sequence[Scores]) -> list[str]:
    ratios = {_title(one.condition): relative(one.passes, DEFAULT) for one in scores}
    known = {name: ratio for name, ratio in ratios.items() if ratio is not None}
    if not known:
        return ["passes relative to `erm`, every condition", "1.1", *UNKNOWN]
    most = max(known, key=lambda one: known[one])
    verdict = "missed" if known[most] > 1.1 else "reached"
    return ["passes relative to `erm`, every condition", "1.1", f"{known[most]:.2f} ({most})", verdict]


def _cifar_row(scores: Sequence[Scores], labels: str, least: float) -> list[str]:
    what = f"CIFAR-10 in small, {labels}, accuracy of the last epoch"
    some = [one for one in scores if one.condition.part == CIFAR and one.condition.noise.name == labels]
    values = [value for one in some for value in one.last.get(DEFAULT, {}).values()]
    if not values:
        return [what, f"{least}", *UNKNOWN]
    found = Estimate.of([-value for value in values])
    shown = f"{mean_sd(-found.mean, found.error)} ({found.n} seed{'s' * (found.n > 1)})"
    return [what, f"{least}", shown, found.verdict(-least)]


# ------------------------------------------------------------------------------------------- numbers and picture


def regret_csv(lines: Iterable[dict[str, Any]]) -> str:
    """A line a method and condition."""
    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    names = ["regret", "regret_error", "regret_cheap", "regret_cheap_error", "passes", "auroc"]
    writer.writerow(["part", "condition", "method", "seeds", "delivered", "last_epoch", *names])
    for one in scores_of(lines):
        every, few = regrets(one, only_cheap=False), regrets(one, only_cheap=True)
        for name, values in one.delivered.items():
            ratio = relative(one.passes, name)
            writer.writerow(
                [
                    one.condition.part,
                    one.condition.name,
                    name,
                    len(values),
                    f"{mean(values.values()):.2f}",
                    f"{mean(one.last[name].values()):.2f}" if name in one.last else "",
                    *_numbers(every.get(name)),
                    *_numbers(few.get(name)),
                    "" if ratio is None else f"{ratio:.3f}",
                    f"{mean(one.auroc[name].values()):.4f}" if name in one.auroc else "",
                ]
            )
    return buffer.getvalue()


def _numbers(found: Estimate | None) -> list[str]:
    return ["", ""] if found is None else [f"{found.mean:.2f}", "" if found.error is None else f"{found.error:.2f}"]


def regret_png(lines: Iterable[dict[str, Any]]) -> bytes | None:
    """Each method's distance to the best of all others, condition by condition; None without results."""
    scores = [one for one in scores_of(lines) if regrets(one, only_cheap=False)]
    if not scores:
        return None
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib.figure import Figure

    parts = [part for part in PARTS if any(one.condition.part == part for one in scores)]
    names = [one.name for one in CONTENDERS if any(one.name in regrets(each, only_cheap=False) for each in scores)]
    rows = [[one for one in scores if one.condition.part == part] for part in parts]
    tall = 0.24 * sum(map(len, rows)) + 1.6 * len(parts)
    figure = Figure(figsize=(4 + 0.62 * len(names), tall), layout="constrained")
    heights = [len(some) + 3 for some in rows]
    places = figure.subplots(len(parts), squeeze=False, height_ratios=heights)[:, 0]
    for axes, part, some in zip(places, parts, rows, strict=True):
        _draw(axes, PARTS[part][0], names, some)
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=110, metadata={"Software": None})
    return buffer.getvalue()


def _draw(axes: Axes, title: str, names: Sequence[str], scores: Sequence[Scores]) -> None:
    """One part: a row a condition, a column a method, darker where more is lost."""
    import numpy as np

    found = [regrets(one, only_cheap=False) for one in scores]
    values = np.array([[each[name].mean if name in each else np.nan for name in names] for each in found])
    axes.imshow(np.clip(values, 0, 10), cmap="YlOrBr", vmin=0, vmax=10, aspect="auto")
    for row, column in np.argwhere(~np.isnan(values)):
        value = values[row, column]
        colour = "white" if value > 7 else "black"
        axes.text(column, row, f"{value:.1f}", ha="center", va="center", fontsize=6.5, color=colour)
    axes.set_title(f"{title}: points behind the best of the others", fontsize=9, loc="left")
    axes.set_yticks(range(len(scores)), [_title(one.condition) for one in scores], fontsize=7)
    axes.set_xticks(range(len(names)), names, fontsize=7, rotation=40, ha="left")
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)

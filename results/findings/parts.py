"""What the parts of CRUST are worth: groups by prediction, mixup, weights, and the size of the coreset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean

from crust.experiments.outputs.table_markdown import markdown
from crust.experiments.paper import published
from crust.experiments.paper.tables_and_figures import MIXUP, OWN_SIZE, PART_COLUMNS, PARTS, VARIANTS
from results.findings.numbers import (
    HALF,
    NOISES,
    Finding,
    Runs,
    clear,
    differences,
    every,
    of_variants,
    on_average,
    plain,
    shown,
    so_far,
)
from results.tables import CENTRAL, of_runs

SHARES = (0.3, 0.5, 0.7)
FIXED = tuple(name for name in VARIANTS if name != "crust")  # whose coresets have the size that they are given
Comparisons = Sequence[Sequence[float]]  # each by some seeds; empty where runs are missing


def grouping(runs: Runs) -> Finding:
    """Table 2: groups by prediction or by label."""
    claim = "Coresets chosen by predicted class are better than those chosen by given label."
    return _ablation(runs, "Prediction against label", claim, "by prediction", "by label", ("no mixup", "mixup"), 0)


def mixup(runs: Runs) -> Finding:
    """Table 2: with mixup or without."""
    claim = "Mixup makes CRUST better."
    return _ablation(runs, "Mixup", claim, "mixup", "no mixup", ("by label", "by prediction"), 1)


def _ablation(
    runs: Runs, title: str, claim: str, with_it: str, without: str, others: tuple[str, str], place: int
) -> Finding:
    """Pairs of rows of Table 2 that differ in one part; `place`: whether that part is named first or second."""
    rows: list[list[str]] = []
    of_rule: dict[str, list[list[float]]] = {}
    for method, mixup in MIXUP.items():
        of_rule[method] = []
        for other in others:
            for column, labels in PART_COLUMNS.items():
                ours, paper = [], []
                for part in (with_it, without):
                    parts = f"{part}, {other}" if place == 0 else f"{other}, {part}"
                    grouping, mixed = PARTS[parts]
                    options = {"grouping": grouping, "mixup": mixup if mixed else "none"}
                    ours.append(runs.last(method, labels, **options))
                    paper.append(published.TABLE2[f"crust-paper: {parts}", column].mean)
                gain = differences(*ours)
                of_rule[method] += [gain] if gain else []
                theirs = f"{paper[0] - paper[1]:+.2f}" if method == "crust-paper" else "–"
                rows.append([f"`{method}`", other, NOISES[labels], shown(gain), theirs])
    asked = {method: len(rows) // len(of_rule) for method in of_rule}
    if with_it == "mixup":  # the one part that `crust` has a row without
        unmixed = OWN_SIZE["crust: no mixup"]
        by_noise = {
            labels: differences(runs.last("crust", labels), runs.last("crust", labels, **unmixed))
            for labels in PART_COLUMNS.values()
        }
        rows += [["`crust`", "by prediction", NOISES[labels], shown(gain), "–"] for labels, gain in by_noise.items()]
        of_rule["crust"], asked["crust"] = [gain for gain in by_noise.values() if gain], len(by_noise)
    words = []
    for method, gains in of_rule.items():
        if gains:
            won, lost = (sum(clear(gain) == sign for gain in gains) for sign in (1, -1))
            middle = mean(mean(gain) for gain in gains)
            words.append(
                f"`{method}`: {middle:+.1f} points on average over {len(gains)} of {asked[method]} comparisons; "
                f"clearly better in {won}, clearly worse in {lost}."
            )
        else:
            words.append(f"`{method}`: not measured yet.")
    verdict = of_variants(
        {method: so_far(on_average(gains), len(gains), asked[method]) for method, gains in of_rule.items()}
    )
    header = ["rule", "both", "noise", f"{with_it} minus {without}, points", "in the paper"]
    return Finding(title, claim, verdict, words, markdown(header, rows))


def weights(runs: Runs) -> Finding:
    """Medoids weighted by the sizes of their clusters, or not."""
    rows, gains = [], {}
    rules = {"crust-paper": "facility location", "crust-half": "most central by prediction, not mixed"}
    for method, rule in rules.items():
        base = CENTRAL if method == "crust-half" else {}
        both = {weights: runs.last(method, HALF, **{**base, "weights": weights}) for weights in ("cluster", "none")}
        gains[method] = differences(both["cluster"], both["none"])
        rows.append([f"`{method}`", rule, *(plain(both[each].values()) for each in both), shown(gains[method])])
    words = [
        f"`{method}`: weights by cluster size change accuracy by {mean(gain):+.1f} points."
        if gain
        else f"`{method}`: not measured yet."
        for method, gain in gains.items()
    ]
    claim = "Medoids weighted by the sizes of their clusters train better than without weights."
    header = ["method", "rule", "weighted", "not weighted", "difference"]
    verdict = of_variants({method: on_average([gain] if gain else []) for method, gain in gains.items()})
    return Finding("Weights (symmetric 0.5)", claim, verdict, words, markdown(header, rows))


def size(runs: Runs) -> list[Finding]:
    """Figure 1: three claims, of each variant of a given size by itself; `crust` stands beside them."""
    last = {name: {share: runs.last(name, HALF, fraction=share) for share in SHARES} for name in FIXED}
    clean = {name: {share: runs.clean(name, HALF, fraction=share) for share in SHARES} for name in FIXED}
    early = {name: {share: runs.clean(name, HALF, None, fraction=share) for share in SHARES} for name in FIXED}
    rows = [
        [f"`{name}`", f"{share:.0%}", *(plain(each[name][share].values()) for each in (early, clean, last))]
        for name in FIXED
        for share in SHARES
    ]
    own = [plain(values.values()) for values in (runs.clean("crust", HALF), runs.last("crust", HALF))]
    rows.append(["`crust`", "its own size", "–", *own])
    header = ["method", "coreset", "right labels, %, first coreset", "last coreset", "test accuracy, last epoch"]
    falls = {name: [differences(of[0.3], of[0.5]), differences(of[0.5], of[0.7])] for name, of in clean.items()}
    grows = {name: [differences(clean[name][share], early[name][share]) for share in SHARES] for name in clean}
    best = {name: [differences(of[0.5], of[share]) for share in (0.3, 0.7)] for name, of in last.items()}
    gains = {
        name: ", ".join(f"{share:.0%} {shown(gap)}" for share, gap in zip(SHARES, gaps, strict=True))
        for name, gaps in grows.items()
    }
    return [
        Finding(
            "Coreset size (symmetric 0.5)",
            "The smaller the coreset, the cleaner: clean examples are chosen first.",
            _each(falls),
            _sentences("Right labels, %", {name: _steps(of) for name, of in clean.items()}, falls),
            markdown(header, rows),
        ),
        Finding(
            "Over the epochs",
            "Coresets get cleaner as training goes on.",
            _each(grows),
            _sentences("Right labels from the first coreset to the last, points", gains, grows),
        ),
        Finding(
            "The best size",
            "With half of the labels wrong, coresets of 50% are better than those of 30% and of 70%.",
            _each(best),
            _sentences("Test accuracy", {name: _steps(of) for name, of in last.items()}, best),
        ),
    ]


def by_noise(runs: Runs) -> Finding:
    """Our rules with as many examples as seem right, beside half of them."""
    rows: list[list[str]] = []
    gains: dict[str, dict[str, list[float]]] = {"rate": {}, "own": {}}
    for labels, title in NOISES.items():
        half, rated = runs.last("crust-half", labels), runs.lines("crust-half", labels, fraction="noise-rate")
        shares = [1 - rate for rate in of_runs(rated.values(), "facts", "noise_info", "noise_rate", "value")]
        last = {seed: 100 * line["accuracy"]["last"] for seed, line in rated.items()}
        own = runs.last("crust", labels)
        for by_noise, found in zip(gains.values(), (last, own), strict=True):
            gap = differences(found, half)
            by_noise |= {title: gap} if gap else {}
        share = f"{mean(shares):.0%}" if shares else "–"
        both = [shown(by_noise.get(title, [])) for by_noise in gains.values()]
        rows.append([title, plain(half.values()), plain(last.values()), share, both[0], plain(own.values()), both[1]])
    each, ours = (
        ", ".join(f"{title} {mean(gain):+.1f}" for title, gain in by_noise.items()) for by_noise in gains.values()
    )
    what = (
        "The paper has coresets of 50% whatever the noise. `crust-half` with `fraction=noise-rate` takes one minus the "
        "noise rate, which it estimates first."
    )
    words = [what, f"Against half of the examples: {each} points." if each else "Not measured yet."]
    words += [f"`crust`, which sizes its coreset as it trains, against half of them: {ours} points."] if ours else []
    header = ["noise", "half", "`fraction=noise-rate`", "its share", "difference", "`crust`", "difference to half"]
    return Finding("As many as are right", "", "", words, markdown(header, rows))


def _each(by_variant: Mapping[str, Comparisons]) -> str:
    """What each variant says of a claim: one may bear out what the paper's own method contradicts."""
    known = {name: [gap for gap in gaps if gap] for name, gaps in by_variant.items()}
    return of_variants({name: so_far(every(some), len(some), len(by_variant[name])) for name, some in known.items()})


def _sentences(what: str, numbers: Mapping[str, str], by_variant: Mapping[str, Comparisons]) -> list[str]:
    """The numbers of those that can be compared."""
    words = [f"{what}, `{name}`: {numbers[name]}." for name, gaps in by_variant.items() if any(gaps)]
    return words or ["Not measured yet."]


def _steps(values: Mapping[float, Mapping[int, float]]) -> str:
    return ", ".join(f"{share:.0%} {plain(found.values())}" for share, found in values.items())

"""What the parts of CRUST are worth: groups by prediction, mixup, weights, and the size of the coreset."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import mean

from crust.experiments.findings.numbers import (
    HALF,
    NOISES,
    Finding,
    Runs,
    clear,
    differences,
    every,
    on_average,
    plain,
    shown,
    so_far,
)
from crust.experiments.paper import published, table2
from crust.experiments.tables import CENTRAL, markdown

SHARES = (0.3, 0.5, 0.7)


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
    for method, mixup in table2.MIXUP.items():
        of_rule[method] = []
        for other in others:
            for column, labels in table2.COLUMNS.items():
                ours, paper = [], []
                for part in (with_it, without):
                    parts = f"{part}, {other}" if place == 0 else f"{other}, {part}"
                    grouping, mixed = table2.PARTS[parts]
                    options = {"grouping": grouping, "mixup": mixup if mixed else "none"}
                    ours.append(runs.last(method, labels, **options))
                    paper.append(published.TABLE2[f"crust-paper: {parts}", column].mean)
                gain = differences(*ours)
                of_rule[method] += [gain] if gain else []
                theirs = f"{paper[0] - paper[1]:+.2f}" if method == "crust-paper" else "–"
                rows.append([f"`{method}`", other, NOISES[labels], shown(gain), theirs])
    words = []
    for method, gains in of_rule.items():
        if gains:
            won, lost = (sum(clear(gain) == sign for gain in gains) for sign in (1, -1))
            middle = mean(mean(gain) for gain in gains)
            words.append(
                f"`{method}`: {middle:+.1f} points on average over {len(gains)} of 4 comparisons; clearly better "
                f"in {won}, clearly worse in {lost}."
            )
        else:
            words.append(f"`{method}`: not measured yet.")
    both = [gain for gains in of_rule.values() for gain in gains]
    header = ["rule", "both", "noise", f"{with_it} minus {without}, points", "in the paper"]
    return Finding(title, claim, so_far(on_average(both), len(both), len(rows)), words, markdown(header, rows))


def weights(runs: Runs) -> Finding:
    """Medoids weighted by the sizes of their clusters, or not."""
    rows, gains = [], {}
    rules = {"crust-paper": "facility location", "crust": "most central by prediction, not mixed"}
    for method, rule in rules.items():
        base = CENTRAL if method == "crust" else {}
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
    found = [gain for gain in gains.values() if gain]
    header = ["method", "rule", "weighted", "not weighted", "difference"]
    verdict = so_far(on_average(found), len(found), len(gains))
    return Finding("Weights (symmetric 0.5)", claim, verdict, words, markdown(header, rows))


def size(runs: Runs) -> list[Finding]:
    """Figure 1: three claims."""
    last = {share: runs.last("crust", HALF, share=share) for share in SHARES}
    clean = {share: runs.clean("crust", HALF, share=share) for share in SHARES}
    early = {share: runs.clean("crust", HALF, None, share=share) for share in SHARES}
    rows = [
        [f"{share:.0%}", plain(early[share].values()), plain(clean[share].values()), plain(last[share].values())]
        for share in SHARES
    ]
    header = ["coreset of `crust`", "right labels, %, first coreset", "last coreset", "test accuracy, last epoch"]
    table = markdown(header, rows)
    falls = [gap for gap in (differences(clean[0.3], clean[0.5]), differences(clean[0.5], clean[0.7])) if gap]
    more = {share: differences(clean[share], early[share]) for share in SHARES}
    grows = [gap for gap in more.values() if gap]
    best = [gap for gap in (differences(last[0.5], last[share]) for share in (0.3, 0.7)) if gap]
    words_falls = f"Right labels: {_steps(clean)}." if falls else "Not measured yet."
    parts = ", ".join(f"{share:.0%} {shown(gap)}" for share, gap in more.items())
    words_grows = f"Right labels from the first coreset to the last, points: {parts}." if grows else "Not measured yet."
    words_best = f"Test accuracy: {_steps(last)}." if best else "Not measured yet."
    return [
        Finding(
            "Coreset size (symmetric 0.5)",
            "The smaller the coreset, the cleaner: clean examples are chosen first.",
            so_far(every(falls), len(falls), 2),
            [words_falls],
            table,
        ),
        Finding(
            "Over the epochs",
            "Coresets get cleaner as training goes on.",
            so_far(every(grows), len(grows), 3),
            [words_grows],
        ),
        Finding(
            "The best size",
            "With half of the labels wrong, coresets of 50% are better than those of 30% and of 70%.",
            so_far(every(best), len(best), 2),
            [words_best],
        ),
    ]


def _steps(values: Mapping[float, Mapping[int, float]]) -> str:
    return ", ".join(f"{share:.0%} {plain(found.values())}" for share, found in values.items())

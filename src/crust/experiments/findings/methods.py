"""CRUST against the others, and what its coresets hold."""

from __future__ import annotations

from statistics import mean

from crust.experiments.findings.numbers import CLEAR, HALF, NOISES, Finding, Runs, differences, every, plain, so_far
from crust.experiments.paper import table1
from crust.experiments.tables import markdown


def everyone(runs: Runs) -> Finding:
    """Table 1: is CRUST ahead of all baselines?"""
    rows, gaps, behind = [], [], []
    for labels, title in NOISES.items():
        scores = {name: runs.last(name, labels) for name in ("erm", *table1.BASELINES, *table1.VARIANTS)}
        rivals = {name: mean(scores[name].values()) for name in table1.BASELINES if scores[name]}
        best = max(rivals, key=lambda name: rivals[name]) if rivals else None
        row = [title, f"`{best}` {plain(scores[best].values())}" if best else "missing"]
        for name in table1.VARIANTS:
            row.append(plain(scores[name].values()))
            if best and scores[name] and len(rivals) == len(table1.BASELINES):
                gap = mean(scores[name].values()) - rivals[best]
                gaps.append(gap)
                if gap < CLEAR:
                    behind.append(f"`{name}` on {title} ({gap:+.1f} against `{best}`)")
        rows.append([*row, plain(scores["erm"].values()), f"{len(rivals)} of {len(table1.BASELINES)}"])
    words = []
    if gaps:
        ahead = len(gaps) - len(behind)
        words.append(f"Of {len(gaps)} comparisons with the best of all eight baselines, {ahead} are clearly won.")
        if behind:
            words.append(f"Not ahead: {', '.join(behind)}.")
    else:
        words.append("No column has all eight baselines yet.")
    header = ["noise", "best baseline", *(f"`{name}`" for name in table1.VARIANTS), "`erm`", "baselines run"]
    claim = "CRUST is ahead of all eight baselines in every column of Table 1."
    return Finding(
        "CRUST against the baselines", claim, so_far(every(gaps), len(gaps), 15), words, markdown(header, rows)
    )


def rule(runs: Runs) -> Finding:
    """Does facility location find clean examples, and do central points?"""
    rows: list[list[str]] = []
    gains: dict[str, list[float]] = {name: [] for name in table1.VARIANTS}
    for labels, title in NOISES.items():
        everyone = runs.clean_of_all(labels)
        row = [title, plain(everyone.values())]
        for name in table1.VARIANTS:
            clean = runs.clean(name, labels)
            more = differences(clean, everyone)
            gains[name] += [mean(more)] if more else []
            row.append(plain(clean.values()))
        rows.append(row)
    words = []
    for name, what in (
        ("crust-paper", "facility location by prediction, as the text has it"),
        ("crust-released", "the most central by given label, as the published code has it"),
        ("crust", "the most central by prediction, our rule"),
    ):
        if gains[name]:
            low, high = min(gains[name]), max(gains[name])
            span = f"{low:+.1f}" if len(gains[name]) == 1 else f"{low:+.1f} to {high:+.1f}"
            words.append(f"`{name}` ({what}): {span} points of right labels more than among all examples.")
    ends = {name: runs.last(name, HALF) for name in (*table1.VARIANTS, "random", "oracle")}
    if ends["random"] and ends["oracle"]:
        parts = []
        for name in table1.VARIANTS:
            both = [
                (ends[name][seed] - ends["random"][seed]) / (ends["oracle"][seed] - ends["random"][seed])
                for seed in sorted(ends[name].keys() & ends["random"].keys() & ends["oracle"].keys())
                if ends["oracle"][seed] != ends["random"][seed]
            ]
            if both:
                parts.append(f"`{name}` {mean(both):.2f}")
        if parts:
            words.append(
                "Of the way in test accuracy from a random half (0) to the truly right half (1), under symmetric noise "
                f"of 0.5: {', '.join(parts)}."
            )
    if not words:
        words = ["No such run is there yet."]
    header = [
        "right labels, % of those trained on in the last epoch",
        "all",
        *(f"`{name}`" for name in table1.VARIANTS),
    ]
    claim = "Medoids by facility location in gradient space mostly have right labels, so that coresets are cleaner."
    verdict = so_far(every(gains["crust-paper"]), len(gains["crust-paper"]), len(NOISES))
    return Finding("Facility location against central points", claim, verdict, words, markdown(header, rows))

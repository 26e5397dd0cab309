"""CRUST against the others, and what its coresets hold."""

from __future__ import annotations

from statistics import mean

from crust.experiments.outputs.table_markdown import markdown
from crust.experiments.paper.tables_and_figures import BASELINES, VARIANTS
from results.findings.numbers import HALF, NOISES, Finding, Runs, clear, differences, every, of_variants, plain, so_far

PAPERS = ("crust-paper", "crust-released")  # the paper's own method, by its text and by its code


def everyone(runs: Runs) -> Finding:
    """Table 1: is CRUST ahead of all baselines?"""
    rows: list[list[str]] = []
    gaps: dict[str, dict[str, list[float]]] = {name: {} for name in VARIANTS}
    for labels, title in NOISES.items():
        scores = {name: runs.last(name, labels) for name in ("erm", *BASELINES, *VARIANTS)}
        rivals = {name: mean(scores[name].values()) for name in BASELINES if scores[name]}
        best = max(rivals, key=lambda name: rivals[name]) if rivals else None
        row = [title, f"`{best}` {plain(scores[best].values())}" if best else "missing"]
        for name in VARIANTS:
            row.append(plain(scores[name].values()))
            gap = differences(scores[name], scores[best]) if best and len(rivals) == len(BASELINES) else []
            gaps[name] |= {title: gap} if gap else {}
        rows.append([*row, plain(scores["erm"].values()), f"{len(rivals)} of {len(BASELINES)}"])
    words = []
    for name, by_noise in gaps.items():
        if by_noise:
            won = sum(clear(gap) == 1 for gap in by_noise.values())
            each = ", ".join(f"{title} {mean(gap):+.1f}" for title, gap in by_noise.items())
            words.append(
                f"`{name}` against the best baseline: {each} points; clearly ahead in {won} of {len(by_noise)}."
            )
    if not words:
        words = ["No column has all eight baselines yet."]
    theirs = {name: list(gaps[name].values()) for name in PAPERS}
    header = ["noise", "best baseline", *(f"`{name}`" for name in VARIANTS), "`erm`", "baselines run"]
    claim = "CRUST is ahead of all eight baselines in every column of Table 1."
    verdict = of_variants({name: so_far(every(some), len(some), len(NOISES)) for name, some in theirs.items()})
    return Finding("CRUST against the baselines", claim, verdict, words, markdown(header, rows))


def rule(runs: Runs) -> Finding:
    """Does facility location find clean examples, and do central points?"""
    rows: list[list[str]] = []
    gains: dict[str, list[list[float]]] = {name: [] for name in VARIANTS}
    for labels, title in NOISES.items():
        everyone = runs.clean_of_all(labels)
        row = [title, plain(everyone.values())]
        for name in VARIANTS:
            clean = runs.clean(name, labels)
            more = differences(clean, everyone)
            gains[name] += [more] if more else []
            row.append(plain(clean.values()))
        rows.append(row)
    words = []
    for name, what in (
        ("crust-paper", "facility location by prediction, as the text has it"),
        ("crust-released", "the most central by given label, as the published code has it"),
        ("crust-half", "the most central by prediction, our rule of a fixed size"),
        ("crust", "the same, as many as seem right, by weight"),
    ):
        if gains[name]:
            means = [mean(more) for more in gains[name]]
            span = f"{min(means):+.1f}" if len(means) == 1 else f"{min(means):+.1f} to {max(means):+.1f}"
            words.append(f"Right labels in its coresets against those among all, `{name}` ({what}): {span} points.")
    ends = {name: runs.last(name, HALF) for name in (*VARIANTS, "random", "oracle")}
    if ends["random"] and ends["oracle"]:
        parts = []
        for name in VARIANTS:
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
        *(f"`{name}`" for name in VARIANTS),
    ]
    claim = "Medoids by facility location in gradient space mostly have right labels, so that coresets are cleaner."
    medoids = gains["crust-paper"]  # the only one that has them by facility location
    verdict = of_variants({"crust-paper": so_far(every(medoids), len(medoids), len(NOISES))})
    return Finding("Facility location against central points", claim, verdict, words, markdown(header, rows))

"""The decisive column on all of CIFAR-10, with augmentation and a longer run, beside the same in small."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crust.experiments.outputs.table_markdown import markdown
from crust.experiments.paper import EXPERIMENTS
from crust.experiments.specs import make
from results.findings.numbers import CLEAR, HALF, Finding, Runs
from results.tables import passes

EPOCHS = (10, 20, 30, 40, 50)
WHAT = (
    "The findings above rest on 10,000 images without augmentation. Here half of the labels of all 50,000 are wrong (a "
    "tenth is held out), images are cropped and mirrored, a ResNet-14 is trained for 50 epochs (`crust reproduce "
    "table1 --scale full`), one seed. *Delivered* is the epoch that was best on the held-out noisy labels; right "
    "labels are those of the coreset, by weight for `crust`; passes are relative to `erm`."
)


def everything(runs: Runs) -> Finding:
    """What the decisive column says on all images, and what changes against the small scale.

    Example:
        >>> from crust.experiments.outputs.table_summary import ResultIndex
        >>> everything(Runs(ResultIndex([]))).sentences[1][:8]
        'Missing:'
    """
    lines = {
        spec["method"]: next(iter(runs.found.runs(spec).values()), None)
        for spec in EXPERIMENTS["table1"].specs("full", 1)
    }
    plain = lines["erm"]
    rows, gaps, absent = [], {}, []
    for method, line in lines.items():
        small = next(iter(runs.found.runs(make(method, HALF, scale="cpu")).values()), None)
        few = f"{_last(small):.1f}" if small else "missing"
        if line is None:
            absent.append(method)
            rows.append([f"`{method}`", "missing", "missing", few, *["missing"] * (len(EPOCHS) + 1)])
            continue
        curve = line["curves"].get("clean_fraction_weighted" if method == "crust" else "clean_fraction", [])
        last = curve[-max(EPOCHS) :]
        pure = [f"{100 * last[epoch - 1]:.0f}" if epoch <= len(last) and last[epoch - 1] else "–" for epoch in EPOCHS]
        cost = f"{(passes([line]) or 0) / (passes([plain]) or 1):.2f}" if plain else "–"
        rows.append([f"`{method}`", f"{_last(line):.1f}", _delivered(line), few, *pure, cost])
        if plain and small and method != "erm":
            less = next(iter(runs.found.runs(make("erm", HALF, scale="cpu")).values()), None)
            if less:
                gaps[method] = (_last(line) - _last(plain), _last(small) - _last(less))
    words = [WHAT]
    if gaps:
        each = ", ".join(f"`{name}` {large:+.1f} ({few:+.1f})" for name, (large, few) in gaps.items())
        words.append(f"Last epoch against `erm`, points, in brackets at the small scale: {each}.")
        words.append(_changes(gaps))
    if absent:
        words.append(f"Missing: {', '.join(f'`{name}`' for name in absent)}.")
    header = ["method", "last epoch", "delivered", "small scale, last epoch"]
    header += [*(f"right labels, %, epoch {epoch}" for epoch in EPOCHS), "passes"]
    return Finding("On all of CIFAR-10 (symmetric 0.5)", "", "", words, markdown(header, rows))


def _last(line: dict[str, Any]) -> float:
    return 100 * float(line["accuracy"]["last"])


def _delivered(line: dict[str, Any]) -> str:
    """Test accuracy of the first epoch that is best on noisy validation."""
    curves: Sequence[Any] = [line["curves"].get(name, []) for name in ("val_accuracy", "test_accuracy")]
    both = [(val, test) for val, test in zip(*curves, strict=False) if val is not None and test is not None]
    return f"{100 * max(both[-max(EPOCHS) :], key=lambda pair: pair[0])[1]:.1f}" if both else "–"


def _changes(gaps: dict[str, tuple[float, float]]) -> str:
    """Which methods swap their order, beyond what counts as a difference."""
    turned = [
        f"`{one}` and `{other}`"
        for number, one in enumerate(gaps)
        for other in list(gaps)[number + 1 :]
        if min(abs(gaps[one][at] - gaps[other][at]) for at in (0, 1)) >= CLEAR
        and (gaps[one][0] > gaps[other][0]) != (gaps[one][1] > gaps[other][1])
    ]
    against = [one for one, pair in gaps.items() if min(map(abs, pair)) >= CLEAR and pair[0] * pair[1] < 0]
    turned += [f"`{one}` and `erm`" for one in against]
    return f"The order changes between {', '.join(turned)}." if turned else "No order changes."

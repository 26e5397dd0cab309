"""Whether an audit is to be relied on, and what to do where it is not: by the labels that nobody has trained on.

A network that knows nothing has opinions on every label all the same. What it says of held-out labels shows that: they
agree hardly oftener than by chance, they agreed better earlier in the run, or they contradict what was trained on.
The verdict is one sentence in the table's `attrs["unreliable"]`, which Parquet keeps; where there is none, nothing of
the kind was seen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from crust.audit.by_class import UNDER_SELECTED
from crust.audit.noise_rate import FEWEST, NoiseRate, near_chance, noise_rate, unseen

if TYPE_CHECKING:
    import pandas as pd

UNRELIABLE = "unreliable"  # of the attrs of an audit's table
FEW = 50  # examples: of fewer nothing can be told
FALL = 0.03  # beyond two standard errors: so much less agreement at the end of a run than at its best
EPOCHS = 6  # of a shorter run no fall can be told from its beginning
APART = 0.1  # beyond the interval of the noise rate: so many more, or fewer, are trained on than have right labels
MISSED = 0.25  # of the held-out labels are of classes that hardly anyone is trained on or predicted to be
MEMBERS = ("n_members", "n_selected")  # of the history; the first that is there
PLAIN = ("erm", "mixup")
NOISY = 0.08  # the lower end of the noise rate from which on plain training is the worse choice

Lines = Sequence[Mapping[str, Any]]


def unreliable(table: pd.DataFrame, history: Lines = (), kept_epoch: int | None = None) -> str | None:
    """Why an audit is not to be relied on and what to do, in one sentence; None where nothing speaks against it.

    Args:
        table: the audit.
        history: of the run, a line an epoch.
        kept_epoch: after how many epochs the weights were as in the kept model.

    Example:
        >>> import pandas as pd
        >>> columns = {"given_label": ["a", "b"] * 50, "predicted_label": ["a", "a", "b", "b"] * 25}
        >>> unreliable(pd.DataFrame({**columns, "is_held_out": True}))[:53]
        'the predictions for 100 held-out examples agree with '
        >>> unreliable(pd.DataFrame({**columns, "predicted_label": columns["given_label"], "is_held_out": True}))
    """
    if len(table) < FEW:
        return f"there are only {len(table)} examples: get more, or look at every label yourself"
    held = table[unseen(table)]
    if not len(held):
        return None  # nothing can be known: `noise_rate` says so
    nothing_known = near_chance(held["given_label"].to_numpy(), held["predicted_label"].to_numpy())
    if nothing_known is not None:
        return (
            f"{nothing_known}: see that labels belong to their rows, then hold more out (validation), train longer, "
            "or with another model or learning rate"
        )
    counting = [line for line in history if line.get("counts", True)]
    return _missed(table, held) or _too_many(table, counting) or _fall(counting, len(held), kept_epoch)


def mark(table: pd.DataFrame, history: Lines = (), kept_epoch: int | None = None) -> pd.DataFrame:
    """The same table, with the verdict in its `attrs` where it is not to be relied on."""
    reason = unreliable(table, history, kept_epoch)
    if reason is not None:
        table.attrs[UNRELIABLE] = reason
    return table


def warning_of(table: pd.DataFrame) -> str | None:
    """The line that is shown wherever an audit is, or None."""
    reason = table.attrs.get(UNRELIABLE)
    return None if reason is None else f"the audit is not reliable: {reason}"


def _missed(table: pd.DataFrame, held: pd.DataFrame) -> str | None:
    """Classes of the held-out labels that the run has locked out: hardly ever trained on, or predicted for no one."""
    given = held["given_label"].value_counts()
    predicted = held["predicted_label"].value_counts().reindex(given.index, fill_value=0)
    rarely = predicted < UNDER_SELECTED * given
    if "selection_rate" in table:
        rates = table["selection_rate"].groupby(table["given_label"]).mean().reindex(given.index)
        rarely |= rates < UNDER_SELECTED * table["selection_rate"].mean()
    share = float(given[rarely].sum() / given.sum())
    if share <= MISSED or len(held) < FEWEST:
        return None
    names = ", ".join(map(str, given[rarely].index[:5])) + (" …" if rarely.sum() > 5 else "")
    return (
        f"{100 * share:.0f} % of the held-out labels are of classes that are hardly ever trained on or predicted "
        f"({names}): use the method erm or gce, or a larger fraction"
    )


def _too_many(table: pd.DataFrame, lines: Lines) -> str | None:
    """More are trained on than can have right labels, by those held out: the network agrees with its own mistakes."""
    if any(line.get("noise_range") for line in lines):
        return None  # a coreset that found its size by the same labels, and has a bounded loss besides
    share = _chosen(table, lines)
    rate = NoiseRate() if share is None else noise_rate(table)
    if share is None or rate.value is None or share <= 1 - rate.low + APART:
        return None
    return (
        f"{100 * share:.0f} % of the examples are trained on as if their labels were right, and {_percent(rate)} of "
        "the held-out ones are wrong: start with more epochs on everyone (select_after), or a smaller fraction"
    )


def _fall(lines: Lines, held: int, kept_epoch: int | None) -> str | None:
    """Held-out labels were better predicted earlier."""
    agreed = np.array([line["val_accuracy"] for line in lines if line.get("val_accuracy") is not None])
    if len(agreed) < EPOCHS or held < FEWEST:
        return None
    width = max(2, len(agreed) // 10)
    smooth = np.convolve(agreed, np.full(width, 1 / width), "valid")
    best, last = float(smooth.max()), float(smooth[-1])
    if best - last <= FALL + 2 * math.sqrt(best * (1 - best) / held):
        return None
    epochs = kept_epoch or int(smooth.argmax()) + width
    return (
        f"predictions agreed with {100 * best:.0f} % of the held-out labels at their best and with {100 * last:.0f} % "
        f"in the end, so wrong labels were memorised: train for about {epochs} epochs, or with more weight_decay"
    )


def _chosen(table: pd.DataFrame, lines: Lines) -> float | None:
    """The share of the training examples in the last coreset; None where everyone is trained on."""
    trained = len(table) - int(np.asarray(table["is_held_out"], bool).sum())
    members = next((line[name] for name in MEMBERS for line in reversed(lines) if line.get(name) is not None), None)
    return None if members is None or not 0 < members < trained else members / trained


def _percent(rate: NoiseRate) -> str:
    return f"{100 * rate.low:.0f} to {100 * rate.high:.0f} %"


def better_method(table: pd.DataFrame, history: Lines, method: str) -> str | None:
    """Where another way to train would likely have been better for this data, by the run's own noise rate.

    Args:
        table: the audit.
        history: of the run.
        method: that it was trained by.

    Example:
        >>> import pandas as pd
        >>> rng = np.random.default_rng(0)
        >>> given, sure = rng.integers(0, 2, 900), rng.uniform(0.9, 1, 900)
        >>> predicted = np.where(rng.random(900) < 0.3, 1 - given, given)
        >>> columns = {"given_label": given, "predicted_label": predicted, "predicted_prob": sure, "is_held_out": True}
        >>> "--method crust" in better_method(pd.DataFrame(columns), [], "erm")
        True
    """
    rate = noise_rate(table)
    if rate.value is None:
        return None
    lines = [line for line in history if line.get("counts", True)]
    if method in PLAIN and rate.low > NOISY:
        return (
            f"by those held out, {_percent(rate)} of the labels are wrong: --method crust likely makes a better model"
        )
    share = _chosen(table, lines)
    if share is not None and share < 1 - rate.high - APART:
        return (
            f"{100 * (1 - share):.0f} % of the examples are left out, and by the held-out labels only {_percent(rate)} "
            "are wrong: --fraction auto, or --method erm, likely makes a better model of this data"
        )
    return None

"""What `crust audit` prints: the worst labels, the noise, and the classes."""

from __future__ import annotations

from typing import Any

from crust.cli.formatting import percent, visible

MATRIX = 12  # up to so many classes the whole matrix is shown
PAIRS = 15
CLASSES = 12
TWINS = 5


def print_audit(table: Any, classes: list[Any], top: int, found: dict[str, Any] | None) -> None:
    """All of it, on stdout; with what `crust verify` has found, where it was asked."""
    from rich.console import Console

    from crust.audit import class_summary, conflicting_duplicates, estimate_noise_matrix

    position = {name: i for i, name in enumerate(classes)}
    given, better = (table[name].map(position).to_numpy() for name in ("given_label", "predicted_label"))
    rate, matrix = estimate_noise_matrix(given, better, len(classes))
    console = Console(highlight=False)
    if top:
        console.print(_worst_table(table.head(top)))
    console.print(f"{percent(rate)} of {len(table):,} labels differ from the predicted ones", soft_wrap=True)
    if found is not None:
        for line in verified_lines(found):
            console.print(line, soft_wrap=True, markup=False)
    console.print(_matrix_table(matrix, classes) if len(classes) <= MATRIX else _pairs_table(matrix, classes))
    view = class_summary(table, classes)
    console.print(_classes_table(view))
    rare = view.loc[view["under_selected"], "label"].tolist()
    if rare:
        names = ", ".join(map(visible, rare[:10])) + (" …" if len(rare) > 10 else "")
        console.print(f"hardly ever predicted or selected, so their labels cannot be judged: {names}", soft_wrap=True,
                      markup=False)  # fmt: skip
    twins = conflicting_duplicates(table)
    if len(twins):
        groups = twins.groupby("duplicate_of", sort=True)
        console.print(f"the same example with different labels, {twins['duplicate_of'].nunique():,} times:")
        for _, some in list(groups)[:TWINS]:
            said = ", ".join(f"{row['index']} ({visible(row['given_label'])})" for row in some.to_dict("records")[:10])
            console.print(f"  {said}", soft_wrap=True, markup=False)


def verified_lines(found: dict[str, Any]) -> list[str]:
    """What `crust verify` has found, in words.

    Example:
        >>> share = {"value": 0.2, "low": 0.15, "high": 0.25}
        >>> cut = {"threshold": 0.7, "flagged": 30, "precision": share, "recall": share}
        >>> verified_lines({"noise_rate": share, "cut": cut, "injected": {"count": 50}, "notes": []})[0]
        'verified with 50 injected errors: noise rate 20.0 % (15.0 % to 25.0 %)'
    """

    def said(estimate: dict[str, float]) -> str:
        return f"{percent(estimate['value'])} ({percent(estimate['low'])} to {percent(estimate['high'])})"

    count, cut = found["injected"]["count"], found["cut"]
    rate = found["noise_rate"]
    lines = [f"verified with {count:,} injected errors: noise rate {said(rate)}"]
    if cut is None:
        return [*lines, "no cut is recommended: hardly any label is wrong"]
    lines.append(
        f"recommended cut: a label quality of {1 - cut['threshold']:.3f} and less, which are {cut['flagged']:,} labels"
    )
    lines.append(f"of these are wrong {said(cut['precision'])}; of all wrong ones these are {said(cut['recall'])}")
    return [*lines, *found["notes"]]


def _worst_table(table: Any) -> Any:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    rate = ["selection_rate"] if table["selection_rate"].notna().any() else []
    heads = [
        "index",
        *(["id"] if "id" in table else []),
        "given_label",
        "predicted_label",
        "predicted_prob",
        "label_quality",
        *rate,
        *(["text"] if "text" in table else []),
    ]
    shown = Table(box=box.SIMPLE_HEAD, title="the labels of the lowest quality", title_justify="left")
    for head in heads:
        left = head in ("id", "given_label", "predicted_label", "text")
        shown.add_column(head, justify="left" if left else "right", no_wrap=head in ("id", "text"), overflow="ellipsis")
    for row in table.to_dict("records"):
        cells = [visible(row[head]) for head in heads[: heads.index("predicted_prob")]]
        cells = [*map(escape, cells), f"{row['predicted_prob']:.2f}", f"{row['label_quality']:.3f}"]
        if rate:
            cells.append("held out" if row["is_held_out"] else percent(row["selection_rate"]))
        if "text" in table:
            cells.append(escape(visible(row["text"])))
        shown.add_row(*cells)
    return shown


def _matrix_table(matrix: Any, classes: list[Any]) -> Any:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    title = "% of those predicted to be (row) that are labelled (column)"
    shown = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    shown.add_column("")
    for name in classes:
        shown.add_column(escape(visible(name)), justify="right")
    for name, row in zip(classes, matrix, strict=True):
        shown.add_row(escape(visible(name)), *(f"{100 * share:.0f}" if share >= 0.005 else "·" for share in row))
    return shown


def _pairs_table(matrix: Any, classes: list[Any]) -> Any:
    """The largest entries off the diagonal, where the matrix is too large for a screen."""
    import numpy as np
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    off = matrix * (1 - np.eye(len(classes)))
    shown = Table(box=box.SIMPLE_HEAD, title="the most frequent confusions", title_justify="left")
    for head in ("predicted", "labelled", "share"):
        shown.add_column(head, justify="right" if head == "share" else "left")
    for place in np.argsort(-off, axis=None, kind="stable")[:PAIRS]:
        i, j = divmod(int(place), len(classes))
        if off[i, j] > 0:
            shown.add_row(escape(visible(classes[i])), escape(visible(classes[j])), percent(float(off[i, j])))
    return shown


def _classes_table(view: Any) -> Any:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    few = (
        view if len(view) <= CLASSES else view.sort_values("label_noise", ascending=False, kind="stable").head(CLASSES)
    )
    title = "class by class" if len(few) == len(view) else f"the {CLASSES} noisiest of {len(view)} classes"
    shown = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    heads = {"label": "", "n_given": "labelled", "label_noise": "of these label issues", "n_predicted": "predicted",
             "inverse_label_noise": "of these labelled otherwise"}  # fmt: skip
    for name, head in heads.items():
        shown.add_column(head, justify="left" if name == "label" else "right")
    for row in few.to_dict("records"):
        noisy, missed = (
            None if row[name] != row[name] else row[name] for name in ("label_noise", "inverse_label_noise")
        )
        shown.add_row(escape(visible(row["label"])), f"{row['n_given']:,}", percent(noisy), f"{row['n_predicted']:,}",
                      percent(missed))  # fmt: skip
    return shown

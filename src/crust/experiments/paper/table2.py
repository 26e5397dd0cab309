"""Table 2: what the parts of CRUST are worth: groups by given label or by prediction, with mixup or without.

Our own rule (`crust`) and the paper's (`crust-paper`) have both as settings, and nothing else varies. With mixup,
`crust` takes an example's partner from the whole coreset, `crust-paper` from its cluster. The published code
(`crust-released`) groups by label and mixes, and has no such settings: it is one row.
"""

from __future__ import annotations

from crust.experiments.outputs.table_summary import TableCellSpec
from crust.experiments.paper.table1 import own_settings

COLUMNS = {"CIFAR-10 sym 0.2": "symmetric:0.2", "CIFAR-10 sym 0.5": "symmetric:0.5"}
MIXUP = {"crust": "coreset", "crust-paper": "cluster"}
PARTS = {
    "by label, no mixup": ("label", False),
    "by label, mixup": ("label", True),
    "by prediction, no mixup": ("prediction", False),
    "by prediction, mixup": ("prediction", True),
}


def row_name(method: str, parts: str) -> str:
    """How a row is called.

    Example:
        >>> row_name("crust", "by label, mixup")
        'crust: by label, mixup'
    """
    return f"{method}: {parts}"


def table2_cells(scale: str) -> list[TableCellSpec]:
    """Four rows for each rule that has the settings, one for the published code.

    Example:
        >>> entry = table2_cells("cpu")[0]
        >>> entry.row, entry.options
        ('crust: by label, no mixup', {'grouping': 'label', 'mixup': 'none'})
    """
    found = []
    for method, mixup in MIXUP.items():
        for parts, (grouping, mixed) in PARTS.items():
            options = {**own_settings(method, scale), "grouping": grouping, "mixup": mixup if mixed else "none"}
            for column, labels in COLUMNS.items():
                found.append(TableCellSpec(row_name(method, parts), column, method, labels, options))
    for column, labels in COLUMNS.items():
        row, options = row_name("crust-released", "by label, mixup"), own_settings("crust-released", scale)
        found.append(TableCellSpec(row, column, "crust-released", labels, options))
    return found

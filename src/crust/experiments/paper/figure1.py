"""Figure 1: three curves over the epochs, for coresets of 30, 50 and 70%, half of the labels wrong.

The share of right labels in the coreset; accuracy on the whole training set against the true labels; test accuracy. At
the `cpu` scale for our own rule, else for all three variants.
"""

from __future__ import annotations

from crust.experiments.outputs.table_summary import TableCellSpec
from crust.experiments.paper.table1 import VARIANTS, own_settings

LABELS = "symmetric:0.5"
SHARES = (0.3, 0.5, 0.7)
PANELS = {
    "clean_fraction": "Right labels in the coreset",
    "train_true_accuracy": "Accuracy on the training set (true labels)",
    "test_accuracy": "Test accuracy",
}


def figure1_cells(scale: str) -> list[TableCellSpec]:
    """A row a variant, a column a size of the coreset.

    Example:
        >>> [(entry.row, entry.column) for entry in figure1_cells("cpu") if not entry.optional]
        [('crust', '30%'), ('crust', '50%'), ('crust', '70%')]
    """
    return [
        TableCellSpec(
            method,
            f"{share:.0%}",
            method,
            LABELS,
            {**own_settings(method, scale), "fraction": share},
            optional=scale == "cpu" and method != "crust",
        )
        for method in reversed(VARIANTS)
        for share in SHARES
    ]

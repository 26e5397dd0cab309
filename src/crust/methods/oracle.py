"""The ceiling: only examples whose label is right. Needs true labels, so it is no method but a yardstick."""

from __future__ import annotations

import numpy as np

from crust.errors import InputError
from crust.training.context import Context
from crust.training.method import Method, Selection


class Oracle(Method):
    name = "oracle"
    summary = "only examples whose label is truly right: the ceiling of every selection"
    needs = "all true labels"
    uses_true_labels = True

    def begin_epoch(self, context: Context) -> Selection | None:
        if context.true_labels is None:
            raise InputError(
                "oracle needs true labels: give true_labels, or use another method", code="missing-true-labels"
            )
        return Selection(np.flatnonzero(context.labels == context.true_labels))

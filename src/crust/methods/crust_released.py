"""CRUST as its published code computes it, quirks included.

Groups by given label. The k points with the smallest sum of distances to their group (the published lazy greedy returns
totals where gains are meant, so it accepts every point in that order), budgets rounded down, ties to the highest index.
Proxies are gradients at the last layer's input, divided by the batch size, in train mode and with augmentation, so that
BatchNorm statistics move. All weights are equal. Partners share the given label, with one share ~ Beta(1, 0.1) a batch,
labels unmixed; selection begins after five epochs, mixing one later.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field

from crust.data.batches import split_batches
from crust.errors import InputError
from crust.selection import select
from crust.training import coreset_rules
from crust.training.context import Context
from crust.training.method import Batch, Method, Selection, Settings
from crust.training.mixup_batches import mix_with


class CrustReleasedSettings(Settings):
    fraction: float = Field(0.5, gt=0, le=1, description="how large the coreset is, as a share")
    select_after: int = Field(5, ge=0, description="epochs on everything first")
    alpha: float = Field(1.0, gt=0, description="first parameter of mixup's Beta distribution")
    beta: float = Field(0.1, gt=0, description="second parameter of mixup's Beta distribution")


class CrustReleased(Method):
    name = "crust-released"
    summary = "what the published code of CRUST computes, quirks included"
    Settings = CrustReleasedSettings
    settings: CrustReleasedSettings

    def __init__(self, settings: CrustReleasedSettings):
        super().__init__(settings)
        self.partners: NDArray[np.int64] | None = None

    def begin_epoch(self, context: Context) -> Selection | None:
        settings = self.settings
        self.partners = None
        if context.epoch < settings.select_after:
            return None
        seen = context.evaluate_train_set("features", train_mode=True, augment=context.augment)
        proxies = seen.proxies.copy()
        for rank in range(context.processes.count):
            for rows in split_batches(context.processes.slice(context.n, rank), context.settings.batch_size):
                proxies[rows] /= len(rows)  # the mean loss of a batch: a short last one is divided by less
        indices = central_by_label(proxies, context.labels, settings.fraction)
        if context.epoch > settings.select_after:
            everyone = np.arange(context.n)
            self.partners = coreset_rules.label_partners(indices, everyone, context.labels, context.rng("partners"))
        return Selection(indices)

    def prepare(self, batch: Batch, context: Context) -> Batch:
        if self.partners is None:
            return batch
        settings = self.settings
        return mix_with(
            batch,
            self.partners[batch.rows],
            context,
            alpha=settings.alpha,
            beta=settings.beta,
            labels=False,
            one_share=True,
        )


def central_by_label(proxies: NDArray[Any], labels: NDArray[np.int64], share: float) -> NDArray[np.int64]:
    """The most central examples of each label: budgets rounded down, ties to the highest index."""
    found = []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)[::-1]  # reversed: the lowest position is the highest index
        k = int(share * len(members))
        if k:
            chosen = select(proxies[members], k, algorithm="central", threads=torch.get_num_threads())
            found.append(members[chosen.indices])
    if not found:
        raise InputError(
            f"a share of {share} rounds down to no example of any label: give a larger share", code="fraction-range"
        )
    return np.concatenate(found)

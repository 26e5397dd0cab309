"""Batches of a loader that is not ours, mixed: each example with another of its batch, and their labels too."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from crust._util import seeding
from crust._util.foreign import cannot_read
from crust._util.torch_modules import LABELS
from crust.errors import InputError
from crust.training.losses import mix, target_rows


class MixingCollate:
    """What `crust.mixing` returns. Knows nothing of the sampler: a worker's copy of it would be an epoch old."""

    def __init__(self, collate_fn: Callable[[list[Any]], Any], classes: int, alpha: float, seed: int):
        self.collate_fn, self.classes, self.alpha, self.seed = collate_fn, classes, alpha, seed

    def __call__(self, examples: list[Any]) -> Any:
        try:
            batch = self.collate_fn(examples)
        except Exception as error:  # torch's own, or the user's
            raise cannot_read("a batch", error) from error
        if isinstance(batch, Mapping):
            key = next((key for key in LABELS if key in batch), None)
            if key is None:
                raise InputError(f"a batch has no labels, but {', '.join(map(str, batch))}", code="batch-labels")
            x, y = self._mixed({name: value for name, value in batch.items() if name != key}, batch[key])
            return {**x, key: y}
        if not isinstance(batch, list | tuple) or len(batch) != 2:
            raise InputError(
                "a batch is not (inputs, labels): let the collate_fn make such pairs, or dicts with labels",
                code="batch-parts",
            )
        return self._mixed(*batch)

    def _mixed(self, x: Any, y: Tensor) -> tuple[Any, Tensor]:
        parts = x if isinstance(x, Mapping) else {"": x}
        floats = {
            name: value for name, value in parts.items() if isinstance(value, Tensor) and value.is_floating_point()
        }
        if not floats:
            raise InputError(
                "the inputs hold no floats to mix, such as pixels or columns: leave crust.mixing out, since token ids "
                "cannot be mixed",
                code="cannot-mix",
            )
        rows = target_rows(y, len(next(iter(floats.values()))), self.classes, "the labels of a batch")
        if any(value.dim() == 0 or len(value) != len(rows) for value in floats.values()):
            raise InputError(
                "a batch has inputs of different lengths: give one input an example, in every part", code="batch-parts"
            )
        first = next(iter(floats.values())).reshape(len(rows), -1)
        some = first[:, :: max(1, first.shape[1] // 16)].float().contiguous().cpu().numpy().tobytes()
        rng = seeding.numpy_rng(self.seed, "mix", zlib.crc32(some))
        others = torch.from_numpy(rng.permutation(len(y)))
        shares = torch.from_numpy(rng.beta(self.alpha, self.alpha, len(y)).astype(np.float32))
        mixed = {name: mix(value, value[others], shares) for name, value in floats.items()}
        found = {**parts, **mixed}
        return found if isinstance(x, Mapping) else found[""], mix(rows, rows[others], shares)

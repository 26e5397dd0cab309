"""What networks say, without any change to them: of some examples, of a batch, and what their last layer is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name

from crust.data import batches
from crust.networks import evaluating, last_linear, run

if TYPE_CHECKING:
    from crust.data import Examples
    from crust.training.context import Context


@dataclass
class Prediction:
    """What a network says of some examples; row i is about the example `index[i]`."""

    index: NDArray[np.int64]
    probabilities: NDArray[np.float32]
    predictions: NDArray[np.int64]
    losses: NDArray[np.float32]  # of the given labels
    features: NDArray[np.float32] | None = None  # input of the last layer


class Tap:
    """Catches the input of a network's last layer in every forward pass; the layer is looked for once.

    Example:
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        >>> tap, x = Tap(model, torch.randn(2, 4)), torch.randn(5, 4)
        >>> bool(model(x).equal(model[2](tap.take())))
        True
    """

    def __init__(self, network: nn.Module, sample: Any):
        self._caught: Tensor | None = None
        self._hook = last_linear(network, sample)[1].register_forward_pre_hook(self._catch)

    def _catch(self, module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        self._caught = inputs[0]

    def take(self) -> Tensor | None:
        """What the last pass has brought; kept no longer, since a whole graph may hang on it."""
        caught, self._caught = self._caught, None
        return caught


def predict(
    context: Context, index: NDArray[np.int64] | None, network: int, examples: Examples | None, features: bool
) -> Prediction:
    """Each process looks at its part of the examples; everyone gets everything."""
    seen = context.plain if examples is None else examples
    wanted = np.arange(len(seen)) if index is None else np.asarray(index, np.int64)
    model = context.processes.bare(context.networks[network])
    settings = context.settings
    rows: list[Tensor] = []
    inner: list[Tensor] = []
    with evaluating(model):
        for x, _ in batches(
            seen,
            wanted[context.processes.slice(len(wanted))],
            settings.eval_batch_size,
            device=context.device,
            workers=settings.workers,
            channels_last=settings.channels_last,
        ):
            tap = context.tap(network, x) if features else None
            rows.append(run(model, x).float().cpu())
            if tap is not None:
                found = tap.take()
                assert found is not None
                inner.append(found.float().flatten(1).cpu())
    parts = context.processes.gather((_joined(rows), _joined(inner)))
    logits = torch.cat([part[0].reshape(-1, context.classes) for part in parts])
    labels = torch.from_numpy(seen.labels[wanted])
    return Prediction(
        wanted,
        logits.softmax(1).numpy(),
        logits.argmax(1).numpy(),
        F.cross_entropy(logits, labels, reduction="none").numpy(),
        torch.cat([part[1] for part in parts if len(part[1])]).numpy() if features and len(wanted) else None,
    )


def _joined(rows: list[Tensor]) -> Tensor:
    return torch.cat(rows) if rows else torch.empty(0)

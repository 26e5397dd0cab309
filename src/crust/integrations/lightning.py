"""CRUST in Lightning: the sampler goes into the DataLoader; `CrustCallback` keeps and logs what belongs to it."""

from __future__ import annotations

from typing import Any

from crust.errors import InputError, require
from crust.sampler import CoresetSampler, check_sampler

require("lightning", extra="lightning")
from lightning.pytorch import Callback, LightningModule, Trainer  # noqa: E402 - after the sentence on what is missing

__all__ = ["CrustCallback"]


class CrustCallback(Callback):  # type: ignore[misc]
    """Keeps the sampler's state in Lightning's checkpoints, and logs how many were chosen and how many seem wrong.

    Args:
        sampler: of the training DataLoader.

    Example:
        >>> import torch
        >>> from crust import CoresetSampler
        >>> data = torch.utils.data.TensorDataset(torch.randn(12, 4), torch.arange(12) % 3)
        >>> sorted(CrustCallback(CoresetSampler(data, None, torch.nn.Linear(4, 3), epochs=2)).state_dict())
        ['format', 'plain', 'tensors']
    """

    def __init__(self, sampler: CoresetSampler):
        self.sampler = check_sampler(sampler)

    def state_dict(self) -> dict[str, Any]:
        """For the checkpoint."""
        return self.sampler.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """From the checkpoint; Lightning says by `set_epoch` whether the saved epoch goes on."""
        self.sampler.load_state_dict(state_dict)

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """The sampler has to look at what is trained."""
        if all(module is not self.sampler.model for module in pl_module.modules()):
            raise InputError(
                f"the sampler looks at a network that is no part of {type(pl_module).__name__}: give CoresetSampler "
                "the module itself, or the network inside it",
                code="model-elsewhere",
            )

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        """Where an epoch has begun, the sampler has chosen."""
        if batch_idx:
            return
        facts = self.sampler.selection.facts
        found = {"crust_chosen": float(len(self.sampler.coreset))}
        if "noise_range" in facts:
            found["crust_noise_rate"] = float(facts["noise_range"]["rate"])
        pl_module.log_dict(found, on_step=False, on_epoch=True, batch_size=1)

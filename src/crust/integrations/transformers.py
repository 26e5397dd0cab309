"""CRUST in the Trainer of transformers: `CrustTrainer`, or `CrustCallback` for a trainer of your own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional as F  # noqa: N812 - its usual name

from crust._util.torch_modules import logits_of
from crust.errors import InputError, require
from crust.sampler import CoresetSampler, check_sampler

require("transformers", extra="transformers")
from transformers import Trainer, TrainerCallback  # noqa: E402 - after the sentence on what is missing
from transformers.trainer_utils import get_last_checkpoint  # noqa: E402

if TYPE_CHECKING:
    from transformers import TrainerControl, TrainerState, TrainingArguments

__all__ = ["CrustCallback", "CrustTrainer"]

FILE = "crust_sampler.pt"  # in a checkpoint's folder


class CrustCallback(TrainerCallback):  # type: ignore[misc]
    """Keeps the sampler's state in the checkpoints of a Trainer, and goes on from there.

    For a trainer of your own, whose `_get_train_sampler` returns the sampler; `CrustTrainer` has one already.

    Args:
        sampler: of the training set.
        resume_from_checkpoint: what `Trainer.train` is given by that name.

    Example:
        >>> import torch
        >>> from crust import CoresetSampler
        >>> data = torch.utils.data.TensorDataset(torch.randn(12, 4), torch.arange(12) % 3)
        >>> CrustCallback(CoresetSampler(data, None, torch.nn.Linear(4, 3), epochs=2)).sampler
        CoresetSampler(crust, 12 of 12 examples an epoch, not begun)
    """

    def __init__(self, sampler: CoresetSampler | None, resume_from_checkpoint: str | bool | None = None):
        self.sampler = None if sampler is None else check_sampler(sampler)
        self.resume_from_checkpoint = resume_from_checkpoint

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Take the state out of the checkpoint that training goes on from."""
        asked = self.resume_from_checkpoint
        folder = get_last_checkpoint(str(args.output_dir)) if asked is True else asked
        if not folder or self.sampler is None:
            return
        path = Path(str(folder)) / FILE
        if not path.exists():
            raise InputError(
                f"{folder} has no {FILE}: go on from one that was saved with the sampler", code="no-sampler-state"
            )
        batches = len(kwargs["train_dataloader"])
        steps = max(1, math.ceil(batches / args.gradient_accumulation_steps))
        try:
            saved = torch.load(path, map_location="cpu", weights_only=True)
        except Exception as error:  # cut, of another format, or with more than plain values in it
            raise InputError(
                f"{path} is no state of a sampler: go on from a checkpoint that was saved with one", code="bad-state"
            ) from error
        self.sampler.load_state_dict(saved, again=state.global_step % steps != 0)

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Put the state beside the weights."""
        folder = Path(str(args.output_dir)) / f"checkpoint-{state.global_step}"
        if self.sampler is not None and state.is_world_process_zero and folder.exists():
            torch.save(self.sampler.state_dict(), folder / FILE)


class CrustTrainer(Trainer):  # type: ignore[misc]
    """A Trainer that trains on the coresets of `CoresetSampler`; all its arguments and methods stay as they are.

    Where a class of your own has more, put this one before it: `class Mine(CrustTrainer, YourTrainer)`.

    Args:
        crust: options of `CoresetSampler`, such as `{"fraction": 0.7}` or `{"labels": y}`, as many as you like; and
            `bounded`: whether the loss is `CoresetSampler.loss`, which wrong labels harm less (the default where no
            `compute_loss_func` is given), or that of the model.

    Attributes:
        sampler: of the run, once training has begun: it has `audit()`.

    Example:
        >>> from transformers import BertConfig, BertForSequenceClassification
        >>> sizes = {"vocab_size": 50, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
        >>> model = BertForSequenceClassification(BertConfig(**sizes, intermediate_size=8, num_labels=2))
        >>> texts = [{"input_ids": [2, 5 + n % 2, n % 50, 3], "labels": n % 2} for n in range(40)]
        >>> trainer = CrustTrainer(model, train_dataset=texts, crust={"fraction": 0.7})
        >>> trainer.sampler is None  # it is made by train()
        True
    """

    def __init__(self, *args: Any, crust: Mapping[str, Any] | None = None, **kwargs: Any):
        self.sampler: CoresetSampler | None = None
        if not isinstance(crust, Mapping | NoneType):
            raise InputError(f"crust is a {type(crust).__name__}: give a dict of options", code="options-type")
        self._options = dict(crust or {})
        if self._options.pop("bounded", True):
            kwargs["compute_loss_func"] = kwargs.get("compute_loss_func") or self._loss
        super().__init__(*args, **kwargs)
        self._keeper = CrustCallback(None)
        self.add_callback(self._keeper)

    def train(self, resume_from_checkpoint: str | bool | None = None, *args: Any, **kwargs: Any) -> Any:
        """As `Trainer.train`."""
        self._keeper.resume_from_checkpoint = resume_from_checkpoint
        return super().train(resume_from_checkpoint, *args, **kwargs)

    def _get_train_sampler(self, train_dataset: Any = None) -> CoresetSampler:
        dataset: Any = self.train_dataset if train_dataset is None else train_dataset
        network: Any = self.model
        args = self.args
        options = dict(self._options)
        labels = options.pop("labels", None)
        batch = self._train_batch_size * args.gradient_accumulation_steps * args.world_size
        epochs = math.ceil(args.num_train_epochs)
        if args.max_steps > 0:
            held = 0.0 if options.get("val_set") is not None else options.get("validation", 0.1)
            usual = (1.0 - held) * len(dataset) if isinstance(held, int | float) else 0.0
            length = options.get("length", usual)
            if isinstance(length, int | float) and length > 0:  # else the sampler says what is wrong
                epochs = max(1, math.ceil(args.max_steps * batch / length))
        given = {
            "epochs": epochs,
            "collate_fn": self.data_collator,
            "batch_size": batch,
            "eval_batch_size": args.per_device_eval_batch_size,
            "workers": args.dataloader_num_workers,
            "seed": args.seed,
        }
        self.sampler = CoresetSampler(dataset, labels, network, **{**given, **options})
        self._keeper.sampler = self.sampler
        return self.sampler

    def _loss(self, outputs: Any, labels: torch.Tensor, num_items_in_batch: Any = None) -> torch.Tensor:
        """The sampler's loss in training, where Trainer says of how many examples it shall be the mean."""
        logits = logits_of(outputs)
        if num_items_in_batch is None or self.sampler is None:
            return F.cross_entropy(logits, labels)
        return self.sampler.loss(logits, labels) * len(labels) / num_items_in_batch

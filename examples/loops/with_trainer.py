"""CRUST in the Trainer of transformers: `python examples/loops/with_trainer.py`."""

import tempfile

import torch
from handwriting import EPOCHS, network, report, train_set
from transformers import TrainingArguments

from crust.integrations.transformers import CrustTrainer  # instead of Trainer


class Classifier(torch.nn.Module):
    """As Trainer wants it."""

    def __init__(self):
        super().__init__()
        self.network = network()

    def forward(self, pixels, labels=None):
        logits = self.network(pixels)
        return {"logits": logits} if labels is None else {"loss": torch.nn.functional.cross_entropy(logits, labels)}


items = [{"pixels": x, "labels": int(y)} for x, y in train_set]
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder,
        num_train_epochs=EPOCHS,
        per_device_train_batch_size=16,
        gradient_accumulation_steps=2,
        learning_rate=3e-3,
        lr_scheduler_type="linear",
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )
    trainer = CrustTrainer(Classifier(), arguments, train_dataset=items)
    trainer.train()
steps, planned = trainer.state.global_step, EPOCHS * -(-len(trainer.sampler) // 32)
last_rate = [line["learning_rate"] for line in trainer.state.log_history if "learning_rate" in line][-1]
accuracy, auroc = report(trainer.model.network, trainer.sampler.audit())

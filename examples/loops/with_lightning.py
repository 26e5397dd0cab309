"""CRUST in Lightning, with validation and one cycle of rates: `python examples/loops/with_lightning.py`."""

import tempfile

import lightning
import torch
from handwriting import EPOCHS, given, network, report, test_x, test_y, train_set
from torch.utils.data import DataLoader, TensorDataset

import crust
from crust.integrations.lightning import CrustCallback


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.network = network()
        self.sampler = None
        self.validated = []

    def training_step(self, batch, _):
        return self.sampler.loss(self.network(batch[0]), batch[1])  # instead of cross_entropy

    def validation_step(self, batch, _):
        self.log("val_accuracy", (self.network(batch[0]).argmax(1) == batch[1]).float().mean())

    def on_validation_epoch_end(self):
        self.validated.append(self.current_epoch)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), 3e-3)
        total = self.trainer.estimated_stepping_batches
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=total)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


module = Classifier()
module.sampler = sampler = crust.CoresetSampler(train_set, given, module.network, epochs=EPOCHS)  # new
loader = DataLoader(train_set, batch_size=32, sampler=sampler)  # sampler= instead of shuffle=True
with tempfile.TemporaryDirectory() as folder:
    trainer = lightning.Trainer(
        max_epochs=EPOCHS,
        callbacks=[CrustCallback(sampler)],  # for checkpoints and the log
        default_root_dir=folder,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, loader, DataLoader(TensorDataset(test_x, test_y), 100))
steps, planned = trainer.global_step, EPOCHS * len(loader)
last_rate = trainer.optimizers[0].param_groups[0]["lr"]
accuracy, auroc = report(module.network, sampler.audit())

"""CRUST in Lightning: validation in every epoch, all planned steps, and a run that goes on is the run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tests.integrations.clouds import clouds, network
from tests.integrations.texts import auroc
from tests.refusals import refused
from torch.nn import functional as F  # noqa: N812 - its usual name
from torch.utils.data import DataLoader, TensorDataset

import crust

lightning = pytest.importorskip("lightning.pytorch")
pytestmark = pytest.mark.filterwarnings("ignore")
EPOCHS = 10


class Classifier(lightning.LightningModule):
    """As people write them; what it has seen stays in lists."""

    def __init__(self, total=None):
        super().__init__()
        self.net = network()
        self.validated, self.rates, self.losses = [], [], []

    def training_step(self, batch, _):
        loss = F.cross_entropy(self.net(batch[0]), batch[1])
        self.losses.append(float(loss.detach()))
        return loss

    def on_train_batch_end(self, *_):
        self.rates.append(self.trainer.optimizers[0].param_groups[0]["lr"])

    def validation_step(self, batch, _):
        self.log("val_loss", F.cross_entropy(self.net(batch[0]), batch[1]))

    def on_validation_epoch_end(self):
        self.validated.append(self.current_epoch)

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), 0.05, momentum=0.9)
        total = self.trainer.estimated_stepping_batches
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.03, total_steps=total)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def start(folder, *, epochs=EPOCHS, stop=None, workers=0, **options):
    from crust.integrations.lightning import CrustCallback

    x, given, true = clouds()
    rows = TensorDataset(x, torch.from_numpy(given))
    module = Classifier()
    sampler = crust.CoresetSampler(rows, given, module.net, epochs=epochs, select_after=2, batch_size=16)
    loader = DataLoader(rows, 16, sampler=sampler, num_workers=workers)
    trainer = lightning.Trainer(
        max_epochs=stop or epochs,
        accelerator="cpu",
        devices=options.pop("devices", 1),
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
        num_sanity_val_steps=0,
        callbacks=[CrustCallback(sampler)],
        **options,
    )
    return trainer, module, sampler, loader, (rows, given, true)


def test_validation_in_every_epoch_and_every_planned_step(tmp_path):
    trainer, module, sampler, loader, (rows, given, true) = start(
        tmp_path, gradient_clip_val=1.0, workers=2, enable_checkpointing=False
    )
    trainer.fit(module, loader, DataLoader(rows, 64))
    assert trainer.global_step == EPOCHS * len(loader) == len(module.losses)
    assert module.validated == list(range(EPOCHS))
    assert module.rates[-1] < max(module.rates) / 1000
    assert (given == true)[sampler.coreset].mean() > (given == true).mean() + 0.1
    assert auroc(sampler.audit(), given != true) > 0.9
    assert trainer.callback_metrics["crust_chosen"] == len(sampler.coreset)
    assert 0 < trainer.callback_metrics["crust_noise_rate"] < 0.6


def test_a_run_that_goes_on_is_the_run(tmp_path):
    trainer, whole, sampler, loader, (rows, *_) = start(tmp_path)
    trainer.fit(whole, loader, DataLoader(rows, 64))
    trainer, module, _, loader, _ = start(tmp_path)
    trainer.callbacks.append(_Stop(4))
    trainer.fit(module, loader, DataLoader(rows, 64))
    trainer.save_checkpoint(tmp_path / "cut.ckpt")
    trainer, again, sampler_again, loader, _ = start(tmp_path)
    trainer.fit(again, loader, DataLoader(rows, 64), ckpt_path=tmp_path / "cut.ckpt")
    assert whole.losses == module.losses + again.losses
    assert sampler_again.coreset.tolist() == sampler.coreset.tolist()
    assert sampler_again.audit().equals(sampler.audit())


class _Stop(lightning.Callback):
    """As a time limit does it."""

    def __init__(self, epochs):
        self.epochs = epochs

    def on_train_epoch_end(self, trainer, module):
        trainer.should_stop = trainer.current_epoch + 1 >= self.epochs


def test_a_sampler_that_looks_elsewhere_is_refused(tmp_path):
    trainer, _, _, loader, _ = start(tmp_path, enable_checkpointing=False)
    with refused("model-elsewhere"):
        trainer.fit(Classifier(), loader)


TWO = """
import json, os, sys
from torch.utils.data import DataLoader
from tests.integrations.test_lightning import EPOCHS, start
from tests.integrations.texts import auroc
options = {"devices": 2, "strategy": "ddp", "enable_checkpointing": False}
trainer, module, sampler, loader, (rows, given, true) = start(sys.argv[1], **options)
trainer.fit(module, loader, DataLoader(rows, 64))
audit = auroc(sampler.audit(), given != true) if trainer.global_rank == 0 else None
found = {"world": trainer.world_size, "steps": trainer.global_step, "coreset": sampler.coreset.tolist(), "auroc": audit,
         "validated": module.validated, "length": len(sampler), "rate": module.rates[-1]}
open(f"{sys.argv[1]}/rank-{trainer.global_rank}.json", "w").write(json.dumps(found))
"""


@pytest.mark.slow
def test_two_processes_train_on_one_coreset(tmp_path):
    (tmp_path / "two.py").write_text(TWO)
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{root}/src:{root}"}
    subprocess.run([sys.executable, str(tmp_path / "two.py"), str(tmp_path)], check=True, env=environment, timeout=300)
    first, second = (json.loads((tmp_path / f"rank-{rank}.json").read_text()) for rank in (0, 1))
    assert first["world"] == 2
    assert first["coreset"] == second["coreset"]
    assert first["steps"] == EPOCHS * -(-first["length"] // 32)
    assert first["validated"] == list(range(EPOCHS))
    assert first["rate"] < 1e-3
    assert first["auroc"] > 0.85

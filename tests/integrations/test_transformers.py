"""CRUST in the Trainer of transformers: every planned step is made, and a run that goes on is the run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tests.integrations.texts import CLASSES, auroc, bert, collator, dataset
from tests.refusals import refused

pytest.importorskip("transformers")
pytest.importorskip("datasets")
pytestmark = pytest.mark.filterwarnings("ignore")

QUICK = {
    "per_device_train_batch_size": 16,
    "learning_rate": 5e-3,
    "report_to": [],
    "disable_tqdm": True,
    "save_strategy": "no",
    "use_cpu": True,
    "logging_steps": 1,
    "warmup_steps": 5,
}


def trainer_of(folder, rows, crust=None, **options):
    from transformers import TrainingArguments

    from crust.integrations.transformers import CrustTrainer

    own = {name: options.pop(name) for name in ("compute_loss_func", "eval_dataset") if name in options}
    arguments = TrainingArguments(str(folder), **{**QUICK, **options})
    return CrustTrainer(bert(), arguments, train_dataset=rows, data_collator=collator(), crust=crust, **own)


def rates(trainer):
    return [line["learning_rate"] for line in trainer.state.log_history if "learning_rate" in line]


def losses(trainer):
    return [line["loss"] for line in trainer.state.log_history if "loss" in line]


def test_every_planned_step_is_made(tmp_path):
    rows, given, true = dataset()
    options = {"gradient_accumulation_steps": 2, "dataloader_num_workers": 2, "num_train_epochs": 8}
    trainer = trainer_of(tmp_path, rows, {"select_after": 3}, eval_strategy="epoch", eval_dataset=rows, **options)
    trainer.train()
    sampler = trainer.sampler
    batches = -(-len(sampler) // 16)
    assert trainer.state.global_step == 8 * -(-batches // 2) == len(losses(trainer))
    assert trainer.state.epoch == 8
    assert rates(trainer)[-1] < rates(trainer)[5] / 50  # to nothing in equal parts
    assert [line["epoch"] for line in trainer.state.log_history if "eval_loss" in line] == list(range(1, 9))
    assert all(parameter.grad is None or not parameter.grad.any() for parameter in trainer.model.parameters())
    assert sampler.classes == CLASSES
    assert (given == true)[sampler.coreset].mean() > (given == true).mean() + 0.1
    assert auroc(sampler.audit(), given != true) > 0.9


@pytest.mark.parametrize("stop", ["middle", "end"])
def test_a_run_that_goes_on_is_the_run(tmp_path, stop):
    rows, *_ = dataset(120)
    how = {"num_train_epochs": 4, "crust": {"select_after": 1, "select_every": 1}}
    per = -(-108 // 16)
    steps = 2 * per + (3 if stop == "middle" else 0)
    whole = trainer_of(tmp_path / "whole", rows, save_strategy="steps", save_steps=steps, **how)
    whole.train()
    again = trainer_of(tmp_path / "again", rows, **how)
    again.train(resume_from_checkpoint=str(tmp_path / "whole" / f"checkpoint-{steps}"))
    assert losses(again) == losses(whole)
    assert again.sampler.history == pytest.approx(whole.sampler.history) or [
        {key: line[key] for key in line if key != "seconds"} for line in again.sampler.history
    ] == [{key: line[key] for key in line if key != "seconds"} for line in whole.sampler.history]
    for one, other in zip(again.model.parameters(), whole.model.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    assert again.sampler.audit().equals(whole.sampler.audit())


def test_a_checkpoint_without_the_sampler_is_refused(tmp_path):
    rows, *_ = dataset(60)
    trainer = trainer_of(tmp_path, rows, max_steps=2, save_strategy="steps", save_steps=2)
    trainer.train()
    (tmp_path / "checkpoint-2" / "crust_sampler.pt").unlink()
    with refused("no-sampler-state"):
        trainer_of(tmp_path, rows, max_steps=4).train(resume_from_checkpoint=True)


def test_max_steps_the_users_own_loss_and_that_of_the_model(tmp_path):
    rows, *_ = dataset(60)
    trainer = trainer_of(tmp_path, rows, max_steps=9)
    trainer.train()
    assert trainer.state.global_step == 9
    assert trainer.sampler.context.epochs == 3  # 54 examples are 4 updates
    calls = []

    def own(outputs, labels, num_items_in_batch=None):
        calls.append(len(labels))
        return torch.nn.functional.cross_entropy(outputs["logits"], labels)

    trainer = trainer_of(tmp_path, rows, max_steps=2, compute_loss_func=own)
    trainer.train()
    assert len(calls) == 2
    plain = trainer_of(tmp_path, rows, {"bounded": False}, max_steps=2)
    plain.train()
    assert losses(plain) == pytest.approx(losses(trainer), rel=1e-4)  # no noise is known as yet: cross-entropy
    bounded = trainer_of(tmp_path, rows, max_steps=2)
    bounded.train()
    assert losses(bounded) == pytest.approx(losses(trainer), rel=1e-4)


TWO = """
import json, sys
from tests.integrations.test_transformers import QUICK, trainer_of, rates
from tests.integrations.texts import dataset, auroc
rows, given, true = dataset()
trainer = trainer_of(sys.argv[1], rows, {"select_after": 2}, num_train_epochs=6, dataloader_num_workers=2)
trainer.train()
rank = trainer.args.process_index
audit = auroc(trainer.sampler.audit(), given != true) if rank == 0 else None  # the other one does not ask
found = {"steps": trainer.state.global_step, "coreset": trainer.sampler.coreset.tolist(), "auroc": audit,
         "rates": rates(trainer), "world": trainer.args.world_size, "length": len(trainer.sampler),
         "weights": float(sum(p.double().abs().sum() for p in trainer.model.parameters()))}
open(f"{sys.argv[1]}/rank-{rank}.json", "w").write(json.dumps(found))
"""


@pytest.mark.slow
def test_two_processes_train_on_one_coreset(tmp_path):
    (tmp_path / "two.py").write_text(TWO)
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{root}/src:{root}"}
    subprocess.run([*start, str(tmp_path / "two.py"), str(tmp_path)], check=True, env=environment, timeout=300)
    first, second = (json.loads((tmp_path / f"rank-{rank}.json").read_text()) for rank in (0, 1))
    assert first["world"] == 2
    assert first["coreset"] == second["coreset"]
    assert first["weights"] == second["weights"]
    assert first["steps"] == second["steps"] == 6 * -(-first["length"] // 32)
    assert first["rates"][-1] < first["rates"][5] / 20
    assert first["auroc"] > 0.85

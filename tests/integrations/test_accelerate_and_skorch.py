"""The sampler where Accelerate or skorch own the loop, and where two processes share a plain one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tests.integrations.clouds import clouds, network
from tests.integrations.texts import auroc
from torch import nn
from torch.nn import functional as F  # noqa: N812 - its usual name
from torch.utils.data import DataLoader, TensorDataset

import crust

pytestmark = pytest.mark.filterwarnings("ignore")
EPOCHS = 10


def with_accelerate(accumulate=2):
    """An ordinary loop of Accelerate; steps, the last rate, the sampler."""
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=accumulate)
    x, given, _ = clouds()
    rows, model = TensorDataset(x, torch.from_numpy(given)), network()
    sampler = crust.CoresetSampler(rows, given, model, epochs=EPOCHS, select_after=2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    loader = DataLoader(rows, 16, sampler=sampler)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    planned = EPOCHS * -(-len(loader) // accumulate)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer.optimizer, 1.0, 0.0, planned)
    steps = 0
    for _ in range(EPOCHS):
        for inputs, labels in loader:
            with accelerator.accumulate(model):
                accelerator.backward(F.cross_entropy(model(inputs), labels))
                optimizer.step()
                optimizer.zero_grad()
                if accelerator.sync_gradients:
                    schedule.step()
                    steps += 1
    rate = optimizer.param_groups[0]["lr"]
    kept = accelerator.gradient_accumulation_steps, accelerator.mixed_precision, accelerator.num_processes
    return steps, planned, rate, sampler, model, kept


@pytest.fixture
def own_state():
    from crust.training.distributed import own_accelerate_state

    with own_accelerate_state():
        yield


def test_accelerate_makes_every_planned_step_and_is_as_before(own_state):
    steps, planned, rate, sampler, _, kept = with_accelerate()
    assert steps == planned
    assert rate < 1e-9
    assert kept == (2, "no", 1)
    _, given, true = clouds()
    assert auroc(sampler.audit(), given != true) > 0.9


def test_skorch():
    skorch = pytest.importorskip("skorch")
    x, given, true = clouds()
    model = network()
    sampler = crust.CoresetSampler(
        TensorDataset(x, torch.from_numpy(given)), given, model, epochs=EPOCHS, select_after=2
    )
    net = skorch.NeuralNetClassifier(
        model,
        criterion=nn.CrossEntropyLoss,
        optimizer=torch.optim.SGD,
        optimizer__momentum=0.9,
        lr=0.02,
        max_epochs=EPOCHS,
        batch_size=16,
        train_split=None,  # the sampler holds out what it needs
        iterator_train__sampler=sampler,
        verbose=0,
    )
    net.fit(x.numpy(), given)
    assert sampler.model is net.module_
    assert sampler.epoch == EPOCHS - 1
    assert (net.predict(x) == true).mean() > 0.9
    assert auroc(sampler.audit(), given != true) > 0.9


TWO = """
import json, os, sys
import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset
import crust
from tests.integrations import test_accelerate_and_skorch as loops
from tests.integrations.texts import auroc
rank = int(os.environ["RANK"])
x, given, true = loops.clouds()
if sys.argv[2] == "accelerate":
    steps, planned, rate, sampler, model, _ = loops.with_accelerate(1)
else:  # DistributedDataParallel without a framework: the sampler deals the batches itself
    torch.distributed.init_process_group("gloo")
    rows = TensorDataset(x, torch.from_numpy(given))
    model = torch.nn.parallel.DistributedDataParallel(loops.network())
    sampler = crust.CoresetSampler(rows, given, model, epochs=loops.EPOCHS, select_after=2, shard=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    steps, seen = 0, []
    for epoch in range(loops.EPOCHS):
        for inputs, labels in DataLoader(rows, 16, sampler=sampler):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
            steps += 1
    planned = loops.EPOCHS * -(-len(sampler) // 16)
weights = float(sum(p.detach().double().abs().sum() for p in model.parameters()))
audit = auroc(sampler.audit(), given != true) if rank == 0 else None
found = {"steps": steps, "planned": planned, "coreset": sampler.coreset.tolist(), "weights": weights, "auroc": audit,
         "world": torch.distributed.get_world_size()}
open(f"{sys.argv[1]}/rank-{rank}.json", "w").write(json.dumps(found))
"""


@pytest.mark.slow
@pytest.mark.parametrize("loop", ["accelerate", "plain"])
def test_two_processes_train_on_one_coreset(tmp_path, loop):
    (tmp_path / "two.py").write_text(TWO)
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{root}/src:{root}"}
    subprocess.run([*start, str(tmp_path / "two.py"), str(tmp_path), loop], check=True, env=environment, timeout=300)
    first, second = (json.loads((tmp_path / f"rank-{rank}.json").read_text()) for rank in (0, 1))
    assert first["world"] == 2
    for name in ("coreset", "weights", "steps"):
        assert first[name] == second[name]
    assert first["steps"] == first["planned"]
    assert first["auroc"] > 0.85

"""Epochs of training that take turns: each way to train has a process of its own and waits for its turn.

Ways that are compared so run seconds apart, and what slows the machine down slows all of them. A process that waits
sleeps.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F  # noqa: N812 - its usual name
from torch.utils.data import DataLoader, Dataset

from crust import data, noise
from crust.data import Examples
from crust.methods import METHODS
from crust.models import build_model

NOISE = "symmetric:0.5"  # half of the labels are wrong, as in the paper's ablation
SCHEDULE = 120  # epochs of the paper; only a few are run, all before the first drop
BATCH = 128


def examples(data_dir: str | None, images: int | None) -> Examples:
    """The first images of CIFAR-10 with wrong labels; None for all of them."""
    train = data.load("cifar10", data_dir=data_dir, limit=images).train
    return train.with_labels(noise.make_noisy_labels(train.labels, NOISE, classes=10, seed=0).labels)


# ---------------------------------------------------------------- ways to train, a process each


class Turns:
    """The side of a process: waits for its turn, and says what it took."""

    def __init__(self, pipe: Connection):
        self.pipe, self.start = pipe, 0.0

    def wait(self) -> None:
        self.pipe.recv()
        self.start = time.perf_counter()

    def done(self, parts: dict[str, float]) -> None:
        self.pipe.send({**parts, "wall": time.perf_counter() - self.start})
        self.wait()


def ours(turns: Turns, job: dict[str, Any]) -> dict[str, Any]:
    """`crust.fit` as users call it, with a run folder; what it took is what its own history says."""
    import crust

    train = examples(job["data"], job["images"])
    turns.pipe.send("ready")
    turns.wait()
    with tempfile.TemporaryDirectory() as folder:
        crust.fit(
            job["model"],
            train,
            validation=0,  # no held-out part, no test set: evaluation is not what is measured
            augment=job["augment"],
            run_dir=folder,
            report=lambda line: turns.done(line["seconds"]),
            epochs=SCHEDULE,
            stop_after=job["epochs"],
            audit_every=SCHEDULE,  # an audit's look at the data is no part of training; crust shares its own
            batch_size=BATCH,
            **job["settings"],
        )
    return {}


def usual(turns: Turns, job: dict[str, Any]) -> dict[str, Any]:
    """The same training as most scripts have it: PIL transforms in a DataLoader with two workers, default layout."""
    from torchvision import transforms

    train = examples(job["data"], job["images"])
    steps = [transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip()] if job["augment"] else []
    steps += [transforms.ToTensor(), transforms.Normalize(train.mean, train.std)]
    pixels = train.inputs.permute(0, 2, 3, 1).contiguous().numpy()
    dataset = Pictures(pixels, train.labels, transforms.Compose(steps))
    # persistent: in a short epoch the start of workers would weigh more than in one of 50,000 images
    loader = DataLoader(dataset, BATCH, shuffle=True, num_workers=2, persistent_workers=True)
    model = build_model(job["model"], in_shape=(3, 32, 32), classes=10)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=5e-4)
    turns.pipe.send("ready")
    turns.wait()
    for _ in range(job["epochs"]):
        model.train()
        total, right = 0.0, 0
        for x, y in loader:
            optimizer.zero_grad()
            output = model(x)
            loss = F.cross_entropy(output, y)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(y)
            right += int((output.argmax(1) == y).sum())
        turns.done({"epoch": time.perf_counter() - turns.start})
    return {}


class Pictures(Dataset):
    """What torchvision's CIFAR10 does with its arrays."""

    def __init__(self, pixels: np.ndarray, labels: np.ndarray, transform: Callable[[Any], torch.Tensor]):
        self.pixels, self.labels, self.transform = pixels, labels.tolist(), transform

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        from PIL import Image

        return self.transform(Image.fromarray(self.pixels[index])), self.labels[index]


def selecting(turns: Turns, job: dict[str, Any]) -> dict[str, Any]:
    """The selection that an epoch of `crust-half` begins with, on many images; the look at the data is made before.

    Selection sees proxies and predictions, whatever network they come from: here an MLP after a few plain epochs, which
    predicts all classes, as a network must before groups have their usual sizes.
    """
    import crust
    from crust.training.context import Context
    from crust.training.distributed import Processes
    from crust.training.settings import TrainSettings, split_settings

    train = examples(job["data"], job["images"])
    turns.pipe.send("ready")
    turns.wait()
    quick = {"epochs": 3, "learning_rate": 0.01, "augment": False, "validation": 0, "audit_every": 3}
    model = crust.fit("mlp", train, method="erm", **quick).model
    own = {name: value for name, value in job["settings"].items() if name != "method"}
    kind = METHODS[job["settings"]["method"]]
    method = kind(split_settings(own, kind.Settings)[1])
    context = Context(train, 10, [model], TrainSettings(), Processes(cpu=True), augment=False, validation=None)
    seen = context.evaluate_train_set()
    for epoch in range(job["epochs"]):
        context.epoch = epoch
        turns.start = time.perf_counter()
        selection = method.begin_epoch(context)
        turns.done({"selection": time.perf_counter() - turns.start})
    assert selection is not None
    groups = np.bincount(seen.predictions, minlength=10).tolist()
    return {"images": len(train), "chosen": len(selection.indices), "groups": groups}


WAYS = {"ours": ours, "usual": usual, "selecting": selecting}


# ---------------------------------------------------------------- who is next


def work(pipe: Connection, way: str, job: dict[str, Any]) -> None:
    """A process: all epochs of one way, a turn at a time, then what it has to say at the end."""
    try:
        pipe.send({"end": WAYS[way](Turns(pipe), job)})
    except Exception:
        pipe.send({"error": traceback.format_exc()})


class Runner:
    """A way to train, in a process that is waiting for its turn."""

    def __init__(self, way: str, job: dict[str, Any]):
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=work, args=(other, way, job))
        self.process.start()
        other.close()

    def ready(self) -> None:
        """Wait until the process has read its data."""
        self.hear()

    def hear(self) -> Any:
        try:
            answer = self.pipe.recv()
        except EOFError:
            raise RuntimeError("a process of the benchmark has ended without a word") from None
        if isinstance(answer, dict) and "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def turn(self) -> dict[str, float]:
        """One epoch; its seconds, part by part."""
        self.pipe.send("go")
        return self.hear()

    def finish(self) -> dict[str, Any]:
        self.pipe.send("go")
        end = self.hear()["end"]
        self.process.join()
        return end

    def stop(self) -> None:
        if self.process.is_alive():
            self.process.terminate()

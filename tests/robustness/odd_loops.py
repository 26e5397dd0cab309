# ruff: noqa: E501 - tables, a case after the other
"""Samplers, mixing, proxies and the adapters of training frameworks, used as nobody should."""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tests.robustness.odd_calls import Items, Net, fails
from tests.robustness.odd_values import DONE, NAMES, REFUSED, N, X, Y
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import crust

Case = tuple[Callable[[], object], bool | None]

P = np.eye(2)[Y] * 0.8 + 0.1


def sampler(model: Any = None, data: Any = None, labels: Any = None, **options: Any) -> crust.CoresetSampler:
    made = nn.Linear(3, 2) if model is None else model
    return crust.CoresetSampler(Items() if data is None else data, labels, made, **{"epochs": 2, **options})


def begun(**options: Any) -> crust.CoresetSampler:
    """After an epoch of training."""
    found = sampler(**options)
    epoch(found)
    return found


def epoch(found: crust.CoresetSampler) -> None:
    for x, y in DataLoader(Items(), 10, sampler=found):
        found.loss(found.model(x), y).backward()
        with torch.no_grad():
            for p in found.model.parameters():
                p -= 0.01 * (p.grad if p.grad is not None else 0)


def state() -> dict[str, Any]:
    return copy.deepcopy(begun().state_dict())


def with_plain(change: Callable[[Any], object]) -> dict[str, Any]:
    found = state()
    plain = json.loads(found["plain"])
    change(plain)
    return {**found, "plain": json.dumps(plain)}


def with_tensor(change: Callable[[torch.Tensor], Any]) -> dict[str, Any]:
    found = state()
    name = sorted(found["tensors"])[0]
    found["tensors"][name] = change(found["tensors"][name])
    return found


def put(name: str, value: Any) -> Callable[[], Any]:
    return lambda: with_plain(lambda plain: plain.update({name: value}))


STATES: dict[str, tuple[Callable[[], Any], bool | None]] = {
    "right": (state, DONE), "of a new one": (lambda: sampler().state_dict(), DONE), "None": (lambda: None, REFUSED),
    "number": (lambda: 7, REFUSED), "empty": (dict, REFUSED), "no plain": (lambda: {**state(), "plain": None}, REFUSED),
    "plain cut": (lambda: {**state(), "plain": state()["plain"][:99]}, REFUSED), "plain list": (lambda: {**state(), "plain": "[]"}, REFUSED),
    "plain deep": (lambda: {**state(), "plain": "[" * 100_000}, REFUSED), "plain bytes": (lambda: {**state(), "plain": b"\xff"}, REFUSED),
    "no tensors": (lambda: {**state(), "tensors": {}}, REFUSED), "tensors list": (lambda: {**state(), "tensors": [1]}, REFUSED),
    "tensors None": (lambda: {**state(), "tensors": None}, REFUSED), "format 2": (lambda: {**state(), "format": 2}, REFUSED),
    "no format": (lambda: {"plain": state()["plain"], "tensors": {}}, REFUSED), "tensor short": (lambda: with_tensor(lambda t: t.flatten()[:1]), DONE),
    "tensor text": (lambda: with_tensor(lambda t: "a"), REFUSED), "tensor NaN": (lambda: with_tensor(lambda t: t.double() * torch.nan), REFUSED),
    "tensor wide": (lambda: with_tensor(lambda t: t.repeat(3, 1)), REFUSED), "tensor beyond": (lambda: with_tensor(lambda t: t + 10**6), REFUSED),
    "weights of a model": (lambda: nn.Linear(3, 2).state_dict(), REFUSED), "other labels": (lambda: begun(labels=1 - Y).state_dict(), REFUSED),
    "other seed": (lambda: begun(seed=3).state_dict(), REFUSED), "other method": (lambda: begun(method="random").state_dict(), REFUSED),
    "other length": (lambda: begun(length=7).state_dict(), REFUSED), "other epochs": (lambda: begun(epochs=9).state_dict(), REFUSED),
    "no epoch": (lambda: with_plain(lambda p: p.pop("epoch")), REFUSED), "epoch text": (put("epoch", "a"), REFUSED),
    "epoch huge": (put("epoch", 10**40), REFUSED), "epoch negative": (put("epoch", -7), REFUSED), "epoch half": (put("epoch", 0.5), REFUSED),
    "history number": (put("history", 7), REFUSED), "history of numbers": (put("history", [7]), REFUSED), "passes short": (put("passes", [1]), REFUSED),
    "passes text": (put("passes", ["a", "b"]), REFUSED), "method number": (put("method", 7), REFUSED), "method empty": (put("method", {}), DONE),
    "watch None": (put("watch", None), REFUSED), "watch empty": (put("watch", {}), REFUSED), "handed text": (put("handed_out", "a"), REFUSED),
    "facts number": (put("facts", 7), REFUSED), "identity number": (put("identity", 7), REFUSED), "order None": (put("order", None), REFUSED),
    "indices None": (put("indices", None), REFUSED), "order text": (put("order", "abc"), REFUSED),
}  # fmt: skip


def go_on(make: Callable[[], Any]) -> None:
    found = sampler()
    found.load_state_dict(make())
    epoch(found)
    found.audit()


MIX: dict[str, tuple[Any, bool | None]] = {
    "right": ([(torch.ones(3), 1), (torch.zeros(3), 0)], DONE), "one": ([(torch.ones(3), 1)], DONE), "none": ([], REFUSED),
    "triples": ([(torch.ones(3), 1, 2)] * 2, REFUSED), "tensors": ([torch.ones(3)] * 2, REFUSED), "texts": ([("a", 1)] * 2, REFUSED),
    "ids": ([(torch.arange(3), 1)] * 2, REFUSED), "float labels": ([(torch.ones(3), 1.0)] * 2, DONE), "half labels": ([(torch.ones(3), 0.5)] * 2, REFUSED),
    "labels beyond": ([(torch.ones(3), 9)] * 2, REFUSED), "labels negative": ([(torch.ones(3), -1)] * 2, REFUSED),
    "text labels": ([(torch.ones(3), "a")] * 2, REFUSED), "label rows": ([(torch.ones(3), torch.ones(2))] * 2, DONE),
    "None labels": ([(torch.ones(3), None)] * 2, REFUSED), "ragged": ([(torch.ones(3), 1), (torch.ones(2), 1)], REFUSED),
    "dicts": ([{"x": torch.ones(3), "labels": 1}] * 2, DONE), "no labels": ([{"x": torch.ones(3)}] * 2, REFUSED), "empty dicts": ([{}] * 2, REFUSED),
    "dict label text": ([{"x": torch.ones(3), "labels": "a"}] * 2, REFUSED), "nested": ([{"x": {"y": torch.ones(3)}, "labels": 1}] * 2, REFUSED),
    "numbers": ([3, 4], REFUSED), "scalar inputs": ([(torch.tensor(1.0), 1)] * 2, DONE), "numpy": ([(np.ones(3), 1)] * 2, DONE),
    "None": ([None] * 2, REFUSED), "NaN": ([(torch.ones(3) * torch.nan, 1)] * 2, DONE), "half precision": ([(torch.ones(3).half(), 1)] * 2, DONE),
    "complex": ([(torch.ones(3) * 1j, 1)] * 2, REFUSED), "bool": ([(torch.ones(3) > 0, 1)] * 2, REFUSED), "bool labels": ([(torch.ones(3), True)] * 2, DONE),
    "no features": ([(torch.ones(0), 1)] * 2, DONE), "lists": ([([1.0, 2.0], 1)] * 2, REFUSED),
}  # fmt: skip

LOSSES: dict[str, tuple[Callable[[], tuple[Any, Any]], bool | None]] = {
    "right": (lambda: (torch.zeros(2, 2), torch.tensor([0, 1])), DONE), "rows": (lambda: (torch.zeros(2, 2), torch.ones(2, 2)), DONE),
    "beyond": (lambda: (torch.zeros(2, 2), torch.tensor([0, 7])), REFUSED), "negative": (lambda: (torch.zeros(2, 2), torch.tensor([0, -1])), REFUSED),
    "short": (lambda: (torch.zeros(2, 2), torch.tensor([0])), REFUSED), "flat logits": (lambda: (torch.zeros(2), torch.tensor([0, 1])), REFUSED),
    "three": (lambda: (torch.zeros(2, 2, 2), torch.tensor([0, 1])), REFUSED), "numpy": (lambda: (np.zeros((2, 2)), np.array([0, 1])), REFUSED),
    "None": (lambda: (None, None), REFUSED), "list": (lambda: ([[0, 1]], [0]), REFUSED), "wide rows": (lambda: (torch.zeros(2, 2), torch.ones(2, 5)), REFUSED),
    "flat floats": (lambda: (torch.zeros(2, 2), torch.ones(2)), DONE), "output object": (lambda: ({"logits": torch.zeros(2, 2)}, torch.tensor([0, 1])), REFUSED),
    "complex": (lambda: (torch.zeros(2, 2) * 1j, torch.tensor([0, 1])), REFUSED), "whole logits": (lambda: (torch.zeros(2, 2, dtype=torch.long), torch.tensor([0, 1])), REFUSED),
    "bool target": (lambda: (torch.zeros(2, 2), torch.tensor([True, False])), DONE),
}  # fmt: skip

LABELS: dict[str, tuple[Callable[[], Any], bool | None]] = {
    "numbers": (lambda: Y, DONE), "names": (lambda: NAMES, DONE), "list": (lambda: Y.tolist(), DONE), "tensor": (lambda: torch.from_numpy(Y), DONE),
    "short": (lambda: Y[:7], REFUSED), "long": (lambda: np.tile(Y, 2), REFUSED), "none": (list, REFUSED), "one class": (lambda: Y * 0, REFUSED),
    "gap": (lambda: np.where(Y > 0, 5, 0), REFUSED), "negative": (lambda: Y - 1, REFUSED), "NaN": (lambda: np.where(Y > 0, np.nan, 0), REFUSED),
    "None in it": (lambda: [None, *Y[1:]], REFUSED), "half": (lambda: Y / 2, REFUSED), "1e300": (lambda: Y * 1e300, REFUSED),
    "nested": (lambda: [[y] for y in Y], DONE), "dict": (lambda: {"a": 1}, REFUSED), "number": (lambda: 7, REFUSED), "column": (lambda: "label", REFUSED),
    "generator": (lambda: (y for y in Y), REFUSED), "bytes": (lambda: b"0101", REFUSED), "masked": (lambda: np.ma.array(Y, mask=Y > 0), REFUSED),
    "2^64": (lambda: np.full(N, 2**64 - 1, np.uint64), REFUSED), "bool": (lambda: Y > 0, DONE),
    "surrogates": (lambda: ["\ud800", "b"] * (N // 2), REFUSED), "a million classes": (lambda: np.arange(N) * 10**6, REFUSED),
    "three names": (lambda: ["a", "b", "c", "a"] * (N // 4), REFUSED), "complex": (lambda: Y * 1j, REFUSED), "set": (lambda: {0, 1}, REFUSED),
}  # fmt: skip


def loaders() -> dict[str, tuple[Callable[[], Any], bool | None]]:
    """Loops around a sampler."""

    def swapped(model: Any) -> Callable[[], Any]:
        def work() -> None:
            found = begun()
            found.model = model()
            next(iter(found))

        return work

    def more_epochs() -> None:
        found = begun()
        for _ in range(3):
            epoch(found)
        found.audit()

    def dies(exploding: Any) -> Callable[[], Any]:
        def work() -> None:
            found = begun()
            with torch.no_grad():
                for p in found.model.parameters():
                    p += exploding
            next(iter(found))
            found.audit()

        return work

    def sharded() -> None:
        found = sampler(shard=True)
        epoch(found)
        assert len(list(found)) == len(found)

    return {
        "model number": (swapped(lambda: 7), REFUSED),
        "model None": (swapped(lambda: None), REFUSED), "model of other outputs": (swapped(lambda: nn.Linear(3, 7)), REFUSED),
        "model of other inputs": (swapped(lambda: nn.Linear(7, 2)), REFUSED), "model frozen": (swapped(lambda: nn.Linear(3, 2).requires_grad_(False)), REFUSED),
        "model that fails": (swapped(lambda: Net(fails)), REFUSED), "another model": (swapped(lambda: nn.Linear(3, 2)), DONE),
        "more epochs": (more_epochs, DONE), "weights NaN": (dies(float("nan")), REFUSED), "weights inf": (dies(float("inf")), REFUSED),
        "weights 1e30": (dies(1e30), DONE), "sharded": (sharded, DONE), "set_epoch text": (lambda: begun().set_epoch("a"), DONE),
        "audit before": (lambda: sampler().audit(), REFUSED), "audit after": (lambda: begun().audit(), DONE), "repr": (lambda: repr(begun()), DONE),
        "history": (lambda: json.dumps(begun().history), DONE), "copied": (lambda: epoch(copy.deepcopy(begun())), DONE),
        "two workers": (lambda: list(DataLoader(Items(), 10, sampler=begun(workers=2))), DONE),
        "dataset that grows": (lambda: list(begun(data=Items(n=N - 1))), DONE),
        "dataset of NaN": (lambda: next(iter(sampler(data=TensorDataset(torch.from_numpy(X) * torch.nan, torch.from_numpy(Y))))), REFUSED),
    }  # fmt: skip


def settings() -> list[tuple[str, dict[str, Any], bool | None]]:
    found: list[tuple[str, dict[str, Any], bool | None]] = []
    for name, wrong in {
        "epochs": (0, -1, 1.5, "a", None, float("nan"), 10**40, True, [2]),
        "seed": (-1, 1.5, "a", None), "batch_size": (0, -1, "a", None, 1.5), "eval_batch_size": (0, -1, "a", 1.5),
        "workers": (-1, "a", 1.5), "audit_every": (0, -1, "a"), "validation": (-0.1, 1, 2, "a", float("nan"), [0.1]),
        "length": (0, -1, 1.5, "a", float("inf")), "fraction": (0, -1, 1.5, "a", float("nan"), []), "noise_rate": (-1, 1, 2, "a", float("nan")),
        "classes": ([], ["a"], "ab", 3, [1, 1], [None, None], ["a", "b", "c"]), "collate_fn": (3, "a", fails, lambda batch: None, lambda batch: 7),
        "eval_dataset": (3, [], Items(n=3), Items(n=N + 3), DataLoader(Items())), "val_set": (3, [], DataLoader(Items())), "shard": ("yes", 7),
        "val_labels": (3,), "schedule": ("cosine",), "optimizer": ("sgd",), "ema": (0.9,), "nothing": (1,), "method": ("co-teaching", "oracle", "crsut", 3, None, nn.Linear),
    }.items():  # fmt: skip
        found += [(name, {name: value}, name in ("shard", "val_labels")) for value in wrong]
    found += [
        ("val_set", {"val_set": Items()}, DONE),
        ("val_set of another width", {"val_set": TensorDataset(torch.zeros(9, 7), torch.zeros(9).long())}, REFUSED),
        ("val_set of NaN", {"val_set": TensorDataset(torch.full((9, 3), torch.nan), torch.zeros(9).long())}, REFUSED),
        ("val_set with other classes", {"val_set": TensorDataset(torch.zeros(9, 3), torch.full((9,), 7))}, REFUSED),
        (
            "eval_dataset of another width",
            {"eval_dataset": TensorDataset(torch.zeros(N, 7), torch.zeros(N).long())},
            REFUSED,
        ),
        ("val_labels short", {"val_set": Items(), "val_labels": [1]}, REFUSED),
        ("validation 0", {"validation": 0}, DONE),
        ("names", {"labels": NAMES, "classes": ["cat", "dog"]}, DONE),
        ("names in another order", {"labels": NAMES, "classes": ["dog", "cat"]}, DONE),
        ("unknown names", {"labels": NAMES, "classes": ["a", "b"]}, REFUSED),
    ]
    return found


def lightning_cases() -> dict[str, Case]:
    from lightning.pytorch import LightningModule, Trainer
    from lightning.pytorch.callbacks import Callback

    from crust.integrations.lightning import CrustCallback

    class Module(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x)  # type: ignore[no-any-return]

        def training_step(self, batch: Any, _: int) -> torch.Tensor:
            return nn.functional.cross_entropy(self(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 0.1)

    def run(folder: Path | None = None, model: Any = None, callback: Any = None, **options: Any) -> None:
        module = Module()
        found = sampler(module if model is None else model)
        quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
        more = {"enable_checkpointing": False, "max_epochs": 2, **quiet, **options}
        made: Callback = CrustCallback(found if callback is None else callback)
        trainer = Trainer(callbacks=[made], **more)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of its own
            trainer.fit(module, DataLoader(Items(), 10, sampler=found))

    return {
        "lightning": (run, DONE),
        "lightning, another model": (lambda: run(model=nn.Linear(3, 2)), REFUSED),
        "lightning, no sampler": (lambda: run(callback=7), REFUSED),
        "lightning, the layer": (lambda: run(max_epochs=5), DONE),
        "lightning, a state of others": (
            lambda: CrustCallback(sampler()).load_state_dict({"format": 1}),
            REFUSED,
        ),
        "lightning, an empty state": (lambda: CrustCallback(sampler()).load_state_dict({}), REFUSED),
    }


def transformers_cases(folder: Path) -> dict[str, Case]:
    from transformers import BertConfig, BertForSequenceClassification, TrainingArguments

    from crust.integrations.transformers import CrustCallback, CrustTrainer

    def model(labels: int = 2) -> Any:
        sizes = {"vocab_size": 50, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
        return BertForSequenceClassification(BertConfig(**sizes, intermediate_size=8, num_labels=labels))

    right = [{"input_ids": [2, 5 + n % 2, n % 50, 3], "labels": n % 2} for n in range(N)]

    def arguments(place: Path, **more: Any) -> Any:
        usual = {"num_train_epochs": 1, "report_to": [], "disable_tqdm": True, "save_strategy": "no", "use_cpu": True}
        return TrainingArguments(output_dir=str(place), **{**usual, "logging_strategy": "no", **more})

    def train(data: Any = None, options: Any = None, labels: int = 2, place: Path = folder / "out", **more: Any) -> Any:
        data = right if data is None else data
        resume = more.pop("resume", None)
        made = CrustTrainer(model(labels), arguments(place, **more), train_dataset=data, crust=options)
        made.train(resume)
        return made

    def saved(name: str, spoil: Callable[[Path], object]) -> Callable[[], Any]:
        def work() -> None:
            place = folder / name
            train(place=place, save_strategy="steps", save_steps=3)
            last = sorted(place.glob("checkpoint-*"))[0]
            spoil(last / "crust_sampler.pt")
            train(place=place, resume=str(last), num_train_epochs=2)

        return work

    class Gun:
        def __reduce__(self) -> Any:
            import os

            return os.mkdir, (str(folder / "unpickled"),)

    return {
        "trainer": (train, DONE),
        "trainer, options number": (lambda: train(options=7), REFUSED),
        "trainer, options unknown": (lambda: train(options={"nothing": 1}), REFUSED),
        "trainer, fraction 2": (lambda: train(options={"fraction": 2}), REFUSED),
        "trainer, method": (lambda: train(options={"method": "dividemix"}), REFUSED),
        "trainer, length 0": (lambda: train(options={"length": 0}), REFUSED),
        "trainer, length 0 with steps": (lambda: train(options={"length": 0}, max_steps=2), REFUSED),
        "trainer, length text with steps": (lambda: train(options={"length": "a"}, max_steps=2), REFUSED),
        "trainer, validation text with steps": (lambda: train(options={"validation": "a"}, max_steps=2), REFUSED),
        "trainer, validation 1 with steps": (lambda: train(options={"validation": 1}, max_steps=2), REFUSED),
        "trainer, labels short": (lambda: train(options={"labels": [1, 0]}), REFUSED),
        "trainer, labels text": (lambda: train(options={"labels": "nothing"}), REFUSED),
        "trainer, bounded text": (lambda: train(options={"bounded": "no"}), DONE),
        "trainer, too few outputs": (lambda: train(labels=1), REFUSED),
        "trainer, labels beyond": (lambda: train([{**one, "labels": 9} for one in right]), REFUSED),
        "trainer, labels negative": (lambda: train([{**one, "labels": -1} for one in right]), REFUSED),
        "trainer, labels None": (lambda: train([{**one, "labels": None} for one in right]), REFUSED),
        "trainer, no labels": (lambda: train([{"input_ids": [1]} for one in right]), REFUSED),
        "trainer, texts": (lambda: train([{"text": "a", "labels": 1}] * N), REFUSED),
        "trainer, ids beyond": (lambda: train([{**one, "input_ids": [99]} for one in right]), REFUSED),
        "trainer, no rows": (lambda: train([]), REFUSED),
        "trainer, goes on": (saved("goes", lambda path: None), DONE),
        "trainer, no state": (saved("gone", lambda path: path.unlink()), REFUSED),
        "trainer, state empty": (saved("empty", lambda path: path.write_bytes(b"")), REFUSED),
        "trainer, state text": (saved("text", lambda path: path.write_text("a")), REFUSED),
        "trainer, state cut": (saved("cut", lambda path: path.write_bytes(path.read_bytes()[:200])), REFUSED),
        "trainer, state of another": (saved("other", lambda path: torch.save({"a": 1}, path)), REFUSED),
        "trainer, state pickled": (saved("gun", lambda path: torch.save(Gun(), path)), REFUSED),
        "trainer, state number": (saved("number", lambda path: torch.save(7, path)), REFUSED),
        "trainer, state folder": (saved("folder", lambda path: (path.unlink(), path.mkdir())), REFUSED),
        "callback of nothing": (lambda: CrustCallback(None), DONE),
    }


def cases(folder: Path) -> dict[str, Case]:
    found: dict[str, Case] = {}
    for name, (make, right) in STATES.items():
        found[f"state: {name}"] = (lambda make=make: go_on(make), right)
    found |= {f"loop: {name}": one for name, one in loaders().items()}
    for name, (batch, right) in MIX.items():
        found[f"mixing: {name}"] = (lambda batch=batch: crust.mixing(None, sampler())(batch), right)
    for alpha in (0, -1, float("nan"), float("inf"), "a", None, [1], True):
        found[f"mixing alpha {alpha!r}"] = (lambda alpha=alpha: crust.mixing(None, sampler(), alpha=alpha), REFUSED)
    for value in (None, 3, Items(), "a"):
        found[f"mixing with {value!r:.20}"] = (lambda value=value: crust.mixing(None, value), REFUSED)
    for value in (3, "a"):
        found[f"mixing collate {value!r}"] = (lambda value=value: crust.mixing(value, sampler()), REFUSED)
    for name, make in {"fails": fails, "None": lambda batch: None, "three": lambda batch: (1, 2, 3)}.items():
        found[f"mixing collate {name}"] = (lambda make=make: crust.mixing(make, sampler())([1]), REFUSED)
    for name, (make, right) in LOSSES.items():
        found[f"loss: {name}"] = (lambda make=make: begun().loss(*make()), right)
    for name, (make, right) in LABELS.items():
        found[f"sampler labels: {name}"] = (lambda make=make: next(iter(sampler(labels=make()))), right)
        found[f"proxies labels: {name}"] = (
            lambda make=make: crust.proxies(nn.Linear(3, 2), [(torch.from_numpy(X), np.arange(N))], make()),
            (right and name != "names" and name != "nested") or name == "one class",
        )
        found[f"choose labels: {name}"] = (
            lambda make=make: crust.choose(
                crust.proxies(nn.Linear(3, 2), [(torch.from_numpy(X), np.arange(N))], Y), make()
            ),
            (right and name != "names") or name in ("gap", "one class"),
        )
    for i, (name, options, right) in enumerate(settings()):
        found[f"sampler {i} {name} {list(options.values())!r:.40}"] = (
            lambda options=options: next(iter(sampler(**options))),
            right,
        )
    return found


def trainers(folder: Path) -> dict[str, Case]:
    return {**lightning_cases(), **transformers_cases(folder)}

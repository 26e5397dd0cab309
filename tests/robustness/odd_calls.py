"""Calls from Python with odd options, models, datasets and paths, and whether each is right."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import torch
from tests.robustness.odd_values import DONE, NAMES, REFUSED, N, X, Y
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, Subset, TensorDataset

import crust
from crust.data import from_arrays

FAST: dict[str, Any] = {"method": "erm", "epochs": 1, "batch_size": 16, "learning_rate": 0.01, "progress": False}
Case = tuple[Callable[[Any], object], bool]


def fit(model: Any = "mlp", data: Any = None, **options: Any) -> Any:
    return crust.fit(model, (X, Y) if data is None else data, **{**FAST, **options})


class Items:
    """A dataset whose item number 7 is something else."""

    def __init__(self, odd: Any = None, n: int = N):
        self.odd, self.n = odd, n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        if i >= self.n:
            raise IndexError(i)
        if i == 7 and self.odd is not None:
            return self.odd() if callable(self.odd) else self.odd
        return torch.from_numpy(X[i]), int(Y[i])


class Stream(IterableDataset):
    def __iter__(self) -> Any:
        return iter(Items())


class Net(nn.Module):
    """A network whose output is odd."""

    def __init__(self, answer: Callable[[torch.Tensor], Any]):
        super().__init__()
        self.layer, self.answer = nn.Linear(3, 2), answer

    def forward(self, x: torch.Tensor) -> Any:
        return self.answer(self.layer(x))


def fails(*_: Any) -> Any:
    raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")


MODELS: dict[str, tuple[Callable[[], Any], bool]] = {
    "right": (lambda: nn.Linear(3, 2), DONE),
    "factory": (lambda: lambda: nn.Linear(3, 2), DONE),
    "in DataParallel": (lambda: nn.DataParallel(nn.Linear(3, 2)), DONE),
    "object with logits": (lambda: Net(lambda z: SimpleNamespace(logits=z)), DONE),
    "dict with logits": (lambda: Net(lambda z: {"logits": z}), DONE),
    "None": (lambda: None, REFUSED),
    "number": (lambda: 3, REFUSED),
    "list": (lambda: [nn.Linear(3, 2)], REFUSED),
    "class": (lambda: nn.Linear, REFUSED),
    "no weights": (nn.Identity, REFUSED),
    "frozen": (lambda: nn.Linear(3, 2).requires_grad_(False), REFUSED),
    "lazy": (lambda: nn.LazyLinear(2), REFUSED),
    "meta": (lambda: nn.Linear(3, 2, device="meta"), REFUSED),
    "half": (lambda: nn.Linear(3, 2).half(), REFUSED),
    "double": (lambda: nn.Linear(3, 2).double(), REFUSED),
    "one logit": (lambda: nn.Linear(3, 1), DONE),  # for two classes
    "probabilities": (lambda: nn.Sequential(nn.Linear(3, 2), nn.Softmax(1)), REFUSED),
    "too many outputs": (lambda: nn.Linear(3, 5), REFUSED),
    "other inputs": (lambda: nn.Linear(7, 2), REFUSED),
    "tuple": (lambda: Net(lambda z: (z, z)), REFUSED),
    "None as output": (lambda: Net(lambda z: None), REFUSED),
    "numpy output": (lambda: Net(lambda z: z.detach().numpy()), REFUSED),
    "detached": (lambda: Net(lambda z: z.detach()), REFUSED),
    "three dimensions": (lambda: Net(lambda z: z[:, None]), REFUSED),
    "one row": (lambda: Net(lambda z: z[:1]), REFUSED),
    "whole numbers": (lambda: Net(lambda z: z.argmax(1)), REFUSED),
    "complex": (lambda: Net(lambda z: z.to(torch.complex64)), REFUSED),
    "fails": (lambda: Net(fails), REFUSED),
    "unknown name": (lambda: "resnet9", REFUSED),
    "empty name": (lambda: "", REFUSED),
    "images only": (lambda: "resnet8", REFUSED),
    "texts only": (lambda: "text", REFUSED),
    "unknown timm": (lambda: "timm:nothing_like_it", REFUSED),
    "factory that fails": (lambda: fails, REFUSED),
    "factory of nothing": (lambda: lambda: None, REFUSED),
    "factory that wants more": (lambda: lambda classes: nn.Linear(3, classes), REFUSED),
    "optimizer": (lambda: torch.optim.SGD(nn.Linear(3, 2).parameters(), 0.1), REFUSED),
    "weights": (lambda: nn.Linear(3, 2).state_dict(), REFUSED),
    "path": (lambda: Path("model.pt"), REFUSED),
}

DATASETS: dict[str, tuple[Callable[[], Any], bool]] = {
    "items": (Items, DONE),
    "list of pairs": (lambda: [(torch.from_numpy(x), int(y)) for x, y in zip(X, Y, strict=True)], DONE),
    "tensors": (lambda: TensorDataset(torch.from_numpy(X), torch.from_numpy(Y)), DONE),
    "subset": (lambda: Subset(Items(), range(20)), DONE),
    "examples": (lambda: from_arrays(X, Y), DONE),
    "texts": (lambda: (["so good", "so bad"] * (N // 2), NAMES), REFUSED),  # for an mlp
    "number": (lambda: 3, REFUSED),
    "path": (lambda: "data.csv", REFUSED),
    "path object": (lambda: Path("data.csv"), REFUSED),
    "dict": (lambda: {"x": X, "y": Y}, DONE),
    "dict without labels": (lambda: {"x": X}, REFUSED),
    "empty dict": (dict, REFUSED),
    "frame": (lambda: pd.DataFrame(X), REFUSED),
    "frame with labels": (lambda: pd.DataFrame(X, columns=list("abc")).assign(label=Y), DONE),
    "empty frame": (pd.DataFrame, REFUSED),
    "array alone": (lambda: X, REFUSED),
    "tensor alone": (lambda: torch.from_numpy(X), REFUSED),
    "loader": (lambda: DataLoader(Items(), 4), DONE),
    "stream": (Stream, REFUSED),
    "generator": (lambda: ((x, y) for x, y in zip(X, Y, strict=True)), REFUSED),
    "empty list": (list, REFUSED),
    "no items": (lambda: Items(n=0), REFUSED),
    "empty tuple": (lambda: (), REFUSED),
    "three arrays": (lambda: (X, Y, Y), REFUSED),
    "one array in a tuple": (lambda: (X,), REFUSED),
    "swapped": (lambda: (Y, X), REFUSED),
    "lengths that differ": (lambda: (X, Y[:9]), REFUSED),
    "one example": (lambda: (X[:1], Y[:1]), REFUSED),
    "one class": (lambda: (X, np.zeros(N, int)), REFUSED),
    "class": (lambda: Items, REFUSED),
    "an item that is None": (lambda: Items((None, 0)), REFUSED),
    "an item without label": (lambda: Items(torch.zeros(3)), REFUSED),
    "an item of another width": (lambda: Items((torch.zeros(5), 0)), REFUSED),
    "an item with a text": (lambda: Items(("text", 0)), REFUSED),
    "an item whose label is text": (lambda: Items((torch.zeros(3), "cat")), REFUSED),
    "an item whose label is missing": (lambda: Items((torch.zeros(3), None)), REFUSED),
    "an item with NaN as label": (lambda: Items((torch.zeros(3), float("nan"))), REFUSED),
    "an item with three parts": (lambda: Items((torch.zeros(3), 0, "id")), DONE),
    "an item that fails": (lambda: Items(fails), REFUSED),
    "an item of bytes": (lambda: Items(b"ab"), REFUSED),
    "an item with two labels": (lambda: Items((torch.zeros(3), torch.tensor([0, 1]))), REFUSED),
    "arrays of images of two channels": (lambda: (np.zeros((N, 5, 5, 2), np.uint8), Y), REFUSED),
    "images for an mlp": (lambda: (np.zeros((N, 5, 5, 3), np.uint8), Y), DONE),
    "images of one pixel": (lambda: (np.zeros((N, 1, 1, 1), np.uint8), Y), DONE),
    "pixels with NaN": (lambda: (np.full((N, 5, 5), np.nan), Y), REFUSED),
}

# Options of fit: name, value, whether that is right.
OPTIONS: list[tuple[str, Any, bool]] = [
    *[
        (name, value, REFUSED)
        for name in ("epochs", "batch_size")
        for value in (0, -1, 1.5, "a", None, [], float("nan"), True)
    ],
    *[("learning_rate", value, REFUSED) for value in (0, -1, "a", float("nan"), float("inf"), [], 10**400)],
    *[("seed", value, REFUSED) for value in (-1, 2**63, 2**64, 1.5, "a", None, float("nan"))],
    ("seed", 2**31, DONE),
    *[("validation", value, REFUSED) for value in (-0.1, 1, 1.5, "a", float("nan"), [], None)],
    ("validation", 0, DONE),
    *[("method", value, REFUSED) for value in ("", "crsut", None, 3, int, [], "erm ")],
    *[("optimizer", value, REFUSED) for value in ("", "sdg", 3, torch.optim.SGD)],
    *[("mixed_precision", value, REFUSED) for value in ("fp17", 16, "yes")],
    *[("trackers", value, REFUSED) for value in (["nothing"], 3, [3], [None])],
    *[("on_epoch_end", value, REFUSED) for value in (3, "print")],
    *[(name, 3, REFUSED) for name in ("collate_fn", "label_column", "show", "normalise", "loss", "logits", "schedule")],
    *[("sample_weight", value, REFUSED) for value in (3, "a", [1.0], [-1.0] * N, [float("nan")] * N, [0.0] * N)],
    *[("trackers", value, REFUSED) for value in ({"nothing": {}}, {"tensorboard": 3})],
    *[("loss", value, REFUSED) for value in (fails, nn.functional.cross_entropy, lambda z, y: None)],
    *[("optimizer", value, REFUSED) for value in (fails, lambda model: None)],
    *[("schedule", value, REFUSED) for value in (fails, lambda step: "fast")],
    *[("class_weight", value, REFUSED) for value in ("even", [1.0], [-1.0, 1.0], [0.0, 0.0])],
    *[("accumulate", value, REFUSED) for value in (0, 1.5)],
    *[("patience", value, REFUSED) for value in (0, "long")],
    *[("augment", value, REFUSED) for value in ("maybe", 3, [])],
    *[("resume", value, REFUSED) for value in (True, "yes")],  # without a run's folder
    *[
        ("run_dir", value, REFUSED)
        for value in (3, "", "a\0b", "a" * 300, "/proc/nothing", "/dev/null", "/dev/null/a", [], b"run")
    ],
    *[(name, 3, REFUSED) for name in ("labels", "true_labels", "test_set", "val_set", "train_eval_set")],
    ("test_set", {}, REFUSED),
    ("test_set", {"": (X, Y)}, REFUSED),
    ("test_set", {3: (X, Y)}, REFUSED),
    ("test_set", {"a/b": (X, Y)}, REFUSED),
    ("test_set", {"a": None}, REFUSED),
    ("test_set", {"a": (X, Y)}, DONE),
    ("test_set", (X[:0], Y[:0]), REFUSED),
    ("val_set", (X[:0], Y[:0]), REFUSED),
    ("val_set", (X, Y + 5), REFUSED),
    ("test_set", (X, NAMES), REFUSED),
    ("train_eval_set", (X[:5], Y[:5]), REFUSED),
    ("nothing_like_it", 3, REFUSED),
    ("lr", 0.1, REFUSED),
    ("epoch", 3, REFUSED),
    ("weight_decay", -1, REFUSED),
    ("momentum", 2, REFUSED),
    ("momentum", float("nan"), REFUSED),
    ("lr_milestones", [2, 1], REFUSED),
    ("lr_milestones", "a", REFUSED),
    ("workers", -1, REFUSED),
    ("stop_after", -1, REFUSED),
    ("keep_every", 0, REFUSED),
    ("audit_every", 0, REFUSED),
    ("max_passes", -1, REFUSED),
    ("max_passes", float("nan"), REFUSED),
    ("eval_batch_size", 0, REFUSED),
    ("true_labels", Y, DONE),
    ("progress", None, DONE),
]

METHOD_OPTIONS: list[tuple[str, dict[str, Any], bool]] = [
    *[("crust-half", {"fraction": value}, REFUSED) for value in (0, -1, 1.5, float("nan"), "a", None, [0.5], 10**400)],
    *[("crust-half", {"select_every": value}, REFUSED) for value in (0, -1, 1.5, "a", float("inf"))],
    *[("crust-half", {name: "nothing"}, REFUSED) for name in ("grouping", "selection", "proxy", "budget")],
    ("crust", {"fraction": 2}, REFUSED),
    ("crust", {"noise_rate": 1.5}, REFUSED),
    ("oracle", {}, REFUSED),
    ("co-teaching", {"noise_rate": -1}, REFUSED),
    ("gce", {"q": 7}, REFUSED),
    ("sce", {"alpha": -1}, REFUSED),
    ("elr", {"beta": 1.5}, REFUSED),
    ("mixup", {"alpha": 0}, REFUSED),
    ("mixup", {"alpha": float("nan")}, REFUSED),
    ("incv", {"iterations": 0}, REFUSED),
    ("erm", {"fraction": 0.5}, REFUSED),
]


def nowhere() -> Any:
    raise AssertionError("a loader that is not asked")


def calls(folder: Path) -> dict[str, Case]:
    """All other calls, on things made in a folder."""
    run = folder / "run"
    fit(run_dir=run)
    result = fit()
    linear = nn.Linear(3, 2)
    items = Items()
    seen = crust.proxies(linear, [(torch.from_numpy(X), np.arange(N))], Y)
    batch = [(torch.from_numpy(X), np.arange(N))]
    (folder / "empty").mkdir()
    (folder / "file").write_text("x")
    os.mkfifo(folder / "fifo")
    (folder / "loop").symlink_to(folder / "loop")
    table = pd.DataFrame({"index": [0, 1], "corrected": [1, 0]})
    table.to_csv(folder / "mine.csv", index=False)
    found: dict[str, Case] = {}

    def add(name: str, call: Callable[[], object], right: bool = REFUSED) -> None:
        assert name not in found, name
        found[name] = (lambda _: call(), right)

    odd_paths = {
        "None": None,
        "number": 7,
        "empty": "",
        "nul": "a\0b",
        "bytes": b"run",
        "list": [],
        "missing": folder / "nothing",
        "long": "a" * 5000,
        "long name": folder / ("a" * 300),
        "file": folder / "file",
        "fifo": folder / "fifo",
        "loop": folder / "loop",
        "device": "/dev/null",
        "empty folder": folder / "empty",
        "surrogate": "a\ud800",
        "in a file": folder / "file" / "a",
        "newline": folder / "a\nb",
    }
    for name, path in odd_paths.items():
        add(f"load {name}", lambda path=path: crust.load(path))
        add(f"verify_audit {name}", lambda path=path: crust.verify_audit(path))
        add(f"apply_corrections {name}", lambda path=path: crust.apply_corrections(path))
        if path is not None:
            add(f"apply_corrections, corrections {name}", lambda path=path: crust.apply_corrections(run, path))
            add(
                f"apply_corrections, output {name}",
                lambda path=path: crust.apply_corrections(run, folder / "mine.csv", output=path),
            )
        add(f"Coreset.load {name}", lambda path=path: crust.Coreset.load(path))
        add(f"data.load {name}", lambda path=path: crust.data.load(path))
        add(f"report {name}", lambda path=path: result.report(path))
        add(f"save {name}", lambda path=path: result.save(path), name in ("missing", "empty folder", "newline"))
    for value in (0, -1, 1.5, "a", None, True, float("nan"), [], N + 1, 10**40, -0.5, float("inf"), "10%", b"3"):
        add(f"select k {value!r}", lambda value=value: crust.select(X, value))
    for option, values in {
        "algorithm": ("", None, "gredy", 3, []),
        "metric": ("", None, "l1", 3),
        "device": ("gpu", 3, "cuda:99", [], "meta"),
        "threads": (0, -1, 1.5, "a", True),
        "memory_limit": (0, -1, "a", "1 XB", [], float("nan"), True),
        "seed": (-1, 1.5, "a", None),
        "epsilon": (0, 1, "a", None, float("nan")),
        "min_per_group": (-1, 1.5, "a", None),
        "engine": ("spark", 3),
    }.items():
        for value in values:
            add(f"select {option} {value!r}", lambda option=option, value=value: crust.select(X, 4, **{option: value}))
    for option, values in {"sample": (0, -1, 1.5, "a"), "metric": ("", 3), "seed": (-1, "a")}.items():
        for value in values:
            add(
                f"centrality {option} {value!r}",
                lambda option=option, value=value: crust.centrality(X, **{option: value}),
            )
    for args in (
        (0, 3, 1),
        (-1, 3, 1),
        (10, 0, 1),
        (10, 3, 0),
        ("a", 3, 1),
        (10, 3, 20),
        (10, 3, "a"),
        (1e300, 3, 1),
        (None, 3, 1),
        (10.5, 3, 1),
    ):
        add(f"estimate_cost {args!r}", lambda args=args: crust.estimate_cost(*args))
    square = np.abs(X[:, :1] - X[:, 0])
    for name, matrix in {
        "not square": square[:, :5],
        "negative": -square,
        "NaN": np.where(square > 1, np.nan, square),
        "diagonal": square + 1,
        "uneven": np.triu(square),
        "text": square.astype(str),
        "complex": square * 1j,
    }.items():
        add(f"precomputed {name}", lambda matrix=matrix: crust.select(matrix, 4, metric="precomputed"))
    add("precomputed", lambda: crust.select(square, 4, metric="precomputed"), DONE)
    add("cosine of zeros", lambda: crust.select(np.zeros((9, 2)), 2, metric="cosine"))
    # ------------------------------------------------------------ what judges labels
    p = np.eye(2)[Y] * 0.8 + 0.1
    for name, probs in {
        "negative": p - 0.3,
        "above one": p * 2,
        "sums": p / 2,
        "NaN": np.where(p > 0.5, np.nan, p),
        "one": p[:, :1],
        "text": p.astype(str),
        "short": p[:5],
        "flat": p[:, 0],
        "three": p[None],
        "1e300": p * 1e300,
        "logits": np.log(p),
        "whole": np.eye(2, dtype=int)[Y][:, :1],
        "named": pd.DataFrame(p, columns=["a", "b"]),
        "gap": pd.DataFrame(np.where(p > 0.5, np.nan, p)),
        "masked": np.ma.array(p, mask=p > 0.5),
        "complex": p.astype(complex),
        "objects": np.full((N, 2), None),
        "ragged": [[1]] * 3 + [[0.5, 0.5]] * 37,
    }.items():
        labels = NAMES if name == "named" else Y
        add(f"pred_probs {name}", lambda probs=probs, labels=labels: crust.find_label_issues(labels, probs))
    add("pred_probs half", lambda: crust.find_label_issues(Y, p.astype(np.float16)), DONE)
    add("neither", lambda: crust.find_label_issues(Y))
    add("both", lambda: crust.find_label_issues(Y, p, X))
    # ------------------------------------------------------------ samplers, proxies, choose
    for option, values in {
        "epochs": (0, -1, 1.5, "a", None),
        "length": (0, -1, "a", 1.5, float("nan")),
        "validation": (-1, 2, "a"),
        "method": ("", "dividemix", 3, None),
        "classes": ([], ["a"], 3),
        "eval_dataset": ([], 3, items.n),
        "val_set": ([], 3),
        "fraction": (0, 2, "a"),
        "learning_rate": (0.1,),
        "collate_fn": (3,),
    }.items():
        for value in values:
            add(
                f"sampler {option} {value!r}",
                lambda option=option, value=value: crust.CoresetSampler(
                    items, None, nn.Linear(3, 2), **{"epochs": 2, option: value}
                ),
            )
    for name, (make, _) in DATASETS.items():
        if (
            name not in ("examples", "swapped", "images for an mlp", "texts", "path", "path object")
            and "array" not in name
        ):
            add(
                f"sampler of {name}",
                lambda make=make: crust.CoresetSampler(make(), None, nn.Linear(3, 2), epochs=2),
                name in ("items", "list of pairs", "tensors", "subset")
                or name
                in (
                    "an item with three parts",
                    "an item that is None",
                    "an item of another width",
                    "an item with a text",
                ),
            )
    for name in (
        "None",
        "number",
        "class",
        "frozen",
        "lazy",
        "meta",
        "other inputs",
        "tuple",
        "fails",
    ):
        make = MODELS[name][0]
        add(f"sampler, model {name}", lambda make=make: next(iter(crust.CoresetSampler(items, None, make(), epochs=2))))
        if name != "frozen":
            add(f"proxies, model {name}", lambda make=make: crust.proxies(make(), batch, Y))
    for option, values in {
        "kind": ("", "all", None, 3),
        "loss": ("mse", None),
        "device": ("cuda:99", "gpu"),
        "layer": ("nothing", 3),
        "autocast": ("bf16",),
    }.items():
        for value in values:
            add(
                f"proxies {option} {value!r}",
                lambda option=option, value=value: crust.proxies(
                    nn.Linear(3, 2), batch, Y, **{"kind": "features", option: value}
                ),
            )
    for name, batches in {
        "none": [],
        "half": [(torch.from_numpy(X[:9]), np.arange(9))],
        "positions": [(torch.from_numpy(X), np.arange(N) + 9)],
        "negative": [(torch.from_numpy(X), np.arange(N) - 1)],
        "number": 3,
        "shuffled": DataLoader(items, 4, shuffle=True),
        "no positions": [torch.from_numpy(X)],
        "text positions": [(torch.from_numpy(X), ["a"] * N)],
        "fewer positions": [(torch.from_numpy(X), np.arange(9))],
        "None": None,
        "half positions": [(torch.from_numpy(X), np.arange(N) / 2)],
    }.items():
        add(f"proxies of {name}", lambda batches=batches: crust.proxies(nn.Linear(3, 2), batches, Y))
    add("proxies of arrays", lambda: crust.proxies(nn.Linear(3, 2), [(X, np.arange(N))], Y), DONE)
    add("proxies of a loader", lambda: crust.proxies(nn.Linear(3, 2), DataLoader(items, 4), Y), DONE)
    for option, values in {
        "fraction": (0, -1, 2.5, "a", None, float("nan")),
        "grouping": ("", None, "labels"),
        "selection": ("best", None),
        "budget": ("", None),
        "seed": (-1, "a"),
    }.items():
        for value in values:
            more = {"selection": "random", "budget": "group"} if option == "seed" else {}
            add(
                f"choose {option} {value!r}",
                lambda option=option, value=value, more=more: crust.choose(seen, Y, **{option: value}, **more),
            )
    for value in (None, 3, X, {}):
        add(f"choose of {type(value).__name__}", lambda value=value: crust.choose(value, Y))
    # ------------------------------------------------------------ results
    for name, data in {
        "another width": np.zeros((4, 5)),
        "one row": X[0],
        "number": 3,
        "text": "a",
        "None": None,
        "texts": ["a", "b"],
        "images": np.zeros((4, 5, 5, 3)),
        "items of another width": [torch.zeros(5)] * 3,
        "loader": DataLoader(items, 4),
        "stream": Stream(),
        "items of text": [("a", 0)] * 3,
        "failing": Items(fails),
        "nothing": [],
        "frame": pd.DataFrame({"a": NAMES}),
    }.items():
        add(f"predict {name}", lambda data=data: result.predict(data), name == "loader")
    for name, data in {
        "frame": pd.DataFrame(X),
        "lists": X.tolist(),
        "items": items,
        "pairs": [(torch.zeros(3), 0)] * 3,
        "tensor": torch.zeros(2, 3),
        "one": X[:1],
    }.items():
        add(f"predict right {name}", lambda data=data: result.predict(data), DONE)
    for value in (0, -1, "a", 1.5, None):
        add(f"predict batch_size {value!r}", lambda value=value: result.predict(X, batch_size=value))
    for name in ("number", "class", "other inputs", "too many outputs", "None as output"):
        make = MODELS[name][0]
        if name != "None as output":
            add(f"load, model {name}", lambda make=make: crust.load(run, make()))
    add("verify, model number", lambda: crust.verify_audit(run, (X, Y), model=3))
    add("verify, other data", lambda: crust.verify_audit(run, (X + 1, Y)))
    add("verify, no data", lambda: crust.verify_audit(run))
    add("verify, data number", lambda: crust.verify_audit(run, 3))
    for name, content in {
        "empty": "",
        "no columns": "a,b\n1,2\n",
        "unknown class": "index,corrected\n0,9\n",
        "unknown row": "index,corrected\n99,1\n",
        "negative row": "index,corrected\n-1,1\n",
        "text row": "index,corrected\na,1\n",
        "twice": "index,corrected\n0,1\n0,0\n",
        "no rows": "index,corrected\n",
        "half row": "index,corrected\n0.5,1\n",
        "nothing changes": "index,corrected\n0,0\n",
        "quote": 'index,corrected\n0,"1\n',
        "binary": "\0\1\2",
        "huge": f"index,corrected\n{10**30},1\n",
    }.items():
        path = folder / f"{name}.csv"
        path.write_text(content)
        add(f"corrections {name}", lambda path=path: crust.apply_corrections(run, path))
    add("apply", lambda: crust.apply_corrections(run, folder / "mine.csv", output=folder / "out.csv"), DONE)
    add("apply move", lambda: crust.apply_corrections(run, folder / "mine.csv", move=True))
    # ------------------------------------------------------------ scikit-learn
    for option, values in {
        "model": (3, "nothing", None, fails, nn.Linear(7, 2)),
        "method": (3, "nothing", "oracle"),
        "epochs": (0, "a", 1.5),
        "batch_size": (0, "a"),
        "learning_rate": (0, "a", float("nan")),
        "validation": (2, "a", -1),
        "settings": ({"nothing": 1}, 3, {3: 4}),
        "random_state": ("a", -1),
    }.items():
        for value in values:
            add(
                f"classifier {option} {value!s:.20}",
                lambda option=option, value=value: crust.CrustClassifier(
                    **{"model": "mlp", "method": "erm", "epochs": 1, option: value}
                ).fit(X, Y),
            )
    # ------------------------------------------------------------ data and noise
    for spec in (
        "symmetric:2",
        "symmetric:-1",
        "symmetric:a",
        "nothing:0.5",
        "",
        "symmetric",
        "symmetric:nan",
        "matrix:none.npy",
        "pair-flip:1e300",
        "human:worse",
        "symmetric:0.5:0.5",
        3,
        None,
    ):
        add(f"noise {spec!r}", lambda spec=spec: crust.noise.make_noisy_labels(Y, spec, 2))
    for value in (0, -1, 1, "a", 1.5, None, 2**70):
        add(f"noise classes {value!r}", lambda value=value: crust.noise.make_noisy_labels(Y, "symmetric:0.2", value))
    for name in ("limit", "image_size"):
        for value in (0, -1, "a", 1.5):
            add(
                f"data.load {name} {value!r}", lambda name=name, value=value: crust.data.load("digits", **{name: value})
            )
    return found

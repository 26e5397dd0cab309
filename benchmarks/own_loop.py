"""The coreset sampler in loops that are not ours, beside `crust.fit` and plain training, on texts with wrong labels.

python -m benchmarks.own_loop --table lists.csv
python -m benchmarks.own_loop --show

A tenth of the rows is measured on; 30% of the other labels are changed to any other class. All arms have the network
`text` with the same first weights, the optimizer, rate and schedule that `crust.fit` chooses for the data, the same
held-out tenth, and as many updates as `crust.fit` has made: accuracy is that of the weights after the last one. `loop`
and `trainer` are cross-entropy and `sampler=`; `loop-loss` and `trainer-loss` have `sampler.loss` in its place. A line
that is there already is not made again.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.nn import functional as F  # noqa: N812 - its usual name
from torch.utils.data import DataLoader

import crust
from crust import data, noise
from crust.data import from_texts
from crust.models import build_model

FILE = Path(__file__).parent / "results" / "own-loop.jsonl"
ARMS = ("fit", "erm", "loop", "loop-loss", "trainer", "trainer-loss")
EPOCHS, BATCH, NOISE = 10, 32, "symmetric:0.3"


class Problem:
    """One seed: texts as token ids, given and true labels, the network's first weights."""

    def __init__(self, table: Path, seed: int):
        import pandas as pd

        rows = pd.read_csv(table)
        order = np.random.default_rng(seed).permutation(len(rows))
        cut = len(rows) // 10
        self.seed = seed
        test, train = rows.iloc[order[:cut]], rows.iloc[order[cut:]]
        self.train = from_texts(train["text"].tolist(), train["label"].tolist())
        encoding = self.train.inputs.encoding
        self.test = from_texts(
            test["text"].tolist(), test["label"].tolist(), classes=self.train.classes, encoding=encoding
        )
        self.true, classes = self.train.labels, len(self.train.classes)
        self.given = noise.make_noisy_labels(self.true, NOISE, classes=classes, seed=seed).labels
        self.classes = classes

    def network(self) -> nn.Module:
        return build_model("text", in_shape=self.train.shape, classes=self.classes, seed=self.seed * 1000)

    def items(self) -> list[tuple[torch.Tensor, int]]:
        ids = self.train.inputs
        return [(torch.from_numpy(ids[i].astype(np.int64)), int(y)) for i, y in enumerate(self.given)]

    def accuracy(self, network: nn.Module) -> float:
        network.eval()
        with torch.no_grad():
            found = torch.cat([network(x).argmax(1) for x, _ in data.batches(self.test)])
        return float((found.numpy() == self.test.labels).mean())

    def auroc(self, table: Any) -> float:
        return float(roc_auc_score(self.given != self.true, -table["label_quality"]))


def padded(items: list[tuple[torch.Tensor, int]]) -> tuple[torch.Tensor, torch.Tensor]:
    ids = nn.utils.rnn.pad_sequence([x for x, _ in items], batch_first=True)
    return ids, torch.tensor([y for _, y in items])


def as_dict(items: list[tuple[torch.Tensor, int]]) -> dict[str, torch.Tensor]:
    x, y = padded(items)
    return {"x": x, "labels": y}


class WithLoss(nn.Module):
    """As Trainer wants it."""

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network

    def forward(self, x: torch.Tensor, labels: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
        logits = self.network(x)
        return {"logits": logits} if labels is None else {"loss": F.cross_entropy(logits, labels), "logits": logits}


def run(arm: str, problem: Problem, how: dict[str, Any]) -> dict[str, Any]:
    """One line."""
    if arm == "fit":
        options = {"labels": problem.given, "test_set": problem.test, "epochs": EPOCHS, "batch_size": BATCH}
        result = crust.fit("text", problem.train, seed=problem.seed, **options)
        steps = sum(math.ceil(n / BATCH) for n in result.history["n_selected"])
        used = {name: result.config["experiment"][name] for name in ("learning_rate", "weight_decay", "schedule")}
        return {
            "accuracy": result.accuracy["last"],
            "auroc": problem.auroc(result.audit()),
            "updates": steps,
            "how": used,
        }
    network, items = problem.network(), problem.items()
    method = "erm" if arm == "erm" else "crust"
    length = BATCH * round(how["updates"] / EPOCHS)
    options = {"method": method, "length": length, "batch_size": BATCH, "seed": problem.seed}
    torch.manual_seed(problem.seed)
    optimizer = torch.optim.AdamW(network.parameters(), how["learning_rate"], weight_decay=how["weight_decay"])
    updates = EPOCHS * length // BATCH
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5 * (1 + math.cos(math.pi * step / updates)))
    if arm.startswith("trainer"):
        from crust.integrations.transformers import CrustTrainer
        from transformers import TrainingArguments

        with tempfile.TemporaryDirectory() as folder:
            arguments = TrainingArguments(
                folder, num_train_epochs=EPOCHS, per_device_train_batch_size=BATCH, use_cpu=True, report_to=[],
                save_strategy="no", seed=problem.seed, disable_tqdm=True, max_grad_norm=0.0, logging_strategy="no",
                remove_unused_columns=False,
            )  # fmt: skip
            options |= {"labels": problem.given, "bounded": arm == "trainer-loss"}
            trainer = CrustTrainer(
                WithLoss(network), arguments, train_dataset=items, data_collator=as_dict, crust=options,
                optimizers=(optimizer, schedule),
            )  # fmt: skip
            trainer.train()
            sampler, steps = trainer.sampler, trainer.state.global_step
    else:
        sampler = crust.CoresetSampler(items, problem.given, network, epochs=EPOCHS, collate_fn=padded, **options)
        loss, steps = sampler.loss if arm == "loop-loss" else F.cross_entropy, 0
        for _ in range(EPOCHS):
            network.train()
            for x, y in DataLoader(items, BATCH, sampler=sampler, collate_fn=padded):
                optimizer.zero_grad()
                loss(network(x), y).backward()
                optimizer.step()
                schedule.step()
                steps += 1
    return {"accuracy": problem.accuracy(network), "auroc": problem.auroc(sampler.audit()), "updates": steps}


def lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in FILE.read_text().splitlines()] if FILE.exists() else []


def show() -> str:
    """Mean accuracy and its difference from `crust.fit` on the same seeds."""
    found = lines()
    by = {(line["arm"], line["seed"]): line for line in found}
    out = [f"{'arm':14}{'seeds':>6}{'accuracy':>10}{'minus fit':>11}{'least':>8}{'AUROC':>8}"]
    for arm in ARMS:
        seeds = [seed for one, seed in by if one == arm and ("fit", seed) in by]
        if seeds:
            own = [100 * by[arm, seed]["accuracy"] for seed in seeds]
            apart = [one - 100 * by["fit", seed]["accuracy"] for one, seed in zip(own, seeds, strict=True)]
            auroc = mean(by[arm, seed]["auroc"] for seed in seeds)
            out.append(f"{arm:14}{len(seeds):6}{mean(own):10.2f}{mean(apart):+11.2f}{min(apart):+8.2f}{auroc:8.3f}")
    return "\n".join(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--arms", default=",".join(ARMS))
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    for seed in range(0 if options.show else options.seeds):
        problem = Problem(options.table, seed)
        for arm in options.arms.split(","):
            done = {(line["arm"], line["seed"]): line for line in lines()}
            if (arm, seed) in done:
                continue
            fitted = done.get(("fit", seed), {})
            if arm != "fit" and not fitted:
                parser.error("the arm fit comes first: its updates are those of all")
            line = run(arm, problem, {**fitted, **fitted.get("how", {})})
            FILE.parent.mkdir(exist_ok=True)
            with FILE.open("a") as file:
                file.write(json.dumps({"arm": arm, "seed": seed, "noise": NOISE, "epochs": EPOCHS, **line}) + "\n")
    print(show())


if __name__ == "__main__":
    main()

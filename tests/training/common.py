"""A problem that trains in a blink: three clouds of points, a third of their labels wrong."""

import hashlib
from functools import lru_cache

import numpy as np
import pytest
import torch
from torch import nn

import crust
from crust import fitting
from crust.data import Examples

CLASSES = 3
FAST = {"epochs": 3, "batch_size": 16, "learning_rate": 0.05}


def clouds(n: int = 90, seed: int = 0, noise: float = 0.3):
    """Points, given labels and true labels."""
    rng = np.random.default_rng(seed)
    true = np.arange(n) % CLASSES
    x = (np.eye(CLASSES, 5)[true] * 3 + rng.normal(size=(n, 5))).astype(np.float32)
    given = np.where(rng.random(n) < noise, (true + 1) % CLASSES, true)
    return x, given, true


@lru_cache
def examples(n: int = 90, seed: int = 0) -> Examples:
    x, given, _ = clouds(n, seed)
    return Examples(torch.from_numpy(x), given, list(range(CLASSES)), "features")


def network(norm: bool = False, dropout: float = 0.0) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        middle = [nn.BatchNorm1d(8)] if norm else []
        return nn.Sequential(nn.Linear(5, 8), *middle, nn.ReLU(), nn.Dropout(dropout), nn.Linear(8, CLASSES))


def fit(method: str = "erm", data=None, model=None, **settings):
    """`crust.fit` on the clouds."""
    data = examples() if data is None else data
    if method == "oracle":
        settings.setdefault("true_labels", clouds(len(data))[2])
    return fit_seen(network() if model is None else model, data, method=method, **{**FAST, **settings})


def fit_seen(model, data, **options):
    """`crust.fit`, with the recorder of the run as an attribute of its result: what it holds no more for users."""
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        finish = fitting.Run.finish
        patch.setattr(fitting.Run, "finish", lambda run: (seen.append(run), finish(run))[1])
        result = crust.fit(model, data, **options)
    result.recorder, result.data = seen[0].recorder, seen[0].data
    return result


def weights(result) -> str:
    """All bytes of the last weights, the kept model and the optimizer, as a hash."""
    digest = hashlib.sha256()
    state = result.recorder.state
    trained = result.recorder.context.processes.bare(result.recorder.context.networks[0]).state_dict()
    buffers = [v for saved in state.optimizers for v in _tensors(saved.state_dict()["state"])]
    for tensor in (*trained.values(), *result.model.state_dict().values(), *buffers):
        digest.update(tensor.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _tensors(state):
    return [v for entry in state.values() for v in entry.values() if isinstance(v, torch.Tensor)]


def told(history) -> list[dict]:
    """The history but for its seconds."""
    return [{name: value for name, value in line.items() if name != "seconds"} for line in history]

"""What the tests of methods with one network share."""

import numpy as np
import torch
from tests.training.common import CLASSES, FAST, clouds, examples, fit, network, told, weights

from crust.training.context import Context
from crust.training.distributed import Processes
from crust.training.method import Batch, Known, Output
from crust.training.settings import TrainSettings


def hand_made(epoch: int = 0, n: int = 60, knowledge: dict | None = None, truth: bool = False, **more) -> Context:
    """A context as the loop has it in an epoch."""
    found = Context(
        examples(n),
        CLASSES,
        [network()],
        TrainSettings(**{**FAST, **more}),
        Processes(cpu=True),
        augment=False,
        validation=None,
        true_labels=clouds(n)[2] if truth else None,
    )
    found.epoch = epoch
    found.noise_info = {name: Known(value, "given") for name, value in (knowledge or {}).items()}
    return found


def batch_of(context: Context, size: int = 16, seed: int = 3) -> Batch:
    """Some training examples."""
    index = np.random.default_rng(seed).permutation(context.n)[:size]
    return Batch(context.train.inputs[index], torch.from_numpy(context.labels[index]), index, index)


def logits_for(batch: Batch, seed: int = 4, classes: int = CLASSES) -> list[Output]:
    """Logits drawn at random, for gradients to arrive at."""
    generator = torch.Generator().manual_seed(seed)
    return [Output(torch.randn(len(batch.y), classes, generator=generator).requires_grad_())]


def same_as_erm(method: str, **settings) -> bool:
    """Whether a run ends with the very weights of plain training."""
    return weights(fit(method, **settings)) == weights(fit("erm"))


def resumes(tmp_path, method: str, stops: list[int], **settings) -> None:
    """A run that is stopped after these epochs and resumed ends as if it was not."""
    whole = fit(method, **settings)
    for number, stop in enumerate([*stops, None]):
        parts = fit(method, run_dir=tmp_path / "parts", resume=number > 0, stop_after=stop, **settings)
    assert weights(parts) == weights(whole)
    assert told(parts.history) == told(whole.history)
    assert parts.audit().equals(whole.audit())


def auroc(error_score: np.ndarray, wrong: np.ndarray) -> float:
    """The chance that a wrong label is suspected more than a right one."""
    pairs = error_score[wrong][:, None] - error_score[~wrong][None]
    return float(((pairs > 0) + 0.5 * (pairs == 0)).mean())

"""What the tests of methods with two networks share."""

import numpy as np
import torch
from tests.training.common import CLASSES, FAST, examples, fit, network
from torch import nn

from crust.fitting import maker
from crust.training.context import Context
from crust.training.distributed import Processes
from crust.training.method import Batch, Known, Output
from crust.training.settings import TrainSettings


def other_network(norm: bool = False) -> nn.Module:
    """The second network of a run on the clouds with seed 0."""
    return maker(network(norm), examples(), TrainSettings(**FAST))(1)


def hand_made(epoch: int = 0, n: int = 60, rate: float = 0.2, norm: bool = False, **more) -> tuple[Context, Batch]:
    """A context with two networks, and a batch of 16."""
    found = Context(
        examples(n),
        CLASSES,
        [network(norm), other_network(norm)],
        TrainSettings(**{**FAST, **more}),
        Processes(cpu=True),
        augment=False,
        validation=None,
    )
    found.epoch = epoch
    found.noise_info = {"noise_rate": Known(rate, "given")}
    index = np.random.default_rng(3).permutation(n)[:16]
    return found, Batch(found.train.inputs[index], torch.from_numpy(found.labels[index]), index, index)


def outputs(batch: Batch, seed: int = 4, classes: int = CLASSES) -> list[Output]:
    """Logits of two networks, drawn at random, for gradients to arrive at."""
    generator = torch.Generator().manual_seed(seed)
    return [Output(torch.randn(len(batch.y), classes, generator=generator).requires_grad_()) for _ in range(2)]


def both(result) -> list[nn.Module]:
    """The two trained networks of a run."""
    context = result.recorder.context
    assert len(context.networks) == 2
    return [context.processes.bare(each) for each in context.networks]


def cross_entropy_runs(**settings) -> list[nn.Module]:
    """What plain training makes of the same two networks, each in a run of its own."""
    runs = [fit("erm", model=model, **settings) for model in (network(), other_network())]
    return [run.recorder.context.networks[0] for run in runs]


def same(one: nn.Module, other: nn.Module) -> bool:
    """Bit by bit."""
    return all(value.equal(other.state_dict()[name]) for name, value in one.state_dict().items())

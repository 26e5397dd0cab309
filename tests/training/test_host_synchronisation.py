"""A step of training asks the device for nothing: a GPU would have to finish all it has to do before it answers."""

from collections import Counter

import pytest
import torch
from tests.training.common import clouds, fit
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from crust.methods import METHODS
from crust.training import loop

# Methods that ask of their own accord: whether there is a step at all depends on values (decoupling, l-dmi), examples
# are counted as they come by (co-teaching, incv), a threshold follows the losses (mentornet), Adam counts (t-revision).
ASKING = {"decoupling", "l-dmi", "co-teaching", "incv", "mentornet", "t-revision"}
WAITING = {"_local_scalar_dense", "nonzero", "masked_select"}
TO_THE_HOST = {"cpu", "numpy", "tolist", "item", "__array__"}


class Dispatched(TorchDispatchMode):
    """What reaches the kernels: values that are read, shapes that depend on values, copies between devices."""

    def __init__(self, found: Counter):
        super().__init__()
        self.found = found

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        masks = name == "index" and any(i is not None and i.dtype == torch.bool for i in args[1])
        given = [a.device for a in args if isinstance(a, torch.Tensor)]
        result = func(*args, **(kwargs or {}))
        copies = name in ("_to_copy", "copy_") and len({*given, result.device}) > 1
        if name in WAITING or masks or copies:
            self.found[name] += 1
        return result


class Called(TorchFunctionMode):
    """What is called on a tensor: on the CPU a copy to the host does nothing, and no kernel sees it."""

    def __init__(self, found: Counter):
        super().__init__()
        self.found = found

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if getattr(func, "__name__", "") in TO_THE_HOST:
            self.found[func.__name__] += 1
        return func(*args, **(kwargs or {}))


@pytest.fixture
def asked(monkeypatch):
    """Counts what the steps of all runs from here on ask for."""
    found, steps = Counter(), []

    def watched(function):
        def call(*args):
            steps.append(function.__name__)
            with Dispatched(found), Called(found):
                return function(*args)

        return call

    monkeypatch.setattr(loop, "_step", watched(loop._step))
    monkeypatch.setattr(loop._Totals, "add", watched(loop._Totals.add))
    yield found
    assert {"_step", "add"} <= set(steps)


@pytest.mark.parametrize("name", METHODS)
def test_a_step_asks_the_device_for_nothing(name, asked):
    known = {"noise_rate": 0.3} if "noise_rate" in METHODS[name].Settings.model_fields else {}
    fit(name, true_labels=clouds()[2], clip_norm=1.0, **known)
    assert bool(asked) == (name in ASKING), dict(asked)


def test_asking_is_noticed(asked, monkeypatch):
    true_step = loop._step

    def asks(*args):
        outputs, losses = true_step(*args)
        with Dispatched(asked), Called(asked):
            float(losses[0])
            losses[0].cpu()
            outputs[0].logits[outputs[0].logits > 0].sum()
        return outputs, losses

    monkeypatch.setattr(loop, "_step", asks)
    fit("erm", epochs=1)
    assert asked["_local_scalar_dense"]
    assert asked["cpu"]
    assert asked["index"]

"""`fit` leaves the process as it found it."""

import logging
import os
import platform
import random
import sys
import textwrap
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.forked import run_script
from tests.training.common import clouds, fit, network
from torch import nn

import crust
from crust.methods.erm import Erm


def in_a_process_of_its_own(script: str) -> str:
    done = run_script(script)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("method", ["crust", "co-teaching"])
def test_random_numbers_threads_logging_warnings_and_environment_stay(method):
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002 - the user's own state is what is looked at
    random.seed(3)

    def state():
        root = logging.getLogger()
        return {
            "torch": torch.get_rng_state().tolist(),
            "numpy": np.random.get_state()[1].tolist(),  # noqa: NPY002
            "python": random.getstate(),
            "threads": (torch.get_num_threads(), torch.get_num_interop_threads(), threading.active_count()),
            "logging": (root.level, list(root.handlers), logging.getLogger("crust").level, root.manager.disable),
            "warnings": list(warnings.filters),
            "environment": dict(os.environ),
            "folder": Path.cwd(),
            "modes": (torch.is_grad_enabled(), torch.get_default_dtype(), torch.are_deterministic_algorithms_enabled(),
                      torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic),
            "signals": sys.excepthook,
        }  # fmt: skip

    fit(method)  # what is imported at the first run may read the environment
    before = state()
    fit(method)
    assert state() == before


ACCELERATE = """
    from accelerate import Accelerator
    import torch
    from tests.training.common import fit, network

    accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=4, cpu=True)
    model = accelerator.prepare(network())
    result = fit("crust")
    assert accelerator.mixed_precision == "bf16", accelerator.mixed_precision
    assert accelerator.gradient_accumulation_steps == 4
    with accelerator.autocast():
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16
    synchronised = []
    for _ in range(8):
        with accelerator.accumulate(model):
            synchronised.append(accelerator.sync_gradients)
    assert synchronised == [False, False, False, True] * 2, synchronised
    assert result.model(torch.ones(1, 5)).dtype == torch.float32

    from crust.training.distributed import Processes
    again = fit("erm", mixed_precision="bf16")
    assert accelerator.mixed_precision == "bf16"
"""

NO_ACCELERATE = """
    from tests.training.common import fit
    fit("crust", mixed_precision="bf16")
    from accelerate import Accelerator
    accelerator = Accelerator(gradient_accumulation_steps=2, cpu=True)  # would be refused if ours had stayed
    assert accelerator.mixed_precision == "no"
    assert accelerator.gradient_accumulation_steps == 2
"""


@pytest.mark.parametrize("script", [ACCELERATE, NO_ACCELERATE], ids=["before", "after"])
def test_the_users_accelerator_stays_as_it_was(script):
    in_a_process_of_its_own(textwrap.dedent(script))


def test_accelerates_state_is_put_back_when_a_run_fails():
    from accelerate.state import AcceleratorState, GradientState

    before = [dict(kind._shared_state) for kind in (AcceleratorState, GradientState)]

    class Fails(Erm):
        name = "fails"

        def begin_epoch(self, context):
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        fit(Fails)
    assert [dict(kind._shared_state) for kind in (AcceleratorState, GradientState)] == before


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told how to keep memory")
@pytest.mark.parametrize(
    ("told", "mapped"), [("", True), ("from crust._util.malloc import keep_freed; keep_freed()", False)]
)
def test_malloc_is_left_alone(told, mapped):
    script = f"""
import ctypes
from tests.forked import run_script
from tests.training.common import fit
fit("crust")
{told}
libc = ctypes.CDLL("libc.so.6")
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
size = 100 * 2**20  # above what glibc ever keeps by itself
start = libc.malloc(size)
print(any(int(line.split("-")[0], 16) <= start < int(line.split()[0].split("-")[1], 16) and "[heap]" not in line
          for line in open("/proc/self/maps")))
"""
    assert in_a_process_of_its_own(script).strip() == str(mapped)


def test_the_users_model_and_data_stay_as_they_were():
    x, given, _ = clouds()
    model = network(norm=True)
    model.eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    arrays = (x.copy(), given.copy())
    result = fit("crust", data=(x, given), model=model)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not model.training
    assert not result.model.training
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert np.array_equal(x, arrays[0])
    assert np.array_equal(given, arrays[1])


@pytest.mark.parametrize("wrap", [nn.DataParallel, torch.compile], ids=["DataParallel", "compile"])
def test_a_wrapped_model_is_unwrapped_at_the_door(wrap):
    plain, wrapped = fit("crust"), fit("crust", model=wrap(network()))
    assert type(wrapped.model) is nn.Sequential
    assert wrapped.model.state_dict().keys() == plain.model.state_dict().keys()
    assert all(torch.equal(value, plain.model.state_dict()[name]) for name, value in wrapped.model.state_dict().items())


def test_a_method_is_a_name_a_class_or_an_instance():
    class Half(Erm):
        name = "half"

        def begin_epoch(self, context):
            return crust.training.method.Selection(np.arange(context.n // 2))

    by_class, by_instance = fit(Half), fit(Half(Half.Settings()))
    assert by_class.history["n_selected"] == by_instance.history["n_selected"] == [40] * 3
    assert all(
        torch.equal(a, b) for a, b in zip(by_class.model.parameters(), by_instance.model.parameters(), strict=True)
    )
    assert by_class.config["method"] == "half"
    with pytest.raises(crust.errors.InputError, match="method"):
        fit(nn.Linear)

"""Freed memory is used again: counted in page faults, not in seconds."""

import platform
import subprocess
import sys

import pytest

COUNT = """
import resource, sys
import torch
from crust.models import build_model
from crust._util.malloc import keep_freed

torch.set_num_threads(1)
if sys.argv[1] == "keep":
    assert keep_freed()
model, x = build_model("resnet8", in_shape=(3, 32, 32), classes=10), torch.randn(128, 3, 32, 32)

def steps():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(3):
        model(x).sum().backward()
        model.zero_grad(set_to_none=True)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

steps()
print(steps())
"""


def faults(how: str) -> int:
    done = subprocess.run([sys.executable, "-c", COUNT, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc gives memory back so eagerly")
def test_steps_of_training_use_the_same_memory_again():
    assert faults("keep") < faults("leave") / 2

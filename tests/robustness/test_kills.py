"""Commands that are killed at any call that writes, renames or syncs lose nothing: see fault_injector.py."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
pytestmark = [
    pytest.mark.slow,  # minutes each: a child for every call
    pytest.mark.skipif(
        platform.libc_ver()[0] != "glibc" or shutil.which("gcc") is None, reason="calls are counted below glibc, by C"
    ),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    made = tmp_path_factory.mktemp("kill") / "kill_at.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", HERE / "kill_at.c", "-o", made, "-ldl"], check=True)
    return made


@pytest.mark.parametrize(
    "scenario", ["train-1", "train-3", "train-twice", "apply-table", "apply-moves", "review", "reproduce"]
)
def test_killed_at_every_call_it_goes_on_to_the_same_end(scenario, library, tmp_path):
    environment = {**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": f"{HERE.parents[1]}"}
    done = subprocess.run(
        [sys.executable, HERE / "fault_injector.py", scenario, tmp_path],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout.split()[-1]) >= 5  # kills

"""One writer a folder, whose hold ends with it; signals that end a command save, and say how to go on."""

import os
import signal
import subprocess
import sys
import time

import pytest
from tests.refusals import refused

from crust.runs.folder import RunFolder


def held(folder):
    """A process that holds the folder until it is killed."""
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        run = RunFolder(folder)  # the lock goes with it
        run.claim()
        os.write(tell, b"x")
        time.sleep(600)
        os._exit(0)
    os.read(told, 1)
    return child


def test_the_second_writer_gets_a_sentence_and_the_folder_is_free_after_a_kill(tmp_path):
    child = held(tmp_path / "run")
    try:
        for _ in range(3):
            with refused("folder-in-use"):
                RunFolder(tmp_path / "run").claim()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with RunFolder(tmp_path / "run").claimed(), refused("folder-in-use"), RunFolder(tmp_path / "run").claimed():
        pass


def test_drafts_of_killed_processes_go_with_the_next_claim(tmp_path):
    run = RunFolder(tmp_path)
    draft = tmp_path / ".config.yaml.0123abcd.tmp"
    draft.write_text("half")
    with run.claimed():
        assert not draft.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("numbers", "code"),
    [
        ([signal.SIGTERM], 143),
        ([signal.SIGHUP], 129),
        ([signal.SIGINT], 130),
        ([signal.SIGINT, signal.SIGINT], 130),
    ],
)
def test_signals_save_and_say_how_to_go_on(tmp_path, numbers, code):
    words = "train digits --model mlp --method erm --epochs 500 --limit 200 --batch-size 32 -q -o run"
    process = subprocess.Popen(
        [sys.executable, "-m", "crust", *words.split()], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    for _ in range(3000):
        if (tmp_path / "run/checkpoint/000002").exists():
            break
        time.sleep(0.1)
    for number in numbers:
        process.send_signal(number)
        time.sleep(0.003)
    said = process.communicate(timeout=120)[1]
    assert process.returncode == code, said
    assert len(said.splitlines()) == 1, said
    assert "go on with: crust train --resume -o run" in said

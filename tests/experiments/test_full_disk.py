"""A full disk is known by what it says, also through the libraries that write, and not by how much is free."""

from __future__ import annotations

import errno
import io
import os
import shutil
from collections import namedtuple

import numpy as np
import pytest
import torch
from tests.experiments.common import tiny
from tests.refusals import refused

from crust._util.atomic_write import write_atomic
from crust.experiments import LocalGrid, Work, run_grid
from crust.experiments import task as one_run
from crust.experiments.task import disk_is_full, failure


class Full(io.RawIOBase):
    """A file on a disk without room."""

    def writable(self):
        return True

    def write(self, _):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def by_python():
    Full().write(b"x")


def by_torch():
    torch.save(torch.zeros(100_000), Full())


def by_pyarrow():
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"a": np.arange(100_000)}), Full())


def in_words():
    raise RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)")


def by_ours():
    def write(file):
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    write_atomic("note", write)


def go(spec, folder):
    told = []
    with LocalGrid() as engine:
        run_grid([spec], engine, Work(folder / "r.jsonl", folder / "runs"), told.append)
    return [event.kind for event in told if event.kind != "epoch"]


@pytest.mark.parametrize("write", [by_python, by_torch, by_pyarrow, in_words, by_ours])
def test_it_stops_the_grid_and_is_no_failure_of_the_run(tmp_path, monkeypatch, write):
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(one_run, "train_spec", lambda *_, **__: write())
        with refused("disk-full"):
            go(tiny(), tmp_path)
    assert failure(tiny(), tmp_path / "runs") is None
    assert go(tiny(), tmp_path)[-1] == "ended"


def test_another_error_is_one_of_the_run_however_little_is_free(tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1, 1, 0))
    bad = tiny(labels="human:nobody")
    assert go(bad, tmp_path) == ["begun", "failed"]
    assert "people's labels" in failure(bad, tmp_path / "runs")


def test_what_led_to_an_error_counts():
    error = RuntimeError("unexpected pos 64 vs 0")
    error.__context__ = OSError(errno.ENOSPC, "No space left on device")
    assert disk_is_full(error)
    assert disk_is_full(RuntimeError("write failed: No space left on device (28)"))
    assert not disk_is_full(OSError(errno.EACCES, "Permission denied"))
    error.__context__ = error.__cause__ = None
    error.__cause__ = ValueError("no")
    error.__cause__.__cause__ = error  # a circle
    assert not disk_is_full(error)

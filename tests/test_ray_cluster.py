"""A Ray cluster that asks for a token: it refuses, which is not the same as not being there."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.refusals import refused

from crust._util import ray_cluster
from crust.errors import InputError

SENTENCE = r"the Ray cluster at 127\.0\.0\.1:1 refuses us, or is none \(.*\): .*set RAY_AUTH_MODE and RAY_AUTH_TOKEN"


class RayError(Exception):
    """As Ray's own."""


@pytest.fixture
def fake(monkeypatch):
    """A Ray whose init raises."""

    def make(error, listens):
        def init(**_):
            raise error

        ray = SimpleNamespace(is_initialized=lambda: False, init=init, exceptions=SimpleNamespace(RayError=RayError))
        monkeypatch.setattr(ray_cluster, "require", lambda *_, **__: ray)
        monkeypatch.setattr(ray_cluster, "_reach", lambda _: listens)

    return make


@pytest.mark.parametrize("error", [ConnectionError("Failed to connect"), RayError("AuthenticationError: no token")])
def test_where_somebody_listens_a_token_may_be_missing(fake, error):
    fake(error, listens=True)
    with pytest.raises(InputError, match=SENTENCE):
        ray_cluster.connect("127.0.0.1:1")


def test_others_are_not_there(fake):
    fake(ConnectionError("Could not find any running Ray"), listens=False)
    with refused("no-cluster"):
        ray_cluster.connect("auto")


@pytest.mark.slow
@pytest.mark.parametrize("more", [{}, {"RAY_AUTH_MODE": "token"}], ids=["knows of no token", "has none"])
def test_a_real_one(tmp_path, more):
    pytest.importorskip("ray")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # A Ray that another test has started in this process leaves its own words about tokens in the environment.
    plain = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")}
    ours = {**plain, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path.cwd())]), "HOME": str(tmp_path), **more}
    theirs = {**ours, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    words = f"start --head --block --port {port} --num-cpus 1 --include-dashboard=false --node-ip-address 127.0.0.1"
    start = [str(Path(sys.executable).with_name("ray")), *words.split(), "--temp-dir", f"/tmp/ray-{port}"]
    with subprocess.Popen(start, env=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as head:
        for line in head.stdout:
            if "Ray runtime started" in line:
                break
        try:
            ask = ["reproduce", "figure1", "--scale", "smoke", "--engine", "ray", "--address", f"127.0.0.1:{port}"]
            done = subprocess.run(
                [sys.executable, "-m", "crust", *ask], env=ours, cwd=tmp_path, capture_output=True, text=True
            )
        finally:
            head.terminate()
            head.wait()
            shutil.rmtree(f"/tmp/ray-{port}", ignore_errors=True)
    assert done.returncode == 2
    assert "refuses us" in done.stderr.splitlines()[-1]

"""Selection with real workers of Ray on this machine."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from tests.selection.common import proxies
from tests.selection.test_npy_shards import assert_same, write

import crust
from crust.errors import CrustError, InputError, MissingPackage
from crust.selection import Ray, greedi, greedi_files
from crust.selection.executors import RETRIES
from crust.selection.npy_shards import find_files

pytest.importorskip("ray")


def test_an_address_where_nobody_listens(tmp_path):
    with pytest.raises(InputError, match=r"there is no Ray cluster at 127\.0\.0\.1:1 \(.*refused.*\): start one"):
        crust.select(write(tmp_path / "x", proxies(50, 2)), 3, algorithm="greedi", engine=Ray("127.0.0.1:1"))


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingPackage, match=r"ray is not installed: run pip install 'crust-learn\[ray\]'"):
        crust.select(proxies(50, 2), 3, algorithm="greedi", engine="ray")


@pytest.fixture(scope="module")
def engine():
    with Ray("local", cpus=2) as engine:
        yield engine


@pytest.fixture
def small(monkeypatch):
    """Many shards and many spans for few points."""
    monkeypatch.setattr(greedi, "SHARD_POINTS", 300)
    monkeypatch.setattr(greedi_files, "SPAN_ROWS", 400)


@pytest.mark.usefixtures("small")
def test_ray_finds_what_one_process_finds(engine, tmp_path):
    x = proxies(1500, 8)
    folder = write(tmp_path / "x", x, [700, 500, 300])
    groups = np.arange(1500) % 3
    options = {"algorithm": "greedi", "seed": 2}
    assert_same(crust.select(x, 30, engine=engine, **options), crust.select(x, 30, **options))
    found = crust.select(folder, 30, groups=groups, engine=engine, **options)
    assert_same(found, crust.select(folder, 30, groups=groups, **options))
    assert crust.select(folder, 30, engine=engine, **options).objective <= 1.03 * crust.select(x, 30).objective
    bad = x.copy()
    bad[[3, 1400]] = np.nan  # an error of a worker comes back as the sentence it is
    with pytest.raises(InputError, match=r"works with the Ray cluster at .* already: leave the address out"):
        list(Ray("127.0.0.1:1").map(abs, [1]))
    with pytest.raises(InputError, match=r"part-000\.npy has 1 row with NaN or infinite values \(row 3\)"):
        crust.select(write(tmp_path / "bad", bad, [700, 800]), 30, engine=engine, **options)


HEARD = """
import psutil
from crust.selection import Ray
with Ray(cpus=1) as engine:
    assert list(engine.map(abs, [-1])) == [1]
    here = psutil.Process()
    for process in (here, *here.children(recursive=True)):
        for socket in process.net_connections():
            if socket.status == psutil.CONN_LISTEN:
                print("heard", socket.laddr.ip.removeprefix("::ffff:"))
"""


def test_a_ray_that_is_started_here_is_heard_here_only():
    # In a process of its own: how Ray listens is settled when it is imported.
    env = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    env["PYTHONPATH"] = os.pathsep.join(sys.path)
    words = [sys.executable, "-W", "ignore", "-c", HEARD]
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=True)
    assert {line.split()[1] for line in done.stdout.splitlines() if line.startswith("heard")} == {"127.0.0.1"}


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("metric", ["sqeuclidean", "cosine"])
def test_memory_maps_are_read_by_the_workers(engine, tmp_path, metric):
    x = proxies(2000, 30).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    options = {"algorithm": "greedi", "metric": metric}
    found = crust.select(mapped, 0.02, engine=engine, **options)
    assert_same(found, crust.select(x, 0.02, **options), first_gain=False)
    assert found.info["files"] == [[str(tmp_path / "x.npy"), 2000]]


class Once:
    """A function whose first call, in whatever worker, does not return."""

    def __init__(self, function, marker):
        self.function, self.marker = function, marker

    def __call__(self, item):
        if self.function.__name__ in ("solve_array_shard", "solve_file_shard"):
            try:
                os.close(os.open(self.marker, os.O_CREAT | os.O_EXCL))
                time.sleep(0.2)
                os.kill(os.getpid(), signal.SIGKILL)
            except FileExistsError:
                pass
        return self.function(item)


class Deadly(Ray):
    """One worker is killed in the middle of its shard."""

    def __init__(self, marker):
        super().__init__()
        self.marker = str(marker)

    def map(self, function, items):
        return super().map(Once(function, self.marker), items)


@pytest.mark.slow
@pytest.mark.usefixtures("small", "engine")
def test_a_worker_that_is_killed_changes_nothing(tmp_path):
    x = proxies(1500, 8)
    folder = write(tmp_path / "x", x, [800, 700])
    for features in (x, folder):
        marker = tmp_path / f"killed {type(features).__name__}"
        found = crust.select(features, 20, algorithm="greedi", engine=Deadly(marker))
        assert marker.exists()
        assert_same(found, crust.select(features, 20, algorithm="greedi"))


def _die(item):
    os.kill(os.getpid(), signal.SIGKILL)


def _fail(item):
    return 1 / item


@pytest.mark.slow
def test_workers_that_fail_again_and_again_get_a_sentence(engine):
    with pytest.raises(CrustError, match=f"a worker of Ray died {RETRIES + 1} times on one shard"):
        list(engine.map(_die, [1]))
    with pytest.raises(CrustError, match="a worker of Ray failed: ZeroDivisionError: division by zero") as caught:
        list(engine.map(_fail, [1, 0, 2]))
    assert "\n" not in str(caught.value)
    assert list(engine.map(_fail, [4])) == [0.25]


@dataclass
class At:
    nodes: tuple


def _where(item):
    import ray

    return ray.get_runtime_context().get_node_id()


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_work_goes_to_the_machines_that_have_the_file(engine, tmp_path):
    """Two machines: those of a cluster that Ray pretends to have here, each with processes of its own."""
    import ray
    from ray.cluster_utils import Cluster

    engine.close()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        with Ray(cluster.address) as two:
            nodes = [node for node, _ in two.look(_where, None)]
            assert len(set(nodes)) == 2
            assert [found for _, found in two.look(_where, None)] == nodes
            for node in nodes:
                assert list(two.map(_where, [At((node,))] * 3)) == [node] * 3
            assert set(two.map(_where, [At(tuple(nodes))] * 4)) == set(nodes)
            folder = write(tmp_path / "x", proxies(1200, 6), [500, 700])
            found = find_files(folder, two).files
            assert [file.nodes for file in found] == [(), ()]  # both machines have them
            expected = crust.select(folder, 15, algorithm="greedi")
            assert_same(crust.select(folder, 15, algorithm="greedi", engine=two), expected)
        assert not ray.is_initialized()  # the cluster goes on without us
        with Ray(cluster.address) as again:
            assert len(again.look(_where, None)) == 2
    finally:
        cluster.shutdown()


def test_nothing_is_copied_for_a_file(tmp_path):
    """The items that go out are paths and positions."""
    import pickle

    folder = write(tmp_path / "x", proxies(500, 300))
    sizes = []

    class Weighing:
        def map(self, function, items):
            for item in items:
                sizes.append(len(pickle.dumps(item)))
                yield function(item)

    crust.select(np.load(Path(folder) / "part-000.npy", mmap_mode="r"), 2, algorithm="greedi", engine=Weighing())
    assert max(sizes) < 500 * 8 + 300 * 8 * 4 + 4000 < 500 * 300 * 8

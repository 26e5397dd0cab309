"""Two real processes on the CPU do what one does."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from crust.training.distributed import Processes

ROOT = Path(__file__).parents[2]

# One file for any number of processes: what every process has seen and trained on goes into a file of its own.
SCRIPT = """
    import json, sys
    from pathlib import Path
    import numpy as np, torch
    from crust.data.batches import split_batches
    from crust.methods import METHODS
    from crust.training import loop
    from crust.training.context import Context
    from crust.training.method import Selection
    from crust.training.distributed import Processes
    from crust.training.settings import TrainSettings
    from tests.training.common import CLASSES, examples, fit_seen, network

    folder = Path(sys.argv[1])
    train = examples(83)
    processes = Processes(cpu=True)
    settings = TrainSettings(epochs=2, batch_size=8, eval_batch_size=32)
    model = processes.prepare(network(norm=True))
    context = Context(train, CLASSES, [model], settings, processes, augment=False, validation=None)
    seen = {kind: context.evaluate_train_set(kind) for kind in ("logits", "features")}
    kinds = [
        ("crust", {"fraction": 0.5, "select_after": 0}),
        ("crust-paper", {"fraction": 0.3}),
        ("small-loss", {"select_after": 0}),
    ]
    chosen = {}
    for name, own in kinds:
        selection = METHODS[name](METHODS[name].Settings(**own)).begin_epoch(context)
        weights = None if selection.weights is None else selection.weights.tolist()
        chosen[name] = [selection.indices.tolist(), weights]
    dealt = {}
    for rows in (1, 8, 16, 17, 24, 33, 41, 83):
        rounds = split_batches(np.arange(rows), 8)
        batches = loop._batches(context, Selection(np.arange(83)[::-1][:rows].copy()), rounds)
        dealt[rows] = [None if batch is None else batch.index.tolist() for batch in batches]

    result = fit_seen(network(norm=True, dropout=0.1), train, method="crust", epochs=3, batch_size=8,
                     learning_rate=0.05, run_dir=folder / "run")
    trained = result.recorder.context
    state = processes.bare(trained.networks[0]).state_dict()
    np.savez(folder / f"rank{processes.rank}.npz",
             **{f"seen.{kind}.{name}": value for kind, found in seen.items() for name, value in vars(found).items()
                if value is not None},
             **{f"weights.{name}": value.numpy() for name, value in state.items()})
    told = {"count": processes.count, "chosen": chosen, "dealt": dealt, "history": result.history.lines}
    (folder / f"rank{processes.rank}.json").write_text(json.dumps(told))
"""


def launched(folder: Path, count: int):
    """The arrays and the words of every process."""
    folder.mkdir()
    script = folder / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    environment = {
        name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    }
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment |= {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    start = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"] if count > 1 else []
    done = subprocess.run(
        [sys.executable, *start, str(script), str(folder)], env=environment, cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    arrays = [dict(np.load(folder / f"rank{rank}.npz")) for rank in range(count)]
    return arrays, [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(count)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("processes")
    return launched(folder / "one", 1), launched(folder / "two", 2)


@pytest.mark.slow
def test_there_were_two(runs):
    (_, one), (_, two) = runs
    assert [words["count"] for words in one] == [1]
    assert [words["count"] for words in two] == [2, 2]


@pytest.mark.slow
def test_proxies_of_two_processes_are_those_of_one(runs):
    (one, _), (two, _) = runs
    names = [name for name in one[0] if name.startswith("seen.")]
    assert len(names) == 14
    for name in names:
        assert np.array_equal(two[0][name], two[1][name])  # everyone has everything
        assert one[0][name].shape == two[0][name].shape
        assert two[0][name] == pytest.approx(one[0][name], abs=1e-6)


@pytest.mark.slow
def test_the_coreset_of_two_processes_is_that_of_one(runs):
    (_, one), (_, two) = runs
    for words in two:
        assert words["chosen"] == one[0]["chosen"]


@pytest.mark.slow
def test_whole_batches_are_dealt_out_and_none_twice(runs):
    (_, one), (_, two) = runs
    for rows, alone in one[0]["dealt"].items():
        mine = [words["dealt"][rows] for words in two]
        assert len(mine[0]) == len(mine[1])  # the same number of steps, else one would wait for ever
        together = [batch for both in zip(*mine, strict=True) for batch in both if batch is not None]
        assert together == alone
        assert sorted(row for batch in together for row in batch) == list(range(83))[83 - int(rows) :]


@pytest.mark.slow
def test_two_processes_end_with_the_same_network_and_history(runs):
    _, (arrays, words) = runs
    names = [name for name in arrays[0] if name.startswith("weights.")]
    assert any("running_mean" in name for name in names)
    for name in names:
        assert np.array_equal(arrays[0][name], arrays[1][name]), name
    lines = [[{k: v for k, v in line.items() if k != "seconds"} for line in told["history"]] for told in words]
    for a, b in zip(*lines, strict=True):
        assert {k: v for k, v in a.items() if k != "passes"} == {k: v for k, v in b.items() if k != "passes"}


# ------------------------------------------------------------ alone


def test_alone_all_work_is_ours():
    alone = Processes(cpu=True)
    assert (alone.rank, alone.count, alone.first) == (0, 1, True)
    assert list(alone.deal([1, 2, 3])) == [1, 2, 3]
    assert alone.slice(4).tolist() == [0, 1, 2, 3]
    assert alone.gather("x") == ["x"]


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("n", [0, 1, 4, 7, 10])
def test_work_is_shared_out_whole(count, n):
    everyone = []
    for rank in range(count):
        process = Processes(cpu=True)
        process.rank, process.count = rank, count
        everyone.append(process)
    assert np.concatenate([process.slice(n) for process in everyone]).tolist() == list(range(n))
    dealt = [list(process.deal(range(n))) for process in everyone]
    assert len({len(mine) for mine in dealt}) == 1
    assert sorted(item for mine in dealt for item in mine if item is not None) == list(range(n))
    for number in range(len(dealt[0])):
        assert everyone[0].active(range(n), number) == sum(mine[number] is not None for mine in dealt)

"""Two and four real processes, each with what it has seen of its own examples, choose what one process does."""

import json
import os
import socket
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.forked import CONTEXT
from tests.training.common import CLASSES, examples, fit_seen, network, told

from crust.methods import METHODS
from crust.selection import centrality, select
from crust.selection.dealt_groups import dealt_centrality, dealt_select
from crust.selection.sampled_centrality import sampled_means
from crust.selection.together import lower_quantile
from crust.training import checkpoint
from crust.training.context import Context
from crust.training.coreset_rules import SizedCoreset, choose
from crust.training.distributed import Processes
from crust.training.noise_estimation import held_out_noise
from crust.training.settings import TrainSettings

COUNTS = [1, 2, 4]
N = 1201
METHODS_OF = {
    "crust": {"select_after": 1},
    "crust-half": {"select_after": 0},
    "crust-paper": {"fraction": 0.3},
    "small-loss": {},
}
FIT = {"epochs": 4, "batch_size": 8, "learning_rate": 0.05, "select_after": 1, "select_every": 1, "progress": False}


def guesses(n: int, classes: int, seed: int = 0):
    """Probabilities as a network has them that knows something, and given labels of which a third is wrong."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, classes, n)
    logits = 3 * np.eye(classes)[true] + rng.normal(size=(n, classes))
    p = np.exp(logits)
    given = np.where(rng.random(n) < 0.3, rng.integers(0, classes, n), true)
    return (p / p.sum(axis=1, keepdims=True)).astype(np.float32), given


class Seen:
    """What a pass says, of our examples."""

    def __init__(self, p, labels):
        self.probabilities, self.predictions = p, p.argmax(axis=1)
        self.losses = -np.log(p[np.arange(len(p)), labels])


def rules(processes) -> dict[str, np.ndarray]:
    """All answers that go by rows of several processes."""
    n, found = N, {}
    for classes in (2, 10):
        p, labels = guesses(n, classes)
        mine = processes.slice(n)
        proxies = p - np.eye(classes, dtype=np.float32)[labels]
        groups = p.argmax(axis=1)
        groups[:30] = classes  # small beside the others
        before = processes.sent
        found[f"far{classes}"] = dealt_centrality(proxies[mine], groups, processes, sample=16, threads=1)
        found[f"dealt{classes}"] = dealt_centrality(proxies[mine], groups, processes, sample=1024, threads=1)
        found[f"sent{classes}"] = np.array([processes.sent - before])
        index = np.flatnonzero(groups[mine] == 0)
        for metric in ("sqeuclidean", "cosine"):
            means, _ = sampled_means(proxies[mine], index, metric, 16, together=processes)
            found[f"{metric}{classes}"] = processes.join(means)
        for algorithm in ("greedy", "central"):
            for share in (0.3, 0.002):
                coreset = dealt_select(proxies[mine], share, groups, processes, algorithm=algorithm, threads=1)
                for name, value in coreset.arrays().items():
                    if isinstance(value, np.ndarray):
                        found[f"{algorithm}{share}{classes}.{name}"] = value
        noise = held_out_noise(p[mine], labels, processes)
        found[f"noise{classes}"] = np.array([noise.surest, noise.unlikely, noise.symmetric, noise.disagreement])
        found[f"quantile{classes}"] = np.array([lower_quantile(p[mine], q, processes) for q in (0, 0.2, 0.77, 1)])
        for name, selection in (("central", "central"), ("loss", "small-loss")):
            sized = SizedCoreset(n, 0.5, processes)
            for seed in range(3):
                p, _ = guesses(n, classes, seed)
                sized.look(Seen(p[mine], labels[mine]), labels, None, None, None)
                sized.memorised = True
                sized.choose(labels, grouping="prediction", selection=selection)
                found[f"{name}{classes}.{seed}"] = sized.member.copy()
        for budget in ("label", "group"):
            how = {"grouping": "label", "selection": "central", "seed": 0, "budget": budget, "together": processes}
            coreset = choose(proxies[mine], groups, None, labels, 0.4, **how)
            found[f"chosen.{budget}{classes}"] = coreset.indices
    return found


def process(rank: int, count: int, port: int, folder: str) -> None:
    sys.stderr = Path(folder, f"stderr{rank}").open("w")  # noqa: SIM115
    os.environ |= {"GLOO_SOCKET_IFNAME": "lo", "ACCELERATE_USE_CPU": "true"}
    if count > 1:
        os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count)}
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    processes = Processes(cpu=True)
    assert processes.count == count
    found = rules(processes)
    data = examples(83)
    settings = TrainSettings(epochs=2, batch_size=8, eval_batch_size=32)
    context = Context(data, CLASSES, [network()], settings, processes, augment=False, validation=None)
    for name, own in METHODS_OF.items():
        method = METHODS[name](METHODS[name].Settings(**own))
        method.begin_run(context)
        context.epoch = 1
        found[f"selected.{name}"] = method.begin_epoch(context).indices
    ours, everyone = context.evaluate_our_part(), context.evaluate_train_set()
    assert np.array_equal(ours.index, processes.slice(83))
    assert np.array_equal(everyone.probabilities[ours.index], ours.probabilities)
    found["losses"] = everyone.losses

    runs = {}
    for name, method in (("whole", "crust"), ("half", "crust-half")):
        result = fit_seen(network(), data, method=method, run_dir=Path(folder, name), **FIT)
        found[f"{name}.audit"] = result.audit()["label_quality"].to_numpy()
        found[f"{name}.seen"] = result.recorder.watch.probabilities
        runs[name] = told(result.history)
    stopped = {"method": "crust", "run_dir": Path(folder, "stopped"), **FIT}
    fit_seen(network(), data, **stopped, stop_after=3)
    processes.wait()
    saved = checkpoint.newest(Path(folder, "stopped", "checkpoint"))
    found["saved.average"], found["saved.seen"] = saved["method"]["sized"]["average"], saved["watch"]["probabilities"]
    processes.wait()  # before one of them writes again
    runs["again"] = told(fit_seen(network(), data, **stopped, resume=True).history)
    processes.wait()
    np.savez(Path(folder, f"found{rank}.npz"), **found)
    Path(folder, f"runs{rank}.json").write_text(json.dumps(runs))
    if count > 1:
        torch.distributed.destroy_process_group()


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What each process has found, for one, two and four of them."""
    found = {}
    for count in COUNTS:
        folder = tmp_path_factory.mktemp(f"processes{count}")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        crew = [CONTEXT.Process(target=process, args=(rank, count, port, str(folder))) for rank in range(count)]
        for one in crew:
            one.start()
        for one in crew:
            one.join(timeout=300)
        errors = "".join((folder / f"stderr{rank}").read_text()[-2000:] for rank in range(count))
        assert [one.exitcode for one in crew] == [0] * count, errors
        arrays = [dict(np.load(folder / f"found{rank}.npz")) for rank in range(count)]
        found[count] = arrays, [json.loads((folder / f"runs{rank}.json").read_text()) for rank in range(count)]
    return found


def test_one_process_finds_what_the_plain_functions_do(answers):
    alone = answers[1][0][0]
    for classes in (2, 10):
        p, labels = guesses(N, classes)
        proxies, groups = p - np.eye(classes, dtype=np.float32)[labels], p.argmax(axis=1)
        groups[:30] = classes
        for name, sample in (("far", 16), ("dealt", 1024)):
            assert np.array_equal(alone[f"{name}{classes}"], centrality(proxies, groups, sample=sample))
        for algorithm in ("greedy", "central"):
            for share in (0.3, 0.002):
                coreset = select(proxies, share, groups=groups, algorithm=algorithm)
                for name, value in coreset.arrays().items():
                    if isinstance(value, np.ndarray):
                        assert np.array_equal(alone[f"{algorithm}{share}{classes}.{name}"], value), name


@pytest.mark.parametrize("count", COUNTS[1:])
def test_several_processes_choose_what_one_does_to_the_last_bit(answers, count):
    alone = answers[1][0][0]
    own = ("sent", "losses", "whole", "half", "saved")
    names = [name for name in alone if not name.startswith(own)]
    assert len(names) > 60
    for found in answers[count][0]:
        for name in names:
            assert found[name].tobytes() == alone[name].tobytes(), name
        assert found["losses"] == pytest.approx(alone["losses"], abs=1e-6)


@pytest.mark.parametrize("count", COUNTS[1:])
def test_nobody_gets_everything_while_it_is_selected(answers, count):
    p, _ = guesses(N, 10)
    everything = p.nbytes * (count - 1) // count  # that each would send to all others
    for found in answers[count][0]:
        assert 0 < found["sent10"][0] < 0.8 * everything * count


@pytest.mark.parametrize("count", COUNTS)
def test_all_processes_of_a_run_tell_the_same_and_save_the_whole(answers, count):
    arrays, words = answers[count]
    for found, told_by in zip(arrays, words, strict=True):
        assert told_by == words[0]
        assert told_by["again"] == told_by["whole"]  # though it was stopped
        for name in ("whole.audit", "half.audit", "whole.seen", "saved.average"):
            assert np.array_equal(found[name], arrays[0][name])
        assert len(found["whole.audit"]) == 83
        assert len(found["saved.average"]) == len(found["saved.seen"]) == 75  # the others are held out
        assert np.isfinite(found["whole.audit"]).all()
        assert (found["saved.seen"].sum(axis=1) > 0).all()

"""One suite for every method there is: it learns, repeats by seed, resumes, and copes with what data may be like."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.training.common import clouds, examples, fit, fit_seen, network, told

import crust
from crust import data, noise
from crust.data import Examples
from crust.errors import InputError
from crust.methods import METHODS

ROOT = Path(__file__).parents[2]
# What makes a method cheap enough for many small runs, or fit for them at all; everything else is its default.
CHEAP = {
    "crust-released": {"select_after": 1},
    "d2l": {"examples": 40, "group": 20, "neighbours": 5},
    "incv": {"sub_epochs": 1},
    "l-dmi": {"dmi_batch_size": 30},
    "mentornet": {"mentor_steps": 50},
}
# What each of them must reach on digits with a fifth of the labels wrong, and how well its audit must find them.
LEARNS, FINDS = 0.8, 0.8
# gce has small gradients at first; small-loss confirms itself where it begins to choose after one short epoch.
PATIENT = {
    "gce": {"learning_rate": 0.1, "epochs": 12},
    "incv": {"sub_epochs": 3},
    "mentornet": {"mentor_steps": 300},
    "small-loss": {"select_after": 4},
}


def start(name: str, **more):
    return fit(name, **{**CHEAP.get(name, {}), **more})


def all_weights(result) -> dict[str, torch.Tensor]:
    """Of all networks, the kept model, and the tensors of all optimizers."""
    context, state = result.recorder.context, result.recorder.state
    found = {f"kept.{name}": value for name, value in result.model.state_dict().items()}
    for i, net in enumerate(context.networks):
        found |= {f"{i}.{name}": value for name, value in context.processes.bare(net).state_dict().items()}
    for i, optimizer in enumerate(state.optimizers):
        for key, entry in optimizer.state_dict()["state"].items():
            found |= {f"o{i}.{key}.{name}": v for name, v in entry.items() if isinstance(v, torch.Tensor)}
    return found


def same(a, b) -> bool:
    one, two = all_weights(a), all_weights(b)
    return one.keys() == two.keys() and all(value.equal(two[name]) for name, value in one.items())


@cache
def whole(name: str):
    """A run on the clouds, for those who compare with it."""
    return start(name, model=network(norm=True, dropout=0.1))


@cache
def digits():
    bundle = data.load("digits", limit=500)
    wrong = noise.make_noisy_labels(bundle.train.labels, "symmetric:0.2", classes=10, seed=0).labels
    return bundle, wrong


def auroc(scores, wrong) -> float:
    """How often a wrong label has the higher score of a pair."""
    ranks = np.argsort(np.argsort(scores, kind="stable"), kind="stable")
    bad = int(wrong.sum())
    return float((ranks[wrong].sum() - bad * (bad - 1) / 2) / (bad * (len(wrong) - bad)))


@pytest.mark.parametrize("name", METHODS)
def test_it_learns_and_finds_wrong_labels(name):
    bundle, wrong = digits()
    result = fit_seen(
        "mlp",
        bundle.train,
        labels=wrong,
        true_labels=bundle.train.labels,
        test_set=bundle.test,
        method=name,
        **{"epochs": 10, "batch_size": 32, "learning_rate": 0.05, "test_every": 10, **PATIENT.get(name, {})},
    )
    assert result.accuracy["last"] > LEARNS, name
    table = result.audit()
    assert len(table) == 500
    assert table["label_quality"].between(0, 1).all()
    assert auroc(1 - table["label_quality"].to_numpy(), wrong != bundle.train.labels) > FINDS
    for column, opinion in result.recorder.method.opinions().items():
        if np.shape(opinion) == (result.recorder.context.n,):
            trained_on = table.loc[~table["is_held_out"], column]
            assert np.array_equal(trained_on.to_numpy(), opinion, equal_nan=True)


@pytest.mark.parametrize("name", METHODS)
def test_it_resumes_bit_for_bit_and_repeats_by_seed(name, tmp_path):
    complete = whole(name)
    epochs = len(complete.history)
    arguments = {"model": network(norm=True, dropout=0.1), "run_dir": tmp_path}
    stops = sorted({1, 2, epochs // 2, epochs - 1})
    for stop in stops:
        torch.rand(3)  # whatever was drawn before changes nothing
        start(name, **arguments, stop_after=stop, resume=stop > 1)
    resumed = start(name, **arguments, resume=True)
    assert same(resumed, complete)
    assert told(resumed.history) == told(complete.history)
    assert resumed.audit().equals(complete.audit())
    assert crust.load(tmp_path, network(norm=True, dropout=0.1)).config["method"] == name


@pytest.mark.parametrize("name", METHODS)
def test_another_seed_is_another_run(name):
    other = start(name, model=network(norm=True, dropout=0.1), seed=1)
    assert not same(other, whole(name))


@pytest.mark.parametrize("name", METHODS)
def test_networks_of_a_pair_are_seeded_apart_and_saved(name):
    networks = whole(name).recorder.context.networks
    assert len(networks) == METHODS[name].networks
    if len(networks) == 2:
        first, second = (list(net.parameters()) for net in networks)
        assert not all(a.equal(b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("name", METHODS)
def test_its_cost_is_counted(name):
    result = whole(name)
    passes = [line["passes"] for line in result.history]
    assert all(a["forward"] <= b["forward"] for a, b in pairwise(passes))
    chosen = sum(result.history["n_selected"])
    assert passes[-1]["forward"] >= passes[-1]["backward"] > 0
    assert passes[-1]["forward"] >= 0.5 * chosen
    assert all(line["seconds"]["epoch"] >= 0 for line in result.history)


@pytest.mark.parametrize("name", METHODS)
def test_batches_of_one_and_batches_that_lack_classes(name):
    more = {"dmi_batch_size": 2} if name == "l-dmi" else {}
    for size in (1, 2):
        result = start(name, data=examples(12), validation=0, epochs=2, batch_size=size, **more)
        assert all(np.isfinite(line["loss"]) for line in result.history)


@pytest.mark.parametrize("classes", [2, 100])
@pytest.mark.parametrize("name", METHODS)
def test_two_classes_and_a_hundred(name, classes):
    rng = np.random.default_rng(0)
    n = 40 if classes == 2 else 250
    true = np.arange(n) % classes
    x = (rng.normal(size=(classes, 8))[true] * 2 + rng.normal(size=(n, 8))).astype(np.float32)
    given = np.where(rng.random(n) < 0.2, (true + 1) % classes, true)
    more = {"fraction": 0.5} if name == "crust-released" else {}
    result = crust.fit(
        "mlp",
        Examples(torch.from_numpy(x), given, list(range(classes)), "features"),
        true_labels=true,
        method=name,
        validation=0.2 if classes == 2 else 0,
        epochs=2,
        batch_size=32,
        learning_rate=0.02,
        **{**CHEAP.get(name, {}), **more},
    )
    assert all(np.isfinite(line["loss"]) for line in result.history)
    assert result.predict(x).shape == (n,)


@pytest.mark.parametrize("name", METHODS)
def test_labels_that_are_all_equal_get_a_sentence(name, tmp_path):
    with pytest.raises(InputError, match="at least two classes") as caught:
        start(name, labels=np.zeros(90, int), run_dir=tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_an_oracle_without_a_right_label_trains_on_nobody():
    truth = (examples().labels + 1) % 3
    result = fit("oracle", true_labels=truth)
    assert result.history["n_selected"] == [0, 0, 0]
    trained = result.recorder.context.networks[0].state_dict()
    assert all(value.equal(trained[name]) for name, value in network().state_dict().items())


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"oracle"}))
def test_true_labels_change_nothing_but_what_is_measured(name):
    with_truth = start(name, model=network(norm=True, dropout=0.1), true_labels=clouds()[2])
    assert same(with_truth, whole(name))
    measured = {"clean_fraction", "clean_fraction_weighted", "train_true_accuracy"}
    lines = [{k: v for k, v in line.items() if k not in measured} for line in told(with_truth.history)]
    assert lines == told(whole(name).history)
    assert all(0 <= value <= 1 for value in with_truth.history["clean_fraction"])


# ------------------------------------------------------------ slow: SIGKILL, two processes

KILLED = """
    import sys
    from tests.methods.test_conformance import start
    from tests.training.common import network
    start(sys.argv[2], epochs=8, model=network(norm=True, dropout=0.2), run_dir=sys.argv[1], resume=True)
"""

TWO = """
    import hashlib, json, sys
    from pathlib import Path
    from crust.methods import METHODS
    from crust.training.distributed import Processes
    from tests.methods.test_conformance import all_weights, start
    from tests.training.common import examples, network

    told = {}
    for name in METHODS:
        result = start(name, data=examples(83), model=network(norm=True, dropout=0.1), batch_size=8)
        digest = hashlib.sha256()
        for value in all_weights(result).values():
            digest.update(value.detach().contiguous().numpy().tobytes())
        lines = [{k: v for k, v in line.items() if k != "seconds"} for line in result.history]
        told[name] = {"weights": digest.hexdigest(), "history": lines}
    rank = Processes(cpu=True).rank
    (Path(sys.argv[1]) / f"{rank}.json").write_text(json.dumps(told))
"""


def environment() -> dict[str, str]:
    outside = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    found = {name: value for name, value in os.environ.items() if name not in outside}
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return found | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_killed_and_resumed_it_ends_as_if_it_was_not(name, tmp_path):
    def run(folder):
        command = [sys.executable, "-c", textwrap.dedent(KILLED), str(folder), name]
        return subprocess.Popen(command, env=environment(), cwd=ROOT)

    assert run(tmp_path / "whole").wait() == 0
    process = run(tmp_path / "hurt")
    while process.poll() is None and not (tmp_path / "hurt" / "checkpoint" / "000004").exists():
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "hurt" / "model.safetensors").exists()
    assert run(tmp_path / "hurt").wait() == 0
    whole, hurt = ((tmp_path / place / "model.safetensors").read_bytes() for place in ("whole", "hurt"))
    assert whole == hurt
    one, two = (crust.load(tmp_path / place, network(norm=True, dropout=0.2)) for place in ("whole", "hurt"))
    assert told(one.history) == told(two.history)
    assert one.audit().equals(two.audit())


@pytest.mark.slow
def test_two_processes_end_with_the_same_networks_and_history(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(TWO))
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [*launch, str(script), str(tmp_path)], env=environment(), cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    one, two = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    assert set(one) == set(METHODS)
    for name in METHODS:
        assert one[name] == two[name], name

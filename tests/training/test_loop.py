"""The loop on a tiny problem: every method trains, repeats by seed, stops and goes on as if it had not."""

import logging
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.training.common import CLASSES, FAST, clouds, examples, fit, fit_seen, network, told, weights
from torch import nn

import crust
from crust import fitting
from crust.data import Examples
from crust.data.batches import split_batches, walk
from crust.errors import InputError
from crust.training.loop import Diverged

SMALL = {"fraction": 0.5, "select_after": 1}
OWN = {
    "crust-released": SMALL,
    "random": {"fraction": 0.5},
    "crust-paper": {"fraction": 0.5},
    "crust": {"fraction": 0.5},
}
VARIANTS = {  # all methods with their defaults are in tests/methods/test_conformance.py
    **{name: {"method": name, **OWN.get(name, {})} for name in ("erm", "crust", "crust-released", "mixup", "random")},
    "crust every second epoch": {"method": "crust", "select_every": 2, "select_after": 0, "partners": 2},
    "crust by clusters": {"method": "crust-half", "weights": "cluster", "mixup": "cluster", "budget": "group"},
    "crust averaged": {"method": "crust", "ema": 0.9, "model": "rich"},
    "crust auto": {"method": "crust", "fraction": "auto"},
    "crust exact": {"method": "crust-half", "proxy": "exact", "mixup": "cluster", "budget": "group"},
    "crust-paper features": {"method": "crust-paper", "proxy": "features", "select_every": 2},
    "erm adam": {"method": "erm", "optimizer": "adam", "clip_norm": 0.5},
    "dropout and batchnorm": {"method": "crust", "model": "rich"},
    "dropout and batchnorm, released": {"method": "crust-released", "model": "rich", **SMALL},
}


def start(variant: str, **more):
    settings = {**VARIANTS[variant], **more}
    if settings.get("model") == "rich":
        settings["model"] = network(norm=True, dropout=0.2)
    return fit(**settings)


# ------------------------------------------------------------ every method


@pytest.mark.parametrize("variant", VARIANTS)
def test_it_trains_and_repeats_by_seed_to_the_same_bytes(variant):
    torch.rand(3)  # whatever was drawn before changes nothing
    first = start(variant)
    assert sum(line["counts"] for line in first.history) == 3  # stages before the last one are extra
    assert all(np.isfinite(line["loss"]) for line in first.history)
    torch.rand(5)
    second = start(variant)
    assert weights(first) == weights(second)
    assert told(first.history) == told(second.history)
    assert weights(start(variant, seed=1)) != weights(first)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_run_that_is_stopped_and_resumed_ends_as_if_it_was_not(tmp_path, variant):
    whole = start(variant, epochs=4, run_dir=tmp_path / "whole")
    start(variant, epochs=4, run_dir=tmp_path / "parts", stop_after=2)
    resumed = start(variant, epochs=4, run_dir=tmp_path / "parts", resume=True)
    assert weights(resumed) == weights(whole)
    assert told(resumed.history) == told(whole.history)
    assert resumed.audit().equals(whole.audit())
    kept = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts")]
    assert kept[0] == kept[1]


@pytest.mark.parametrize("method", ["crust", "crust-released"])
def test_augmented_images_are_resumed_to_the_same_bytes_too(tmp_path, method):
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (49, 8, 8, 3)).astype(np.uint8)
    settings = {"method": method, "epochs": 3, "batch_size": 16, "augment": True, "validation": 0, **SMALL}

    def run(**more):
        return fit_seen("small_cnn", (pixels, np.arange(49) % 3), **settings, **more)

    whole = run()
    run(run_dir=tmp_path, stop_after=2)
    resumed = run(run_dir=tmp_path, resume=True)
    assert weights(resumed) == weights(whole)
    assert told(resumed.history) == told(whole.history)


def test_a_finished_run_that_is_resumed_stays_as_it_is(tmp_path):
    first = fit("crust", run_dir=tmp_path)
    again = fit("crust", run_dir=tmp_path, resume=True)
    assert told(again.history) == told(first.history)
    assert weights(again) == weights(first)


def test_a_bill_that_is_used_up_is_not_exceeded_by_resuming(tmp_path):
    first = fit("erm", epochs=9, max_passes=300, run_dir=tmp_path)
    assert 1 <= len(first.history) < 9
    again = fit("erm", epochs=9, max_passes=300, run_dir=tmp_path, resume=True)
    assert told(again.history) == told(first.history)


def test_the_oracle_trains_on_clean_labels_alone():
    result = fit("oracle")
    assert result.history["clean_fraction"] == [1.0] * 3


@pytest.mark.parametrize("variant", ["crust", "crust-released", "dropout and batchnorm, released", "mixup", "random"])
def test_no_global_generator_is_disturbed(variant):
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()  # noqa: NPY002
    start(variant)
    assert torch.get_rng_state().equal(before[0])
    assert random.getstate() == before[1]
    assert np.array_equal(np.random.get_state()[1], before[2])  # noqa: NPY002


def test_the_model_of_the_user_is_left_alone():
    model = network(norm=True)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    result = fit("crust", model=model)
    assert all(value.equal(before[name]) for name, value in model.state_dict().items())
    assert result.model is not model


def test_crust_learns_the_clouds():
    x, given, true = clouds(300)
    result = crust.fit(network(), (x, given), method="crust", test_set=clouds(90, 1)[::2], **{**FAST, "epochs": 8})
    assert result.accuracy["last"] > 0.85
    assert (result.predict(x) == true).mean() > 0.85


# ------------------------------------------------------------ the history and the result


def test_a_line_of_the_history_says_what_happened(tmp_path):
    x, _, true = clouds(60, 1)
    seen = []
    result = fit("crust", test_set=(x, true), true_labels=clouds()[2], on_epoch_end=seen.append, run_dir=tmp_path)
    line = result.history.lines[-1]
    for name in ("epoch", "stage", "learning_rate", "loss", "batch_accuracy", "n_selected", "test_accuracy",
                 "passes", "val_accuracy", "clean_fraction", "clean_fraction_weighted", "train_accuracy",
                 "train_true_accuracy"):  # fmt: skip
        assert name in line
    assert [entry["epoch"] for entry in result.history] == [0, 1, 2]
    assert seen == result.history.lines
    assert crust.load(tmp_path, network()).history.lines == seen


def test_a_function_makes_every_network_of_a_method():
    body = network()[0].weight.detach().clone()

    def pretrained():
        made = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, CLASSES))
        with torch.no_grad():
            made[0].weight.copy_(body)  # a body that is known, and a head that is drawn
        return made

    result = fit("co-teaching", model=pretrained, noise_rate=0.3, learning_rate=1e-9, weight_decay=0.0)
    first, second = result.recorder.context.networks
    assert torch.allclose(first[0].weight, body)
    assert torch.allclose(second[0].weight, body)
    assert not torch.allclose(first[2].weight, second[2].weight)
    assert result.config["model"] == "Sequential"
    assert weights(result) == weights(
        fit("co-teaching", model=pretrained, noise_rate=0.3, learning_rate=1e-9, weight_decay=0.0)
    )


def test_the_kept_model_is_that_of_the_best_validation():
    result = fit("erm", epochs=6)
    scores = result.history["val_accuracy"]
    best = max(range(6), key=lambda i: (scores[i], i)) + 1
    assert result.recorder.state.best_epoch == best
    assert weights(fit("erm", epochs=6, stop_after=best)) != ""
    stopped = fit("erm", epochs=6, stop_after=best)
    for name, value in stopped.recorder.context.networks[0].state_dict().items():
        assert value.equal(result.model.state_dict()[name])


def test_a_run_is_loaded_and_predicts_the_same(tmp_path):
    x, given, _ = clouds()
    names = np.array(["ant", "bee", "cow"])
    trained = crust.fit("mlp", (x, names[given]), method="crust", run_dir=tmp_path, epochs=2)
    loaded = crust.load(tmp_path)
    assert np.array_equal(loaded.predict_proba(x), trained.predict_proba(x))
    assert set(loaded.predict(x)) <= set(names)
    assert loaded.audit().equals(trained.audit())
    with pytest.raises(InputError, match="there is no folder"):
        crust.load(tmp_path / "nowhere")


def test_a_model_of_ones_own_is_needed_to_load_its_run(tmp_path):
    fit("erm", run_dir=tmp_path)
    with pytest.raises(InputError, match="trained a Sequential of yours"):
        crust.load(tmp_path)
    with pytest.raises(InputError, match="do not fit the model"):
        crust.load(tmp_path, nn.Linear(5, 3))


def test_arrays_to_measure_on_are_normalised_as_those_trained_on():
    x, given, true = clouds()
    shifted = fit("erm", data=(x * 7 + 100, given), test_set=(x[:3] * 7 + 100, true[:3]))
    network_inputs = shifted.recorder.context.tests["test"]
    assert network_inputs.mean == shifted.recorder.context.train.mean


def test_mixed_precision_after_full_precision_gives_a_model_of_its_own():
    fit("erm")
    result = fit("erm", mixed_precision="bf16", epochs=4)
    x = torch.from_numpy(clouds()[0])
    by_hand = network()
    by_hand.load_state_dict(result.recorder.state.best)
    data = Examples(x, np.full(len(x), -1), [0, 1, 2], "features")
    with torch.no_grad():
        expected = torch.softmax(by_hand.eval()(x).double(), dim=1).numpy()
        assert result.predict_proba(data) == pytest.approx(expected, abs=1e-6)
        for parameter in result.model.parameters():
            parameter.zero_()
    assert result.predict_proba(data) == pytest.approx(1 / 3)  # not the trained one behind a wrapper


def test_a_set_that_augments_by_itself_is_looked_at_without():
    x, given, _ = clouds()

    class Noisy(torch.utils.data.Dataset):
        def __len__(self):
            return len(x)

        def __getitem__(self, i):
            return torch.from_numpy(x[i]) + torch.randn(5), int(given[i])

    result = fit("crust", data=Noisy(), train_eval_set=(x, given), validation=0)
    context = result.recorder.context
    assert context.plain.kind == "features"
    with pytest.raises(InputError, match=r"60 examples|90 labels"):
        fit("crust", data=Noisy(), train_eval_set=(x[:60], given[:60]), validation=0)


# ------------------------------------------------------------ batches


def test_a_single_one_left_over_joins_the_batch_before_it():
    for n in range(1, 30):
        for size in (1, 2, 3, 7, 16):
            parts = split_batches(np.arange(n), size)
            assert np.array_equal(np.concatenate(parts), np.arange(n))
            assert all(len(part) == size for part in parts[:-1])
            assert all(1 <= len(part) <= size + 1 for part in parts)
            if size > 1 and n > 1:
                assert len(parts[-1]) > 1
            walked = list(walk(examples(), parts))
            assert [index.tolist() for _, index in walked] == [part.tolist() for part in parts]
            assert torch.cat([x for x, _ in walked]).equal(examples().inputs[:n])


@pytest.mark.parametrize("method", ["erm", "crust", "crust-released"])
@pytest.mark.parametrize("n", [33, 34, 65])
def test_a_last_batch_of_one_goes_through_batchnorm(method, n):
    result = fit(method, data=examples(n), model=network(norm=True), validation=0, **OWN.get(method, {}))
    assert len(result.history) == 3


def test_a_batch_of_one_alone_gets_a_sentence():
    with pytest.raises(InputError, match="BatchNorm cannot be trained on the batch of 1 in epoch 0"):
        fit("erm", model=network(norm=True), batch_size=1)


# ------------------------------------------------------------ what can go wrong


def test_inputs_that_are_no_numbers_stop_the_run_with_epoch_and_batch(tmp_path):
    x = examples().inputs.clone()
    x[:, 2] = float("nan")
    bad = Examples(x, examples().labels, list(range(CLASSES)), "features")
    with pytest.raises(Diverged, match="the loss is nan in epoch 0, batch 0: the inputs of this batch are not finite"):
        fit("erm", data=bad)


def test_a_rate_that_is_too_large_is_named():
    with pytest.raises(Diverged, match=r"in epoch \d, batch \d+: the learning rate of 1e\+18 is likely too large"):
        fit("erm", learning_rate=1e18, epochs=9)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"method": "crst"}, "unknown method 'crst'.*did you mean 'crust'"),
        ({"epoch": 3}, "unknown setting 'epoch'.*did you mean 'epochs'"),
        ({"labels": [0, 1]}, "there are 2 labels for 90 examples"),
        ({"true_labels": [0, 1]}, "there are 2 labels for 90 examples"),
        ({"model": nn.Linear(5, 7)}, "the model has 7 outputs, but the data has 3 classes"),
        ({"model": nn.Linear(4, 3)}, "the model cannot take an example of shape"),
        ({"model": "resnet9"}, "unknown model 'resnet9'"),
        ({"labels": np.zeros(90, int)}, "training needs at least two classes"),
        ({"labels": np.full(90, 7)}, "unknown class in row 0 of the labels .7."),
        ({"method": "crust", "fraction": 1.5}, "setting fraction is 1.5"),
        ({"method": "crust", "fraction": "some"}, "setting fraction"),
        ({"method": "crust-released", "fraction": 0.001, "select_after": 0}, "rounds down to no example"),
        ({"validation": 1.0}, "the validation share is 1"),
    ],
)
def test_wrong_input_gets_one_sentence_and_nothing_is_written(tmp_path, arguments, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        fit(**{"run_dir": tmp_path / "run", **arguments})
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run" / "checkpoint").exists()


def test_an_example_without_a_label_gets_a_sentence():
    data = examples()
    with pytest.raises(InputError, match="example 4 has no label"):
        fit("erm", data=Examples(data.inputs, np.where(np.arange(90) == 4, -1, data.labels), data.classes, "features"))


# ------------------------------------------------------------ going on


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"epochs": 5}, "experiment.epochs (was 4, is 5)"),
        ({"fraction": 0.25}, "settings.fraction (was 0.5, is 0.25)"),
        ({"method": "erm", "fraction": None}, "method (was crust, is erm)"),
        ({"data": examples(90, 1)}, "data (was "),
        ({"labels": np.arange(90) % 3}, "data (was "),
        ({"validation": 0.2}, "validation (was 0.1, is 0.2)"),
        ({"seed": 9}, "experiment.seed (was 0, is 9)"),
        ({"model": nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))}, "parameters (was 75, is 39)"),
        ({"test_set": (clouds()[0], clouds()[2])}, "test_data (was None"),
    ],
)
def test_a_change_is_refused_and_named(tmp_path, change, named):
    arguments = {"method": "crust", "fraction": 0.5, "epochs": 4, "run_dir": tmp_path}
    fit(**arguments, stop_after=1)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    changed = {name: value for name, value in {**arguments, **change}.items() if value is not None}
    with pytest.raises(InputError, match="cannot go on, since this has changed") as caught:
        fit(**changed, resume=True)
    assert named in str(caught.value)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_run_is_not_overwritten(tmp_path):
    fit("erm", run_dir=tmp_path, stop_after=1)
    with pytest.raises(InputError, match="holds a run already"):
        fit("erm", run_dir=tmp_path)


def test_a_damaged_checkpoint_costs_one_epoch_and_changes_nothing(tmp_path, caplog):
    whole = fit("crust", epochs=4, run_dir=tmp_path / "whole")
    fit("crust", epochs=4, run_dir=tmp_path / "hurt", stop_after=3)
    file = tmp_path / "hurt" / "checkpoint" / "000003" / "tensors.safetensors"
    file.write_bytes(file.read_bytes()[:-9])
    with caplog.at_level(logging.WARNING, "crust"):
        resumed = fit("crust", epochs=4, run_dir=tmp_path / "hurt", resume=True)
    assert "000003 is damaged" in caplog.text
    assert weights(resumed) == weights(whole)
    assert told(resumed.history) == told(whole.history)


def test_a_folder_that_cannot_be_made_gets_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot make the folder"):
        fit("erm", run_dir=tmp_path / "file" / "run")


KILLED = """
    import sys
    from tests.training.common import fit, network
    result = fit("crust", epochs=12, model=network(norm=True, dropout=0.2), run_dir=sys.argv[1], resume=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("moment", [2, 5, 9])
def test_a_run_that_is_killed_and_resumed_ends_as_if_it_was_not(tmp_path, moment):
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", textwrap.dedent(KILLED)]

    def run(folder):
        return subprocess.Popen([*command, str(folder)], env=environment, cwd=root)

    assert run(tmp_path / "whole").wait() == 0
    process = run(tmp_path / "hurt")
    while process.poll() is None and not (tmp_path / "hurt" / "checkpoint" / f"{moment:06d}").exists():
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "hurt" / "model.safetensors").exists()
    assert run(tmp_path / "hurt").wait() == 0
    whole, hurt = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "hurt"))
    assert whole == hurt
    one, two = (crust.load(tmp_path / name, network(norm=True, dropout=0.2)) for name in ("whole", "hurt"))
    assert told(one.history) == told(two.history)
    assert one.audit().equals(two.audit())


# ------------------------------------------------------------ averaged weights


def test_the_kept_model_is_the_moving_average_of_the_weights_after_every_step(monkeypatch):
    """Held against an average that is computed here, step by step; who is trained on follows the weights themselves."""
    settings = {"model": network(norm=True), "validation": 0, "epochs": 2}
    state = {name: value.clone() for name, value in network(norm=True).state_dict().items()}
    shares, plain = [], torch.optim.SGD.step
    average = dict(state)

    def step(optimizer, *args):
        found = plain(optimizer, *args)
        shares.append(1 - min(0.5, (len(shares) + 1) / (len(shares) + 10)))
        now = seen[0].state_dict()
        for name, value in now.items():
            average[name] = average[name] + shares[-1] * (value - average[name]) if value.is_floating_point() else value
        return found

    seen = []
    begin = fitting.RunState.new_optimizers
    monkeypatch.setattr(
        fitting.RunState,
        "new_optimizers",
        lambda run, context, extra: (seen.append(context.networks[0]), begin(run, context, extra)),
    )
    monkeypatch.setattr(torch.optim.SGD, "step", step)
    result = fit("erm", ema=0.5, **settings)
    monkeypatch.undo()
    assert shares[0] == 0.9
    assert shares[-4:] == [0.5] * 4  # of 12
    for name, value in result.model.state_dict().items():
        torch.testing.assert_close(value, average[name].to(value.dtype), msg=name)
    off = fit("erm", **settings)
    assert told(off.history)[-1]["loss"] == told(result.history)[-1]["loss"]  # training itself is the same
    assert off.audit().equals(result.audit())
    assert not off.model[0].weight.equal(result.model[0].weight)


def test_what_is_measured_is_the_averaged_model_and_its_choice_is_by_held_out_labels():
    result = fit("crust", ema=0.9, epochs=6, test_set=examples(60, seed=1), fraction=0.5, select_after=1)
    held = [line["val_accuracy"] for line in result.history]
    assert result.best_epoch == len(held) - held[::-1].index(max(held))
    measured = (result.predict(examples(60, seed=1)) == examples(60, seed=1).labels).mean()
    assert measured == result.history["test_accuracy"][result.best_epoch - 1]

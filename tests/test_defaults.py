"""What is chosen where the user does not say: by kind and size of the data, said in a line, and never against him."""

import math

import numpy as np
import pytest
import torch
from tests.refusals import refused
from tests.training.common import clouds
from torch import nn

import crust
from crust import CrustClassifier, defaults
from crust.models import MODELS
from crust.training.settings import TrainSettings

IMAGES = (3, 48, 48)


def chosen(n, kind="features", shape=(8,), **given):
    return defaults.choose(kind, shape, n, given=given)


@pytest.mark.parametrize(
    ("shape", "n", "model"),
    [
        (IMAGES, 500, "small_cnn"),
        ((1, 8, 8), 100_000, "small_cnn"),
        ((3, 32, 32), 10_000, "resnet8"),
        ((3, 32, 32), 20_000, "resnet14"),
        ((3, 32, 32), 50_000, "resnet32"),
        ((3, 224, 224), 50_000, "timm:resnet18"),
    ],
)
def test_images_get_a_network_of_their_size(shape, n, model):
    found = defaults.choose("images", shape, n)
    assert found.model == model
    assert model in found.sentence
    assert defaults.choose("dataset", shape, n).model == model  # a dataset whose items are images


def test_tables_texts_and_what_is_neither():
    assert chosen(3000).model == "mlp"
    assert defaults.choose("tokens", (), 3000).model == "text"
    assert defaults.choose("tokens", (), 3000).settings["optimizer"] == "adamw"
    assert defaults.choose("dataset", (5, 7), 3000).model == "mlp"
    with refused("model-not-chosen"):
        defaults.choose("dataset", (), 3000)
    assert defaults.choose("dataset", (), 3000, model=None).settings["optimizer"] == "adamw"


@pytest.mark.parametrize("kind", ["images", "features", "tokens", "dataset"])
def test_length_is_counted_in_updates_within_bounds_of_epochs(kind):
    shape = {"images": IMAGES, "features": (8,)}.get(kind, ())
    sizes = (20, 500, 3000, 20_000, 10**6)
    runs = [defaults.choose(kind, shape, n, model="x").settings for n in sizes]
    epochs = [run["epochs"] for run in runs]
    updates = [run["epochs"] * math.ceil(n / run["batch_size"]) for run, n in zip(runs, sizes, strict=True)]
    assert epochs == sorted(epochs, reverse=True)
    assert epochs[-1] < 120
    assert updates == sorted(updates)
    assert all(TrainSettings(**run) for run in runs)


def test_longer_batches_mean_more_epochs():
    assert chosen(3000, batch_size=256).settings["epochs"] > chosen(3000, batch_size=64).settings["epochs"]


@pytest.mark.parametrize(
    "given",
    [
        {"epochs": 3},
        {"batch_size": 7},
        {"optimizer": "sgd"},
        {"learning_rate": 3e-4},
        {"weight_decay": 0.0},
        {"schedule": "linear"},
        {
            "epochs": 3,
            "batch_size": 7,
            "optimizer": "adam",
            "learning_rate": 0.1,
            "weight_decay": 0.0,
            "schedule": "linear",
        },
    ],
)
def test_what_the_user_gives_stays_and_is_not_said(given):
    found = chosen(3000, **given)
    assert not set(found.settings) & set(given)
    assert all(str(value) not in found.sentence.split(": ")[1].split(", ") for value in given.values())


def test_the_optimizer_follows_the_rate_and_the_rate_the_optimizer():
    assert chosen(3000, learning_rate=3e-4).settings["optimizer"] == "adamw"
    assert chosen(3000, learning_rate=0.1).settings["optimizer"] == "sgd"
    assert chosen(3000, nesterov=True).settings["optimizer"] == "sgd"
    assert chosen(3000, optimizer="adam").settings["learning_rate"] <= 0.01
    assert chosen(3000, optimizer="sgd").settings["learning_rate"] >= 0.01
    assert chosen(3000, lr_milestones=(0.5,)).settings["schedule"] == "milestones"


def test_short_runs_have_larger_rates_but_for_networks_that_may_be_pretrained():
    assert chosen(3000, epochs=3).settings["learning_rate"] > chosen(3000).settings["learning_rate"]
    assert chosen(3000, epochs=1).settings["learning_rate"] <= 0.01
    own = [defaults.choose("images", IMAGES, 500, model=None, given={"epochs": epochs}) for epochs in (1, 100)]
    assert own[0].settings["learning_rate"] == own[1].settings["learning_rate"] == 0.001


def test_resnets_by_name_have_the_optimizer_that_they_were_made_with():
    assert defaults.choose("images", (3, 32, 32), 20_000).sentence.endswith("sgd 0.1, cosine, batches of 128")
    found = defaults.choose("images", (3, 32, 32), 20_000, given={"learning_rate": 0.001}).settings
    assert (found["optimizer"], found["schedule"]) == ("adamw", "cosine")


def test_datasets_of_the_paper_keep_its_protocol():
    found = defaults.choose("images", (3, 32, 32), 500, paper=True)
    assert found.model == "resnet32"
    assert TrainSettings(**found.settings) == TrainSettings()
    assert found.sentence == "as in the paper: resnet32, 120 epochs, sgd 0.1, milestones, batches of 128"
    assert defaults.choose("images", (3, 32, 32), 500, paper=True, given={"epochs": 3}).settings.get("epochs") is None


def test_few_images_are_told_of_pretrained_networks_and_digits_are_not():
    assert "timm:NAME" in defaults.advice("images", IMAGES, 500, "small_cnn")
    assert defaults.advice("images", IMAGES, 50_000, "resnet32") is None
    assert defaults.advice("images", (1, 8, 8), 500, "small_cnn") is None
    assert defaults.advice("images", IMAGES, 500, None) is None  # a network of the user's own


def test_fit_says_what_it_chose_and_keeps_it_in_the_config(capsys):
    x, given, _ = clouds(90)
    result = crust.fit("auto", (x, given), method="erm", epochs=2)
    first = capsys.readouterr().err.partition("\n")[0]
    assert first == "chosen for 90 rows of 5 features: mlp, adamw 0.01, cosine, batches of 16"
    assert result.config["model"] == "mlp"
    experiment = result.config["experiment"]
    assert (experiment["epochs"], experiment["optimizer"], experiment["schedule"]) == (2, "adamw", "cosine")
    crust.fit("mlp", (x, given), method="erm", epochs=1)
    assert capsys.readouterr().err == ""


def test_a_network_of_ones_own_is_trained_by_updates_too():
    x, given, _ = clouds(90)
    result = crust.fit(nn.Linear(5, 3), (x, given), method="erm", test_every=1000)
    assert len(result.history) == chosen(90, shape=(5,)).settings["epochs"]


def test_all_settings_given_are_what_they_were():
    x, given, _ = clouds(90)
    explicit = {name: TrainSettings.model_fields[name].default for name in defaults.DECIDED} | {"epochs": 2}
    result = crust.fit("mlp", (x, given), method="erm", **explicit)
    config = result.config["experiment"]
    assert {name: config[name] for name in explicit} == explicit


def test_a_run_goes_on_with_what_was_chosen(tmp_path):
    x, given, _ = clouds(90)
    arguments = {"method": "erm", "weight_decay": 0.0, "epochs": 3}
    whole = crust.fit("auto", (x, given), **arguments)
    crust.fit("auto", (x, given), **arguments, run_dir=tmp_path, stop_after=1)
    again = crust.fit("auto", (x, given), **arguments, run_dir=tmp_path, resume=True)
    states = [result.model.state_dict() for result in (whole, again)]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


@pytest.mark.parametrize("shape", [(700, 6), (120, 10, 10)])
def test_the_estimator_has_the_defaults_of_fit(monkeypatch, shape):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 255, shape).astype(np.uint8) if len(shape) > 2 else rng.normal(size=shape).astype(np.float32)
    y = rng.integers(0, 3, len(x))
    found, fit = [], crust.fitting.fit

    def note(*arguments, **settings):
        result = fit(*arguments, **settings, stop_after=1)
        found.append((result.config, len(result.audit()), result.audit()["is_held_out"].sum()))
        return result

    monkeypatch.setattr("crust.fitting.fit", note)
    CrustClassifier(random_state=0).fit(x, y)
    seed = found[0][0]["experiment"]["seed"]
    crust.fitting.fit("auto", (x, y), seed=seed)
    (ours, *rows), (theirs, *other_rows) = found
    for name in ("model", "experiment", "settings", "validation", "augment", "method", "parameters"):
        assert ours[name] == theirs[name], name
    assert rows == other_rows


def test_every_network_that_is_chosen_is_there():
    assert {name for _, name in defaults.NETWORKS} <= set(MODELS)


def test_the_classifier_chooses_and_says_the_same(capsys):
    x, given, _ = clouds(90)
    CrustClassifier(epochs=2, method="erm", random_state=0).fit(x, given)
    said = capsys.readouterr().err.partition("\n")[0]
    crust.fit("auto", (x, given), method="erm", epochs=2)
    assert capsys.readouterr().err.partition("\n")[0] == said


def test_few_rows_are_held_back_more():
    assert chosen(400).settings["weight_decay"] > chosen(3000).settings["weight_decay"]
    assert defaults.choose("images", IMAGES, 400).settings["weight_decay"] == 0.05


def test_texts_are_short_runs_and_few_are_told_of_other_features():
    assert "TF-IDF" in defaults.advice("tokens", (32769,), 800, "text")
    assert defaults.advice("tokens", (32769,), 8000, "text") is None
    found = defaults.choose("tokens", (), 2085).settings
    assert 5 <= found["epochs"] <= 8
    assert defaults.choose("tokens", (), 300).settings["epochs"] > found["epochs"]

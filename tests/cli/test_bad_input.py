"""Bad input, case by case, through `crust.fit` and through `crust train`: one sentence, and nothing lost."""

import logging
import re
import resource
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from tests.cli.common import call
from torch import nn

import crust
from crust.errors import CrustError, InputError

N = 40
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3)).astype(np.float32)
Y = np.arange(N) % 2
FAST = {"method": "erm", "epochs": 2, "batch_size": 16, "learning_rate": 0.01}
TRAIN = "--method erm --epochs 2 --batch-size 16 --learning-rate 0.01 -q"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(capsys, words, pattern):
    """Exit code 2 and one line, which says this; no run is begun."""
    assert call(f"train {words} {TRAIN} -o run") == 2
    shown = capsys.readouterr().err
    assert len(shown.splitlines()) == 1
    assert re.search(pattern, shown), shown
    assert not Path("run").exists()


def with_labels(change):
    labels = Y.astype(object)
    labels[7] = change
    return labels


# What is wrong with the labels, and what is said of it.
LABELS = {
    "missing": (with_labels(None), "row 7 of .* has no label"),
    "not a number": (np.where(np.arange(N) == 7, np.nan, Y), "row 7 of .* has no label"),
    "empty text": (np.where(np.arange(N) == 7, "", "a"), "row 7 of .* has no label"),
    "float": (np.where(np.arange(N) == 7, 0.5, Y), r"label 0\.5 in row 7 of .* is not a whole number"),
    "infinite": (np.where(np.arange(N) == 7, np.inf, Y), r"label inf in row 7 of .* is not a whole number"),
    "one class only": (np.zeros(N, int), r"all of .* are 0: training needs at least two classes"),
    "one class only, text": (np.array(["cat"] * N), r"all of .* are 'cat': training needs at least two classes"),
    "another length": (Y[:-1], "39 labels.*40 examples"),
    "two columns": (np.stack([Y, Y], 1), r"several an example|shape \(40, 2\)"),
}


@pytest.mark.parametrize("case", LABELS)
def test_labels_in_python(case):
    labels, pattern = LABELS[case]
    items = [(torch.from_numpy(x), 0) for x in X]
    for data, given in (((X, labels), None), ((X, Y), labels), (items, labels)):
        with pytest.raises(InputError, match=pattern) as caught:
            crust.fit("mlp", data, labels=given, run_dir="run", **FAST)
        assert "\n" not in str(caught.value)
        assert not Path("run").exists()


@pytest.mark.parametrize("case", LABELS)
def test_labels_in_files(capsys, case):
    labels, pattern = LABELS[case]
    plain = labels.astype(float) if labels.dtype == object else labels
    np.savez("data.npz", x=X, y=plain)
    refused(capsys, "data.npz", pattern)
    np.savez("right.npz", x=X, y=Y)
    np.savez("labels.npz", a=plain)
    if "text" not in case:  # names are no classes of numbered data: another sentence
        refused(capsys, "right.npz --labels labels.npz:a", pattern)
    if labels.ndim == 1 and len(labels) == N:
        pd.DataFrame({"a": X[:, 0], "label": labels}).to_csv("table.csv", index=False)
        refused(capsys, "table.csv", pattern.replace("has no label", "(is empty|has no label)"))


@pytest.mark.parametrize("wrong", [2, -1])
def test_labels_out_of_range(capsys, wrong):
    labels = np.where(np.arange(N) == 7, wrong, Y)
    np.savez("data.npz", x=X, y=Y)
    np.savez("labels.npz", a=labels)
    for option in ("--labels", "--true-labels"):
        refused(capsys, f"data.npz {option} labels.npz:a", rf"row 7 of .*: use one of 0, 1|label {wrong} in row 7")
    for name in ("labels", "true_labels"):
        with pytest.raises(InputError, match="row 7"):
            crust.fit("mlp", crust.data.from_arrays(X, Y), **{name: labels}, **FAST)


def test_whole_floats_and_text_are_fine_and_kept(capsys):
    names = np.array(["cat", "dog"])[Y]
    for labels, classes in ((Y.astype(float) + 3, [3, 4]), (names, ["cat", "dog"])):
        result = crust.fit("mlp", (X, labels), **FAST)
        assert result.classes == classes
        assert set(result.predict(X)) <= set(classes)
        assert result.audit()["given_label"].tolist() == labels.tolist()
        np.savez("data.npz", x=X, y=labels)
        folder = f"run{classes[0]}"
        assert call(f"train data.npz {TRAIN} -o {folder}") == 0
        assert pd.read_parquet(f"{folder}/audit.parquet")["given_label"].tolist() == labels.tolist()
        assert call(f"predict {folder} data.npz -q -o out.csv") == 0
        assert set(pd.read_csv("out.csv")["predicted"]) <= set(classes)


def test_a_class_with_one_example_is_said_and_trained_on(capsys, caplog):
    labels = np.where(np.arange(N) == 7, 2, Y)
    with caplog.at_level(logging.WARNING, logger="crust"):
        result = crust.fit("mlp", (X, labels), **FAST)
    assert "class 2 has a single example" in caplog.text
    assert not result.audit()["is_held_out"][7]
    assert result.predict_proba(X).shape == (N, 3)
    np.savez("data.npz", x=X, y=labels)
    assert call(f"train data.npz {TRAIN} -o run".replace(" -q", "")) == 0
    assert "class 2 has a single example" in capsys.readouterr().err


def test_models_that_do_not_fit(capsys):
    for model, pattern in (
        (nn.Linear(3, 5), "the model has 5 outputs, but the data has 2 classes"),
        (nn.Linear(4, 2), r"the model cannot take an example of shape \(3,\)"),
        ("resnet8", "resnet8"),
        ("mpl", "unknown model 'mpl'.*did you mean 'mlp'"),
        (3, "the model is a int: give a network"),
        (nn.Linear, "the model is a type: give a network"),
        (lambda: 3, "the function given as model makes a int: let it make a network"),
    ):
        with pytest.raises(InputError, match=pattern) as caught:
            crust.fit(model, (X, Y), run_dir="run", **FAST)
        assert "\n" not in str(caught.value)
    assert not Path("run").exists()
    np.savez("data.npz", x=X, y=Y)
    refused(capsys, "data.npz --model resnet8", "resnet8")


@pytest.mark.parametrize(
    ("bad", "pattern"),
    [
        (np.where(np.arange(N)[:, None] == 7, np.nan, X), "row 7 of the inputs holds values that are no numbers"),
        (X.astype(str), "not numbers"),
        (X[0], r"shape \(3,\)"),
        (np.zeros((0, 3)), r"shape \(0, 3\)"),
    ],
)
def test_inputs_that_are_none(capsys, bad, pattern):
    with pytest.raises(InputError, match=pattern):
        crust.fit("mlp", (bad, Y[: len(bad)]), **FAST)
    np.savez("data.npz", x=bad, y=Y[: len(bad)])
    refused(capsys, "data.npz", f"{pattern}|empty")


@pytest.fixture
def half(here):
    """A run that stopped after one of its two epochs, and the bytes it should end with."""
    np.savez("data.npz", x=X, y=Y)
    assert call(f"train data.npz {TRAIN} -o whole") == 0
    assert call(f"train data.npz {TRAIN} -o half --set stop_after=1") == 0
    return Path("whole/model.safetensors").read_bytes()


def ends_as_it_should(half):
    assert call("train --resume -q -o half") == 0
    return Path("half/model.safetensors").read_bytes() == half


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        ("--epochs 5", r"epochs \(was 2, is 5\)"),
        ("--batch-size 8", r"batch_size \(was 16, is 8\)"),
        ("--method mixup", r"method \(was erm, is mixup\)"),
        ("--validation 0.3", r"validation \(was 0\.1, is 0\.3\)"),
        ("--limit 30", r"data \(was \w+, is \w+\)"),
        ("--noise symmetric:0.3", r"data \(was \w+, is \w+\)"),
    ],
)
def test_what_has_changed_is_refused_and_the_run_is_as_before(half, capsys, options, pattern):
    capsys.readouterr()
    assert call(f"train --resume -q -o half {options}") == 2
    shown = capsys.readouterr().err
    assert len(shown.splitlines()) == 1
    assert "the run in half cannot go on, since this has changed" in shown
    assert re.search(pattern, shown), shown
    assert ends_as_it_should(half)


def test_a_changed_file_is_refused(half, capsys):
    before = Path("data.npz").read_bytes()
    np.savez("data.npz", x=X + 1, y=Y)
    assert call("train --resume -q -o half") == 2
    assert re.search(r"this has changed: data \(was", capsys.readouterr().err)
    Path("data.npz").unlink()
    assert call("train --resume -q -o half") == 2
    assert re.search(r"there is no file or folder .*data.npz", capsys.readouterr().err)
    Path("data.npz").write_bytes(before)
    assert ends_as_it_should(half)


@contextmanager
def files_of_at_most(size):
    """As on a full disk: the system itself refuses to write more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_no_space_to_write(half, capsys):
    capsys.readouterr()
    with files_of_at_most(4000):
        code = call("train --resume -q -o half")
        fresh = call(f"train data.npz {TRAIN} -o other")
    assert (code, fresh) == (2, 2)
    first, second = capsys.readouterr().err.splitlines()
    assert re.search(r"cannot write the checkpoint half.checkpoint.000002: .*too large", first)
    assert re.search(r"cannot write the checkpoint other.checkpoint.000001: .*too large", second)
    assert [path.name for path in Path("half/checkpoint").iterdir()] == ["000001"]
    assert ends_as_it_should(half)
    with files_of_at_most(10), pytest.raises(CrustError, match=r"config.yaml could not be written"):
        crust.fit("mlp", (X, Y), run_dir="third", **FAST)

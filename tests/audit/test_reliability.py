"""An audit says of itself when it is not to be relied on: by what was held out, and only then."""

import numpy as np
import pandas as pd
import pytest

import crust
from crust import data, noise
from crust.audit import unreliable
from crust.audit.reliability import UNRELIABLE, better_method
from crust.report import audit_page

DIGITS = data.load("digits", limit=900)


def table(given, predicted, held=0.3, sure=0.95, **more):
    given, predicted = np.asarray(given), np.asarray(predicted)
    out = np.arange(len(given)) < held * len(given)
    columns = {
        "index": np.arange(len(given)), "given_label": given, "predicted_label": predicted, "predicted_prob": sure,
        "label_quality": np.where(given == predicted, sure, 1 - sure), "is_held_out": out, "mean_weight": 1.0,
    }  # fmt: skip
    return pd.DataFrame({**columns, **more})


def labels(n=600, classes=4, wrong=0.0, seed=0):
    rng = np.random.default_rng(seed)
    true = rng.integers(0, classes, n)
    return np.where(rng.random(n) < wrong, (true + rng.integers(1, classes, n)) % classes, true), true


def test_where_all_is_well_nothing_is_said():
    for wrong in (0.0, 0.2, 0.5):
        assert unreliable(table(*labels(wrong=wrong)), [{"val_accuracy": 1 - wrong, "n_selected": 420}] * 10) is None
    assert unreliable(table(*labels(), held=0)) is None  # nothing can be known


def test_few_examples_and_predictions_at_chance():
    assert "only 30 examples" in unreliable(table(*labels(30)))
    given, _ = labels()
    assert "by chance" in unreliable(table(given, labels(seed=1)[1]))


def test_agreement_that_falls_over_the_run():
    rows = table(*labels(wrong=0.3))
    falling = [{"val_accuracy": value} for value in np.linspace(0.7, 0.4, 20)]
    assert "train for about 7 epochs" in unreliable(rows, falling, 7)
    assert unreliable(rows, falling[::-1]) is None
    wobbling = [{"val_accuracy": value} for value in [0.7, 0.66] * 10]
    assert unreliable(rows, wobbling) is None
    of_preparation = [{**line, "counts": False} for line in falling]
    assert unreliable(rows, of_preparation) is None


def test_a_coreset_that_holds_more_than_can_be_right():
    given, true = labels(2000, wrong=0.5)
    rows = table(given, true)
    assert "95 % of the examples are trained on" in unreliable(rows, [{"n_selected": 1330}])
    assert unreliable(rows, [{"n_selected": 700}]) is None
    assert (
        unreliable(rows, [{"n_members": 700, "n_selected": 1400}, {"n_selected": 1400}]) is None
    )  # the others count less


def test_classes_that_are_locked_out():
    given, true = labels(900)
    locked = np.where(true == 3, 2, true)
    assert "(3)" in unreliable(table(given, np.where(given == 3, 2, given), selection_rate=1.0))
    rates = np.where(given == 3, 0.05, 0.8)
    assert "classes that are hardly ever trained on" in unreliable(table(given, true, selection_rate=rates))
    assert (locked != 3).all()


def test_another_method_is_named_where_it_is_likely_better():
    noisy, clean = table(*labels(2000, wrong=0.3)), table(*labels(2000))
    assert "--method crust" in better_method(noisy, [], "erm")
    assert better_method(noisy, [], "crust") is None
    assert better_method(clean, [], "erm") is None
    assert "--fraction auto" in better_method(clean, [{"n_selected": 700}], "crust-half")
    assert better_method(clean, [{"n_selected": 1400}], "crust") is None


@pytest.mark.parametrize("method", ["erm", "crust"])
def test_a_run_on_clean_easy_data_says_nothing(method, capsys):
    result = crust.fit("mlp", DIGITS.train, method=method, epochs=8)
    assert result.warnings() == []
    assert "reliable" not in capsys.readouterr().err
    assert UNRELIABLE not in result.audit().attrs


def test_a_run_on_shuffled_labels_says_so_everywhere(tmp_path, capsys):
    shuffled = np.random.default_rng(0).permutation(DIGITS.train.labels)
    result = crust.fit("mlp", DIGITS.train, labels=shuffled, epochs=6, run_dir=tmp_path / "run")
    (line,) = result.warnings()
    assert line.startswith("the audit is not reliable: the predictions for ")
    assert line in capsys.readouterr().err
    assert line in str(result)
    again = crust.load(tmp_path / "run")
    assert again.warnings() == [line]  # Parquet keeps it
    assert "The audit is not reliable" in audit_page(again.audit())


def test_a_run_that_is_locked_in_says_so():
    """A coreset of nearly everyone where half of the labels are wrong: the network learns them by its own choice."""
    digits = data.load("digits", limit=1200)
    wrong = noise.make_noisy_labels(digits.train.labels, "symmetric:0.5", 10, 0).labels
    how = {"method": "crust-half", "fraction": 0.95, "select_after": 0, "epochs": 15, "validation": 0.2}
    (line,) = crust.fit("mlp", digits.train, labels=wrong, **how).warnings()
    assert "95 % of the examples are trained on as if their labels were right" in line

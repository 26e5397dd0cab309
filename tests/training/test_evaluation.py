"""Several test sets, and the first so many classes of each."""

import numpy as np
import pytest
from tests.training.common import clouds, examples, fit

from crust.errors import InputError
from crust.training.evaluation import ranks


def sets():
    x, _, true = clouds(60, 1)
    return {"own": (x[:30], true[:30]), "other": (x[30:], true[30:])}


def test_ranks_are_places_in_the_sorted_row():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 4, (200, 6)) / 4  # many ties
    labels = rng.integers(0, 6, 200)
    places = [np.argsort(-row, kind="stable").tolist().index(label) for row, label in zip(rows, labels, strict=True)]
    assert ranks(rows, labels).tolist() == places
    assert ((ranks(rows, labels) == 0) == (rows.argmax(axis=1) == labels)).all()


def test_every_set_is_measured_by_its_name():
    result = fit(test_set=sets(), top=2, validation=0)
    line = result.history.lines[-1]
    for end, (x, true) in zip(("", "_other"), sets().values(), strict=True):
        probabilities = result.predict_proba(x)  # without validation the last model is kept
        assert line[f"test_accuracy{end}"] == pytest.approx((probabilities.argmax(1) == true).mean())
        assert line[f"test_top2{end}"] == pytest.approx((ranks(probabilities, true) < 2).mean())
        assert line[f"test_top2{end}"] >= line[f"test_accuracy{end}"]
    assert [key for key in line if key.startswith("test_")] == [
        "test_accuracy", "test_top2", "test_accuracy_other", "test_top2_other"
    ]  # fmt: skip


def test_one_set_alone_is_what_it_was():
    x, true = sets()["own"]
    alone, named = fit(test_set=(x, true)), fit(test_set={"own": (x, true)})
    assert alone.history["test_accuracy"] == named.history["test_accuracy"]
    assert [key for key in alone.history.lines[-1] if key.startswith("test_")] == ["test_accuracy"]
    assert isinstance(alone.config["test_data"], str)
    assert named.config["test_data"] == {"own": alone.config["test_data"]}


def test_all_classes_are_no_top():
    assert "test_top3" not in fit(test_set=sets(), top=3, epochs=1).history.lines[-1]


def test_a_run_goes_on_only_with_its_test_sets(tmp_path):
    fit(test_set=sets(), run_dir=tmp_path, stop_after=1)
    with pytest.raises(InputError, match=r"test_data\.other \(was .*, is None\)"):
        fit(test_set={"own": sets()["own"]}, run_dir=tmp_path, resume=True)
    assert len(fit(test_set=sets(), run_dir=tmp_path, resume=True).history) == 3


@pytest.mark.parametrize(
    ("given", "words"),
    [({}, "empty dict"), ({"a b": 1}, "the name 'a b': use letters"), ({3: examples()}, "the name 3")],
)
def test_names_that_are_none(given, words):
    with pytest.raises(InputError, match=words):
        fit(test_set=given)

"""The class view and duplicates, held against plain counting."""

import numpy as np
import pandas as pd
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import crust
from crust.audit import class_summary, conflicting_duplicates, duplicates, overlapping_classes


def table_of(labels, suggested, chosen=None):
    n = len(labels)
    columns = {
        "index": np.arange(n),
        "given_label": labels,
        "predicted_label": suggested,
        "label_quality": np.linspace(0, 1, n),
    }
    return pd.DataFrame({**columns, "selection_rate": np.full(n, np.nan) if chosen is None else chosen})


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40), st.integers(0, 999))
def test_counts_are_those_of_plain_counting(n, seed):
    rng = np.random.default_rng(seed)
    labels, suggested = rng.choice(list("abc"), (2, n))
    view = class_summary(table_of(labels, suggested), list("abcd")).set_index("label")
    for name in "abcd":
        mine, seems = labels == name, suggested == name
        row = view.loc[name]
        assert (row["n_given"], row["n_predicted"]) == (mine.sum(), seems.sum())
        expected = (suggested[mine] != name).mean() if mine.any() else np.nan
        assert np.isclose(row["label_noise"], expected, equal_nan=True)
        expected = (labels[seems] != name).mean() if seems.any() else np.nan
        assert np.isclose(row["inverse_label_noise"], expected, equal_nan=True)
    pairs = overlapping_classes(table_of(labels, suggested))
    assert pairs["count"].sum() == (labels != suggested).sum()
    assert pairs["count"].is_monotonic_decreasing
    for row in pairs.to_dict("records"):
        assert row["count"] == ((labels == row["given_label"]) & (suggested == row["predicted_label"])).sum()
        assert np.isclose(row["share"], row["count"] / (suggested == row["predicted_label"]).sum())


def test_a_class_is_under_selected_where_it_is_hardly_predicted_or_selected():
    labels = ["a"] * 10 + ["b"] * 10 + ["c"] * 10
    chosen = [0.9] * 10 + [0.8] * 10 + [0.1] * 10
    view = class_summary(table_of(labels, ["a"] * 19 + ["b"] + ["c"] * 10, chosen), list("abcd"))
    assert view["under_selected"].tolist() == [False, True, True, False]


def test_duplicates_are_found_over_all_parts():
    rows = torch.tensor([[1, 2], [3, 4], [1, 2], [5, 6], [3, 4], [1, 2]])
    index = np.array([5, 4, 3, 2, 1, 0])
    assert duplicates([(rows[:3], index[:3]), (rows[3:], index[3:])]) == {3: 0, 5: 0, 4: 1}
    assert duplicates([(rows[:2].numpy(), index[:2])]) == {}


def test_the_same_example_with_two_labels_shows_in_the_audit_of_a_run():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 4)).astype(np.float32), np.arange(60) % 3
    x[7] = x[40] = x[2]  # labels 1, 1 and 2
    x[9] = x[3]  # labels 0 and 0
    for table in (crust.fit("mlp", (x, y), method="erm", epochs=1).audit(), crust.find_label_issues(y, features=x)):
        assert table["duplicate_of"].to_numpy()[[2, 7, 40, 3, 9]].tolist() == [-1, 2, 2, -1, 3]
        found = conflicting_duplicates(table)
        assert found["index"].tolist() == [2, 7, 40]
        assert found["duplicate_of"].tolist() == [2, 2, 2]
    old = table.drop(columns="duplicate_of")
    assert len(conflicting_duplicates(old)) == 0

"""Parts of several processes, and input that does not fit."""

from dataclasses import fields

import numpy as np
import pytest
from tests.gradients.common import N, Y, batches, network
from tests.refusals import refused
from torch import nn

from crust.errors import InputError
from crust.gradients import GradientPass, merge_passes, proxies


def test_parts_of_several_processes_are_merged():
    model = network()
    whole = proxies(model, batches(5), Y, probabilities=True)
    dealt = list(batches(5))
    shares = [dealt[0::2], [*dealt[1::2], dealt[0]]]  # the second is padded with the first batch
    parts = [proxies(model, share, Y, partial=True, probabilities=True) for share in shares]
    assert parts[0].index.tolist() == [*range(5), *range(10, 15), *range(20, 23)]
    empty = proxies(model, [], Y, partial=True)
    assert len(empty.index) == len(empty.proxies) == 0
    same(merge_passes([*parts, empty], N), whole)
    # gathered rows in any order, padding at the end: one part
    there = [f.name for f in fields(whole) if getattr(whole, f.name) is not None]
    gathered = {name: np.concatenate([getattr(part, name) for part in reversed(parts)]) for name in there}
    same(merge_passes([GradientPass(**gathered)], N), whole)
    with pytest.raises(InputError, match="the batches leave out 10 of 23 examples, the first being 5"):
        merge_passes(parts[:1], N)


def same(found, expected):
    for field in fields(expected):
        a, b = getattr(found, field.name), getattr(expected, field.name)
        if b is None:
            assert a is None
            continue
        assert a.dtype == b.dtype
        assert a.tobytes() == b.tobytes(), field.name


def test_the_first_of_several_rows_counts():
    def part(index, values):
        column = np.array(values, np.float32)
        return GradientPass(np.array(index), np.array(index), column, column, column, rows=column[:, None])

    merged = merge_passes([part([2, 0, 2], [1, 2, 3]), part([0, 1], [4, 5])], 3)
    assert merged.losses.tolist() == [2, 5, 1]
    assert merged.proxies.tolist() == [[2], [5], [1]]
    assert merged.predictions.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("labels", "settings", "code"),
    [
        (Y, {"kind": "logit"}, "unknown-proxy"),
        (Y, {"loss": "mse"}, "unknown-loss"),
        (Y[:-1], {}, "position-range"),
        ([*Y, 0], {}, "missing-examples"),
        (Y + 1, {}, "label-range"),
        (Y + 1, {"kind": "exact"}, "label-range"),
        (Y - 1, {}, "label-range"),
        (Y + 0.5, {}, "labels-type"),
        (Y + 0.5, {"loss": "squared"}, "labels-type"),
        (Y.astype(str), {}, "labels-shape"),
        (Y[:, None], {}, "labels-shape"),
        ([], {}, "empty"),
    ],
)
def test_wrong_input_is_refused(labels, settings, code):
    given = batches() if len(labels) else []
    with refused(code) as caught:
        proxies(network("mlp"), given, labels, **settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("model", "code"),
    [
        (nn.Sequential(nn.Flatten(), nn.Linear(64, 1)), "outputs-count"),
        (nn.Identity(), "outputs-shape"),
        (nn.Flatten(0), "outputs-shape"),
    ],
)
def test_outputs_that_do_not_fit_are_refused(model, code):
    with refused(code):
        proxies(model, batches(), Y)

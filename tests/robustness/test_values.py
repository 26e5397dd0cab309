"""Every door of the library takes the values of odd_values.py by the same rules: done, or refused in one sentence."""

import logging

import numpy as np
import pytest
import torch
from tests.robustness.odd_calls import FAST, Items
from tests.robustness.odd_values import DONE, LABELS, NAMES, NUMBERS, REFUSED, N, X, Y
from tests.robustness.outcomes import outcome
from torch import nn

import crust

P = np.eye(2)[Y] * 0.8 + 0.1
ONE = {"method": "erm", "epochs": 1, "batch_size": 16, "learning_rate": 0.01}
NO_NAMES = dict.fromkeys(
    (
        "list of names",
        "bytes",
        "list of bytes",
        "categorical",
        "pandas string",
        "arrow strings",
        "emoji",
        "combining characters",
        "right to left",
        "names of a thousand characters",
        "line breaks",
        "nul inside",
    ),
    REFUSED,
)
ANY_NAME = {"2^64 - 1": DONE, "empty text": DONE, "blank text": DONE}  # names of groups, which nothing is learned of
UNKNOWN = (
    "range",
    "emoji",
    "combining characters",
    "right to left",
    "names of a thousand characters",
    "line breaks",
    "nul inside",
)

ONE_HOT = {"one-hot": DONE}
ENCODED = dict.fromkeys(("frame with text", "frame with dates"), DONE)
SPARSE = dict.fromkeys(("scipy csr", "scipy coo array"), DONE)

# What is done with labels, and where the rule is another one there; None: not asked.
LABEL_DOORS = {
    "fit": (lambda y: crust.fit("mlp", (X, y), **FAST), ONE_HOT),
    "fit, labels": (lambda y: crust.fit("mlp", Items(), labels=y, **FAST), ONE_HOT),
    "fit, true_labels": (
        lambda y: crust.fit("mlp", (X, NAMES if named(y) else Y), true_labels=y, **FAST),
        {**dict.fromkeys(UNKNOWN, REFUSED), **ONE_HOT},
    ),
    "find_label_issues": (lambda y: crust.find_label_issues(y, features=X), {}),
    "find_label_issues, pred_probs": (lambda y: crust.find_label_issues(y, P), {"range": REFUSED}),
    "select": (lambda y: crust.select(X, 4, groups=y), ANY_NAME),
    "centrality": (lambda y: crust.centrality(X, y), ANY_NAME),
    "CoresetSampler": (
        lambda y: crust.CoresetSampler(Items(), y, nn.Linear(3, 2), epochs=2),
        {"range": REFUSED, **ONE_HOT},
    ),
    "CrustClassifier": (lambda y: crust.CrustClassifier("mlp", **ONE).fit(X, y), {"range": None}),
    "proxies": (
        lambda y: crust.proxies(nn.Linear(3, 2), [(torch.from_numpy(X), np.arange(N))], y),
        {**NO_NAMES, "range": REFUSED},
    ),
    "choose": (lambda y: crust.choose(SEEN, y), {**NO_NAMES, **ONE_HOT}),
}
WIDTH = dict.fromkeys(("frame of booleans and numbers", "constant column", "one column"), REFUSED)
WARNED = dict.fromkeys(
    ("frame", "frame of booleans and numbers", "frame with text", "frame with dates", "frame without rows")
)  # by scikit-learn: it was trained without names
NUMBER_DOORS = {
    "fit": (lambda x: crust.fit("mlp", (x, Y), **FAST), {**ENCODED, "frame with a gap": DONE}),
    "fit, test_set": (lambda x: crust.fit("mlp", (X, Y), test_set=(x, Y), **FAST), WIDTH),
    "fit, val_set": (lambda x: crust.fit("mlp", (X, Y), val_set=(x, Y), **FAST), WIDTH),
    "predict": (lambda x: TRAINED["result"].predict(x), WIDTH),
    "find_label_issues": (lambda x: crust.find_label_issues(Y, features=x), {}),
    "select": (lambda x: crust.select(x, 4), {"longdouble": REFUSED}),
    "centrality": (lambda x: crust.centrality(x), {"longdouble": REFUSED}),
    "CrustClassifier": (
        lambda x: crust.CrustClassifier("mlp", **ONE).fit(x, Y),
        {"matrix": REFUSED, **ENCODED, **SPARSE},
    ),
    "CrustClassifier, predict": (
        lambda x: TRAINED["classifier"].predict(x),
        {**WIDTH, "matrix": REFUSED, **WARNED, **SPARSE},
    ),
}
SEEN = crust.proxies(nn.Linear(3, 2), [(torch.from_numpy(X), np.arange(N))], Y)
TRAINED = {}


def named(values):
    try:
        return isinstance(next(iter(values)), (str, bytes))
    except Exception:  # whatever it is, it is no list of names
        return False


@pytest.fixture(scope="module", autouse=True)
def trained():
    logging.getLogger("crust").setLevel(logging.ERROR)
    TRAINED["result"] = crust.fit("mlp", (X, Y), **FAST)
    TRAINED["classifier"] = crust.CrustClassifier("mlp", **ONE).fit(X, Y)
    yield
    logging.getLogger("crust").setLevel(logging.NOTSET)


def cases(doors, values):
    for door, (call, others) in doors.items():
        for name, (make, usual) in values.items():
            right = others.get(name, usual)
            if right is not None:
                yield pytest.param(call, make, right, id=f"{door}: {name}")


@pytest.mark.parametrize(("call", "make", "right"), [*cases(LABEL_DOORS, LABELS), *cases(NUMBER_DOORS, NUMBERS)])
def test_done_or_one_sentence(call, make, right):
    got = outcome(lambda: call(make()))
    assert (got == "done") == right, got

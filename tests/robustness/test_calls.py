"""Calls from Python with the odd options, models, datasets and paths of odd_calls.py."""

import os
from pathlib import Path

import pytest
from tests.robustness import odd_calls as odd
from tests.robustness.outcomes import outcome


@pytest.fixture(scope="module", autouse=True)
def here(tmp_path_factory):
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("here"))
    odd.fit(test_set=(odd.X, odd.Y))  # what is imported late is imported now: the clock runs for one case
    yield
    os.chdir(before)


@pytest.mark.parametrize("name", odd.MODELS)
def test_models(name):
    make, right = odd.MODELS[name]
    assert (outcome(lambda: odd.fit(make())) == "done") == right


def in_short(value):
    """The same in every process: no address."""
    return value.__name__ if callable(value) else f"{value!r:.40}"


@pytest.mark.parametrize("name", odd.DATASETS)
def test_datasets(name):
    make, right = odd.DATASETS[name]
    assert (outcome(lambda: odd.fit(data=make())) == "done") == right


@pytest.mark.parametrize(("name", "value", "right"), odd.OPTIONS, ids=in_short)
def test_options(name, value, right):
    assert (outcome(lambda: odd.fit(**{name: value})) == "done") == right


@pytest.mark.parametrize(("method", "more", "right"), odd.METHOD_OPTIONS, ids=str)
def test_settings_of_methods(method, more, right):
    assert (outcome(lambda: odd.fit(method=method, **more)) == "done") == right


def test_all_other_calls(tmp_path):
    wrong = {}
    for name, (call, right) in odd.calls(tmp_path).items():
        try:
            got = outcome(lambda: call(None))  # noqa: B023 - called at once
            if (got == "done") != right:
                wrong[name] = got
        except (Exception, AssertionError) as error:  # each is named below
            wrong[name] = repr(error)
    assert not wrong, "\n".join(f"{name}: {what}" for name, what in wrong.items())

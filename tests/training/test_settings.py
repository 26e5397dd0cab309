"""Settings: defaults, the schedule, and one sentence for each mistake."""

import pytest
from pydantic import Field

from crust.errors import InputError
from crust.methods import METHODS
from crust.training.method import Settings
from crust.training.settings import TrainSettings, split_settings


class Own(Settings):
    fraction: float = Field(0.5, gt=0, le=1)


def test_settings_are_sorted_into_the_experiments_and_the_methods():
    experiment, own = split_settings({"epochs": 7, "fraction": 0.3}, Own)
    assert experiment == TrainSettings(epochs=7)
    assert own == Own(fraction=0.3)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"epoch": 3}, "unknown setting 'epoch'.*did you mean 'epochs'"),
        ({"fractio": 0.3}, "unknown setting 'fractio'.*did you mean 'fraction'"),
        ({"epochs": 0}, "setting epochs is 0: input should be greater than or equal to 1"),
        ({"epochs": "many"}, "setting epochs is 'many': input should be a valid integer"),
        ({"learning_rate": -1.0}, "setting learning_rate is -1.0: input should be greater than 0"),
        (
            {"lr_milestones": (1.5,)},
            r"setting lr_milestones is \(1.5,\): milestones are shares of the epochs, between 0 and 1",
        ),
        ({"optimizer": "sgdd"}, "setting optimizer is 'sgdd': input should be 'sgd', 'adam' or 'adamw'"),
        ({"fraction": 1.5}, "setting fraction is 1.5: input should be less than or equal to 1"),
    ],
)
def test_a_mistake_gets_one_sentence(given, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        split_settings(given, Own)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("epochs", [1, 2, 3, 40, 120])
def test_the_rate_falls_at_the_milestones_and_nowhere_else(epochs):
    settings = TrainSettings(epochs=epochs)
    rates = [settings.rate_at(epoch, epochs) for epoch in range(epochs)]
    slow = [0.1 * 0.1 ** sum(epoch >= round(share * epochs) for share in (2 / 3, 5 / 6)) for epoch in range(epochs)]
    assert rates == pytest.approx(slow)
    assert rates[0] == 0.1
    assert rates == sorted(rates, reverse=True)


def test_the_audit_looks_about_ten_times_and_always_at_the_end():
    for epochs in (1, 3, 10, 47, 120):
        due = [TrainSettings().audit_due(epoch, epochs) for epoch in range(epochs)]
        assert due[-1]
        assert min(epochs, 9) <= sum(due) <= 20
    assert [TrainSettings(audit_every=2).audit_due(epoch, 5) for epoch in range(5)] == [False, True, False, True, True]


def test_milestones_are_sorted_and_settings_cannot_be_changed():
    settings = TrainSettings(lr_milestones=(0.9, 0.1))
    assert settings.lr_milestones == (0.1, 0.9)
    with pytest.raises(ValueError, match="frozen"):
        settings.epochs = 3


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_defaults_a_name_and_a_line_about_itself(name):
    method = METHODS[name]
    assert method(method.Settings()).name == name
    assert "\n" not in method.summary
    assert not set(method.Settings.model_fields) & set(TrainSettings.model_fields)


def test_no_method_has_a_setting_by_the_name_of_one_of_every_run():
    for name, kind in METHODS.items():
        assert not set(kind.Settings.model_fields) & set(TrainSettings.model_fields), name

"""The learning rate step by step: closed forms, torch's own schedulers, stages with rates of their own, resume."""

import math

import pytest
import torch
from tests.training.common import examples, fit, told, weights

from crust.training.learning_rate import schedule_factor, warmup_factor
from crust.training.method import Stage
from crust.training.run_state import RunState
from crust.training.settings import TrainSettings

SHARES = [i / 20 for i in range(21)]


@pytest.mark.parametrize(
    ("schedule", "form"),
    [
        ("cosine", lambda p: 0.5 * (1 + math.cos(math.pi * p))),
        ("linear", lambda p: 1 - p),
        ("constant", lambda p: 1.0),
        (
            "one-cycle",
            lambda p: (
                0.04 + 0.96 * 0.5 * (1 - math.cos(math.pi * p / 0.3))
                if p < 0.3
                else 4e-6 + (1 - 4e-6) * 0.5 * (1 + math.cos(math.pi * (p - 0.3) / 0.7))
            ),
        ),
    ],
)
def test_schedules_have_their_closed_forms(schedule, form):
    assert [schedule_factor(schedule, p) for p in SHARES] == pytest.approx([form(p) for p in SHARES], abs=1e-12)


def torch_rates(make, steps):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    scheduler, rates = make(optimizer), []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return rates


def test_cosine_and_one_cycle_are_torchs():
    steps = 50
    cosine = torch_rates(lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, steps), steps)
    assert [schedule_factor("cosine", i / steps) for i in range(steps)] == pytest.approx(cosine)
    # torch counts one step more, whose rate is the last: progress is the share of the ways between steps
    cycle = torch_rates(
        lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 1.0, total_steps=steps + 1, pct_start=(0.3 * steps + 1) / 51),
        steps,
    )
    assert [schedule_factor("one-cycle", i / steps) for i in range(steps)] == pytest.approx(cycle)


@pytest.fixture
def rates(monkeypatch):
    """The rates of the steps of all runs, as the optimizer got them."""
    seen, set_rate = [], RunState.set_rate

    def note(state, rate, extra=None):
        seen.append(rate)
        set_rate(state, rate, extra)
        assert state.optimizers[0].param_groups[0]["lr"] == rate

    monkeypatch.setattr(RunState, "set_rate", note)
    return seen


def test_every_step_has_its_rate(rates):
    result = fit("erm", schedule="cosine", warmup_steps=8, validation=0)  # three epochs of six steps
    form = [0.05 * min(1, (i + 1) / 8) * 0.5 * (1 + math.cos(math.pi * i / 18)) for i in range(18)]
    assert rates == pytest.approx(form)
    assert result.history["learning_rate"] == pytest.approx(form[::6])


def test_milestones_are_those_of_epochs(rates):
    fit("erm", validation=0)  # of three epochs: at the second, and at the second again
    assert rates == pytest.approx([0.05] * 12 + [0.0005] * 6)


def test_where_epochs_have_fewer_steps_the_share_of_the_epoch_counts(rates):
    fit("crust", schedule="linear", validation=0, select_after=1, fraction=0.4, epochs=2)  # 6 steps, then 3 of 36
    assert rates == pytest.approx([0.05 * (1 - p / 2) for p in (*(i / 6 for i in range(6)), 1, 4 / 3, 5 / 3)])


def test_the_warm_up_counts_steps_whatever_the_schedule(rates):
    fit("crust", schedule="constant", warmup_steps=9, validation=0, select_after=1, fraction=0.4, epochs=2)
    assert rates == pytest.approx([0.05 * (i + 1) / 9 for i in range(9)])
    assert warmup_factor(10**6, 9) == 1


def test_stages_with_rates_of_their_own_keep_them():
    settings = TrainSettings(epochs=4, schedule="cosine", warmup_steps=100)
    own = Stage(factors=((0.5, 0.1),))
    assert [round(own.rate_at(epoch, settings, 0.3, 2), 3) for epoch in range(4)] == [0.1, 0.1, 0.01, 0.01]
    assert Stage(schedule=False).rate_at(3, settings, 0.9, 2) == 0.1
    assert Stage().rate_at(0, settings, 0.0, 2) == pytest.approx(0.1 * 3 / 100)


def test_a_new_stage_begins_its_schedule_and_its_warm_up_anew(rates):
    result = fit("co-teaching", schedule="linear", warmup_steps=2, validation=0)  # estimates the noise on halves first
    stages = [line["stage"] for line in result.history.lines]
    assert stages == ["estimate 1"] * 3 + ["estimate 2"] * 3 + ["train"] * 3  # of nine, nine and eighteen steps
    form = [[0.05 * min(1, (i + 1) / 2) * (1 - i / steps) for i in range(steps)] for steps in (9, 9, 18)]
    assert rates == pytest.approx([*form[0], *form[1], *form[2]])


@pytest.mark.parametrize("schedule", ["cosine", "one-cycle"])
@pytest.mark.parametrize("method", ["erm", "crust", "co-teaching"])
def test_a_resumed_run_has_the_same_bytes(tmp_path, method, schedule):
    settings = {"schedule": schedule, "warmup_steps": 10, "epochs": 4, "optimizer": "adamw", "learning_rate": 0.01}
    if method == "co-teaching":
        settings["noise_rate"] = 0.3
    whole = fit(method, examples(), **settings)
    fit(method, examples(), **settings, run_dir=tmp_path, stop_after=1)
    again = fit(method, examples(), **settings, run_dir=tmp_path, resume=True)
    assert weights(again) == weights(whole)
    assert told(again.history) == told(whole.history)

"""What fine-tuning asks of `fit`: optimizers, schedules, losses and outputs of the user's own."""

import math

import pytest
import torch
from tests.forked import run_script
from tests.refusals import refused
from tests.training.common import CLASSES, FAST, clouds, examples, fit_seen, network, weights
from torch import nn
from torch.nn import functional as F  # noqa: N812 - its usual name

import crust
from crust.training.method import Method


def groups(model):
    """Two rates, the last layer's ten times that of the first, and betas of one's own."""
    first, last = model[0].parameters(), model[-1].parameters()
    return torch.optim.AdamW([{"params": first, "lr": 1e-3}, {"params": last, "lr": 1e-2}], betas=(0.9, 0.98))


def fit(model=None, **settings):
    """`crust.fit` on the clouds; a setting that is None is not given."""
    given = {name: value for name, value in {"method": "erm", **FAST, **settings}.items() if value is not None}
    return fit_seen(network() if model is None else model, examples(), **given)


def falling(step, steps):
    return 1 - step / steps


class Pair(nn.Module):
    """Returns a tuple, of which the first is one logit for two classes."""

    def __init__(self):
        super().__init__()
        self.network = network()
        self.last = nn.Linear(CLASSES, 1)

    def forward(self, x):
        return self.last(self.network(x)), x


def first(output):
    return output[0]


def both(model):
    return torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)


COMMON = {"optimizer": groups, "schedule": falling, "warmup_steps": 3, "accumulate": 2, "device": "cpu", "ema": 0.9,
          "class_weight": "balanced", "patience": 20, "clip_norm": 1.0, "epochs": 6, "batch_size": 8,
          "seed": 2}  # fmt: skip
RUNS = {
    "smoothed": {**COMMON, "label_smoothing": 0.1},
    "own loss": {**COMMON, "loss": nn.CrossEntropyLoss(label_smoothing=0.2)},
    "erm": {**COMMON, "method": "erm", "label_smoothing": 0.1},
    "one logit": {**COMMON, "optimizer": both, "logits": first, "clip_norm": None},
}


@pytest.mark.parametrize("run", RUNS)
def test_a_run_with_all_of_it_goes_on_bit_for_bit(run, tmp_path):
    x, given, _ = clouds()
    settings, model = RUNS[run], network()
    if run == "one logit":
        given, model = given % 2, Pair()
    options = {"progress": False, "labels": given, **settings}
    whole = crust.fit(model, x_set(x, given), run_dir=tmp_path / "whole", **options)
    for stop in (1, 4):
        crust.fit(model, x_set(x, given), run_dir=tmp_path / "parts", stop_after=stop, resume=stop > 1, **options)
    parts = crust.fit(model, x_set(x, given), run_dir=tmp_path / "parts", resume=True, **options)
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, parts.model.state_dict()[name]), name
    assert (whole.probabilities() == parts.probabilities()).all()
    assert [line["loss"] for line in whole.history] == [line["loss"] for line in parts.history]
    with refused("changed-settings"):
        crust.fit(model, x_set(x, given), run_dir=tmp_path / "parts", resume=True, **{**options, "optimizer": "adamw"})


def x_set(x, given):
    return torch.utils.data.TensorDataset(torch.from_numpy(x), torch.as_tensor(given))


def test_batches_that_make_a_step_together_are_one_large_batch():
    parts = fit(accumulate=2, batch_size=8, epochs=2, validation=0.0)
    whole = fit(batch_size=16, epochs=2, validation=0.0)
    for name, value in whole.model.state_dict().items():
        assert parts.model.state_dict()[name] == pytest.approx(value, abs=1e-5), name


def test_groups_keep_their_rates_in_proportion_and_the_schedule_goes_by_steps():
    seen, rates = [], []

    def schedule(step, steps):
        seen.append((step, steps))
        return 1 - step / steps

    def own(model):
        optimizer = groups(model)
        optimizer.register_step_pre_hook(lambda *_: rates.append([group["lr"] for group in optimizer.param_groups]))
        return optimizer

    result = fit(
        model=network(), optimizer=own, schedule=schedule, accumulate=2, batch_size=8, epochs=3, validation=0.0,
        learning_rate=None,
    )  # fmt: skip
    steps = 3 * math.ceil(math.ceil(90 / 8) / 2)
    assert {n for _, n in seen} == {steps}
    assert sorted({step for step, _ in seen}) == list(range(steps))
    assert len(rates) == steps
    for step, (one, other) in enumerate(rates):
        assert one == pytest.approx(1e-3 * (1 - step / steps))
        assert other == pytest.approx(10 * one)
    assert result.history.lines[0]["learning_rate"] == pytest.approx(1e-3)


def test_a_function_of_the_step_alone_and_the_rise_at_the_beginning():
    result = fit(schedule=lambda step: 0.5, warmup_steps=12, batch_size=8, epochs=3, validation=0.0)
    assert [line["learning_rate"] for line in result.history] == pytest.approx([0.05 * 0.5 / 12, 0.025, 0.025])


def test_one_step_is_that_of_the_loss_by_hand():
    data = examples()
    y, x = torch.from_numpy(data.labels), data.inputs
    counts = torch.bincount(y, minlength=CLASSES)
    balanced = len(y) / (CLASSES * counts)
    each, plain = nn.CrossEntropyLoss(reduction="none", label_smoothing=0.1), nn.CrossEntropyLoss(reduction="none")
    numbers = torch.tensor([1.0, 0, 2])[y]
    ways = {
        "label_smoothing": ({"label_smoothing": 0.1}, lambda z: each(z, y).mean()),
        "balanced": ({"class_weight": "balanced"}, lambda z: (plain(z, y) * balanced[y]).mean()),
        "numbers": ({"class_weight": [1, 0, 2]}, lambda z: (plain(z, y) * numbers).mean()),
        "module": ({"loss": nn.CrossEntropyLoss(label_smoothing=0.1)}, lambda z: each(z, y).mean()),
        "function": ({"loss": lambda z, y: z.pow(2).sum(1)}, lambda z: z.pow(2).sum(1).mean()),
    }
    for name, (settings, loss) in ways.items():
        mine = network()
        loss(mine(x)).backward()
        with torch.no_grad():
            for p in mine.parameters():
                p -= 0.1 * p.grad
        found = fit(
            model=network(), epochs=1, batch_size=90, optimizer=lambda m: torch.optim.SGD(m.parameters(), 0.1),
            schedule=lambda step: 1.0, learning_rate=None, validation=0.0, **settings,
        )  # fmt: skip
        for key, value in mine.state_dict().items():
            assert found.model.state_dict()[key] == pytest.approx(value, abs=1e-6), (name, key)


def test_patience_ends_the_run_with_its_audit_and_the_best_model(tmp_path):
    options = {"epochs": 40, "learning_rate": 0.05, "patience": 3, "run_dir": tmp_path / "run"}
    result = fit(**options)
    assert len(result.history) < 40
    assert result.history.lines[-1]["stopped"] == "patience"
    scores = [line["val_accuracy"] for line in result.history]
    assert len(scores) - 1 - scores.index(max(scores)) == 3
    assert len(result.audit()) == 90
    again = fit(**options, resume=True)  # it is over
    assert weights(again) == weights(result)
    assert len(again.history) == len(result.history)


def test_one_logit_is_two_of_which_one_is_nothing():
    x, given, _ = clouds()

    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.pair = Pair()

        def forward(self, x):
            z = self.pair(x)[0]
            return torch.cat([torch.zeros_like(z), z], 1)

    def of(kind):
        with torch.random.fork_rng():
            torch.manual_seed(4)
            return kind()

    options = {"epochs": 4, "batch_size": 16, "progress": False, "optimizer": both}
    one = crust.fit(of(Pair), (x, given % 2), logits=first, **options)
    two = crust.fit(of(Two), (x, given % 2), **options)
    assert (one.predict_proba(x) == two.predict_proba(x)).all()
    assert (one.probabilities() == two.probabilities()).all()
    assert one.model(torch.zeros(1, 5))[0].shape == (1, 1)  # the network itself says what it always said
    assert one.deployable()(torch.from_numpy(x)).shape == (90, 2)


def test_a_run_with_outputs_of_its_own_is_opened_again(tmp_path):
    x, given, _ = clouds()
    result = crust.fit(Pair(), (x, given % 2), logits=first, run_dir=tmp_path, epochs=2, progress=False)
    assert (crust.load(tmp_path, Pair(), logits=first).predict_proba(x) == result.predict_proba(x)).all()
    with refused("missing-logits"):
        crust.load(tmp_path, Pair())


class OwnLoss(Method):
    name = "own"

    def losses(self, outputs, batch, context):
        return [output.logits.pow(2).mean() for output in outputs]


@pytest.mark.parametrize(
    ("code", "settings"),
    [
        ("own-loss", {"method": "gce", "loss": nn.CrossEntropyLoss()}),
        ("own-loss", {"method": "elr", "label_smoothing": 0.1}),
        ("own-loss", {"method": OwnLoss, "class_weight": "balanced"}),
        ("loss-shape", {"loss": F.cross_entropy}),
        ("bad-loss", {"loss": lambda z: z}),
        ("not-a-function", {"loss": "focal"}),
        ("not-a-function", {"logits": 0}),
        ("bad-logits", {"logits": lambda out: out["nothing"]}),
        ("not-a-function", {"optimizer": torch.optim.AdamW}),
        ("not-a-function", {"optimizer": torch.optim.SGD(network().parameters(), 0.1)}),
        ("not-an-optimizer", {"optimizer": lambda model: None, "learning_rate": None}),
        ("other-network", {"optimizer": lambda model: both(network()), "learning_rate": None}),
        ("options-exclude", {"optimizer": both, "learning_rate": 0.1}),
        ("options-exclude", {"loss": nn.CrossEntropyLoss(), "label_smoothing": 0.1}),
        ("options-exclude", {"schedule": falling, "lr_milestones": [0.5]}),
        ("bad-schedule", {"schedule": lambda step: float("nan")}),
        ("class-weight", {"class_weight": [1.0]}),
        ("bad-setting", {"class_weight": [0, 0, 0]}),
        ("bad-setting", {"accumulate": 0}),
        ("no-validation", {"patience": 2, "validation": 0.0}),
        ("unknown-setting", {"lr": 0.1}),
        ("unknown-setting", {"num_workers": 1}),
        ("unknown-setting", {"max_grad_norm": 1.0}),
        ("unknown-setting", {"scheduler": "linear"}),
    ],
)
def test_refusals(code, settings):
    with refused(code) as caught:
        fit(**settings)
    if code == "unknown-setting":
        assert "it is " in str(caught.value)


def test_outputs_that_are_no_logits_are_refused():
    with refused("model-probabilities"):
        fit(model=nn.Sequential(network(), nn.Softmax(1)))
    with refused("model-classes") as caught:
        fit(model=nn.Linear(5, 1))
    assert "regression" in str(caught.value)


LAUNCHED = """
    import os, sys
    from tests.training.common import fit, weights
    os.environ |= {"ACCELERATE_MIXED_PRECISION": "bf16", "ACCELERATE_GRADIENT_ACCUMULATION_STEPS": "3"}
    result = fit()
    own = result.config["experiment"]
    print(own["mixed_precision"], own["accumulate"], fit(mixed_precision="no").config["experiment"]["mixed_precision"])
    del os.environ["ACCELERATE_MIXED_PRECISION"], os.environ["ACCELERATE_GRADIENT_ACCUMULATION_STEPS"]
    print(weights(result) == weights(fit(mixed_precision="bf16", accumulate=3)))
"""


def test_what_accelerate_launch_was_told_is_honoured():
    import textwrap

    done = run_script(textwrap.dedent(LAUNCHED))
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["bf16", "3", "no", "True"]


def test_who_listens_ends_the_run_with_what_there_is(tmp_path):
    def listen(line):
        if line["epoch"] == 4:
            raise StopIteration

    options = {"epochs": 40, "audit_every": 40, "run_dir": tmp_path}
    result = fit(on_epoch_end=listen, **options)
    assert len(result.history) == 5
    assert len(result.audit()) == 90  # it was looked at
    assert crust.load(tmp_path, network()).history["loss"] == result.history["loss"]
    whole = fit(resume=True, **{**options, "epochs": 40})
    assert len(whole.history) == 40


def test_arrays_stay_as_they_are_where_that_is_asked_for():
    x, given, _ = clouds()
    result = crust.fit(network(), (x, given), normalise=False, epochs=1, batch_size=16, progress=False)
    assert result.config["inputs"]["mean"] is None
    with torch.no_grad():
        assert (result.model(torch.from_numpy(x)).argmax(1).numpy() == result.predict(x)).all()

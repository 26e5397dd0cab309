"""INCV: its formulas, the sets of phase A as they are made, phase B against plain training."""

import hashlib

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.training.common import CLASSES, clouds, examples, fit, network, told
from torch.nn import functional as F  # noqa: N812 - its usual name

from crust.methods import METHODS
from crust.methods.incv import (
    CANDIDATE,
    DISCARDED,
    SELECTED,
    Incv,
    best_until,
    discard_ratio,
    halves,
    largest_losses,
    selected_noise,
)
from crust.training.losses import cross_entropy
from crust.training.method import Method, Selection
from crust.training.noise_estimation import rate_from_agreement

SMALL = {"epochs": 4, "iterations": 2, "sub_epochs": 2, "validation": 0}

# ------------------------------------------------------------ formulas


@given(st.lists(st.integers(0, 1000), unique=True, max_size=50), st.integers(0, 99))
def test_halves_part_the_candidates(candidates, seed):
    a, b = halves(np.array(candidates, np.int64), np.random.default_rng(seed))
    assert sorted([*a.tolist(), *b.tolist()]) == sorted(candidates)
    assert 0 <= len(b) - len(a) <= 1


@given(st.lists(st.floats(0, 10), max_size=20), st.integers(0, 25))
def test_the_largest_losses(losses, count):
    found = largest_losses(np.array(losses), count)
    assert len(found) == min(count, len(losses))
    rest = set(range(len(losses))) - set(found.tolist())
    assert not rest or not len(found) or min(losses[i] for i in found) >= max(losses[i] for i in rest)


def test_discard_ratio_is_the_odds_up_to_two():
    assert discard_ratio(0.0) == 0.0
    assert discard_ratio(0.4) == pytest.approx(2 / 3)
    assert discard_ratio(2 / 3) == pytest.approx(2.0)
    assert discard_ratio(0.9) == 2.0


@pytest.mark.parametrize("kind", ["symmetric", "asymmetric"])
def test_noise_among_the_selected_by_counting(kind):
    """Label and prediction are two draws of the same noise; those that agree are selected."""
    rng, n, classes, rate = np.random.default_rng(0), 400_000, 4, 0.4
    away = np.ones((2, n), int) if kind == "asymmetric" else rng.integers(1, classes, (2, n))
    labels, predictions = np.where(rng.random((2, n)) < rate, away, 0)  # the true class is 0
    selected = labels == predictions
    assert selected_noise(rate, classes, kind) == pytest.approx((labels[selected] != 0).mean(), abs=0.005)


def test_the_more_noise_the_fewer_best_epochs():
    assert [best_until(rate, "symmetric") for rate in (0.3, 0.31, 0.6, 0.61)] == [4, 2, 2, 1]
    assert best_until(0.1, "asymmetric") == 1


# ------------------------------------------------------------ phase A


class Watched(Incv):
    """Writes down what happens at the end of every sub-fit."""

    seen: list[dict]

    def begin_stage(self, context):
        super().begin_stage(context)
        digest = hashlib.sha256()
        for value in context.networks[0].state_dict().values():
            digest.update(value.numpy().tobytes())
        self.seen = [*getattr(self, "seen", []), {"weights": digest.hexdigest(), "stage": context.stage}]

    def begin_epoch(self, context):
        found = super().begin_epoch(context)
        self.seen[-1]["trained"] = found.indices.copy()
        return found

    def end_stage(self, context):
        if not self.over:
            held = self.held_out()
            self.seen[-1] |= {"held": held, "before": self.sets.copy(), "sides": self.sides.copy()}
            self.seen[-1]["predicted"] = context.predict(held)
        super().end_stage(context)
        self.seen[-1]["after"] = self.sets.copy()


def watched(monkeypatch, **settings):
    """A run, and what was seen of it."""
    monkeypatch.setitem(METHODS, "incv", Watched)
    result = fit("incv", **{**SMALL, **settings})
    return result, result.recorder.state.plan.method


@pytest.mark.parametrize("noise_type", ["symmetric", "asymmetric"])
def test_sets_of_phase_a(monkeypatch, noise_type):
    result, method = watched(monkeypatch, noise_type=noise_type)
    labels = result.recorder.context.labels
    fits = [entry for entry in method.seen if "held" in entry]
    assert [line["stage"] for line in result.history][::2] == ["sub-fit 1.1", "sub-fit 1.2", "sub-fit 2.1",
                                                              "sub-fit 2.2", "co-teaching", "co-teaching"]  # fmt: skip
    for number, entry in enumerate(fits):
        before, after, held = entry["before"], entry["after"], entry["held"]
        start = fits[number - number % 2]["before"]
        assert (np.flatnonzero(entry["sides"] >= 0) == np.flatnonzero(start == CANDIDATE)).all()  # halves part them
        assert not np.isin(held, entry["trained"]).any()
        assert set(entry["trained"]) == set(np.flatnonzero((before == SELECTED) | (entry["sides"] == number % 2)))
        assert (after[before != CANDIDATE] == before[before != CANDIDATE]).all()  # S grows, nobody comes back
        new = np.flatnonzero((after == SELECTED) & (before != SELECTED))
        agree = held[entry["predicted"].predictions == labels[held]]
        assert set(new) == set(agree)  # predicted as labelled while held out
        gone = np.flatnonzero((after == DISCARDED) & (before != DISCARDED))
        if noise_type == "asymmetric":
            assert not len(gone)
        else:
            count = int(discard_ratio(method.rate) * len(agree))
            worst = held[largest_losses(entry["predicted"].losses, count)]
            assert set(gone) == set(worst) - set(agree)
    first = fits[0]
    agreement = (first["predicted"].predictions == labels[first["held"]]).mean()
    assert method.rate == rate_from_agreement(agreement, CLASSES)
    assert len({entry["weights"] for entry in fits}) == 1  # the same first weights
    final = method.seen[-1]["trained"]
    assert (final == np.flatnonzero(method.sets == SELECTED)).all()


def test_the_best_epoch_predicts_where_it_should(monkeypatch):
    """With much noise only in the first iteration; which epoch was best is in the history."""
    stages = []

    class Noted(Watched):
        def next_stage(self, done):
            found = super().next_stage(done)
            stages.append((self.fits, found and found.end))
            return found

    monkeypatch.setitem(METHODS, "incv", Noted)
    fit("incv", **SMALL, noise_type="asymmetric")
    assert dict(stages[:-1]) == {0: "best", 1: "best", 2: "last", 3: "last", 4: "last"}


def test_no_noise_discards_nobody(monkeypatch):
    _, _, true = clouds(90)
    _, method = watched(monkeypatch, labels=true, noise_type="symmetric", sub_epochs=6, learning_rate=0.1)
    assert method.rate < 0.2
    monkeypatch.setattr("crust.methods.incv.rate_from_agreement", lambda agreement, classes: 0.0)
    _, method = watched(monkeypatch, labels=true, noise_type="symmetric")
    assert not (method.sets == DISCARDED).any()


def test_the_noise_type_is_estimated_and_written_down():
    result = fit("incv", data=examples(300), epochs=2, iterations=1, sub_epochs=6, validation=0, learning_rate=0.1)
    found = result.config["noise_info"]
    assert found["noise_type"] == {"value": "asymmetric", "source": "estimated"}  # labels move to the next class
    assert found["noise_rate"]["source"] == "estimated"
    given = fit("incv", **SMALL, noise_type="symmetric").config["noise_info"]["noise_type"]
    assert given == {"value": "symmetric", "source": "given"}


@pytest.mark.parametrize(("epochs", "iterations", "sub_epochs"), [(40, 2, 10), (120, 4, 30), (200, 4, 50), (2, 2, 1)])
def test_iterations_and_sub_fits_scale(epochs, iterations, sub_epochs):
    from tests.methods.test_crust import context

    found = context()
    found.experiment = found.settings.model_copy(update={"epochs": epochs})
    method = Incv(Incv.Settings())
    method.begin_run(found)
    assert (method.iterations, method.sub_epochs) == (iterations, sub_epochs)
    assert method.next_stage(0).epochs == sub_epochs


def test_the_published_recipe():
    from tests.methods.test_crust import context

    found = context()
    method = Incv(Incv.Settings(recipe="published", sub_epochs=50))
    method.begin_run(found)
    stage = method.next_stage(0)
    settings = stage.settings(found.experiment)
    assert (settings.optimizer, settings.learning_rate) == ("adam", 1e-3)
    rates = [stage.rate_at(epoch, settings) for epoch in range(50)]
    assert rates == pytest.approx([1e-3] * 20 + [5e-4] * 10 + [2.5e-4] * 10 + [1e-4] * 10)
    method.over = True
    stage = method.next_stage(0)
    settings = stage.settings(found.experiment.model_copy(update={"epochs": 200}))
    rates = [stage.rate_at(epoch, settings) for epoch in range(200)]
    assert rates == pytest.approx([1e-3] * 80 + [1e-4] * 40 + [1e-5] * 40 + [1e-6] * 20 + [5e-7] * 20)
    assert method.next_stage(1) is None


def test_a_network_that_rests_costs_nothing():
    result = fit("incv", **SMALL, audit_every=100)
    first = result.history.lines[0]
    held = len(result.recorder.context.labels) - first["n_selected"]
    assert first["passes"] == {"forward": first["n_selected"] + held, "backward": first["n_selected"]}


# ------------------------------------------------------------ phase B


class Straight(Incv):
    """Phase B alone, on the even examples."""

    others, found_rate, kind = DISCARDED, 0.0, "symmetric"

    def begin_run(self, context):
        super().begin_run(context)
        self.over, self.rate, self.noise_type = True, self.found_rate, self.kind
        self.sets = np.where(np.arange(context.n) % 2, self.others, SELECTED).astype(np.int8)


class Pair(Method):
    """Two networks by cross-entropy on the even examples."""

    name, summary, networks = "pair", "", 2

    def begin_epoch(self, context):
        return Selection(np.arange(0, context.n, 2))

    def losses(self, outputs, batch, context):
        return [cross_entropy(output.logits, batch.y) for output in outputs]


def test_without_noise_and_candidates_it_is_plain_training(monkeypatch):
    monkeypatch.setitem(METHODS, "incv", Straight)
    monkeypatch.setitem(METHODS, "pair", Pair)
    ours, plain = (
        [n.state_dict() for n in fit(name, epochs=4, model=network(norm=True)).recorder.context.networks]
        for name in ("incv", "pair")
    )
    for a, b in zip(ours, plain, strict=True):
        assert all(torch.equal(a[name], b[name]) for name in a)
    assert not torch.equal(ours[0]["0.weight"], ours[1]["0.weight"])


def test_each_is_trained_on_what_the_other_picks(monkeypatch):
    class Half(Straight):
        others, found_rate = CANDIDATE, 0.6
        seen: list = []  # noqa: RUF012

        def prepare(self, batch, context):
            x, y, index = batch.x, batch.y, batch.index.copy()
            logits = [n.eval()(x).detach() for n in context.networks]
            for n in context.networks:
                n.train()
            found = super().prepare(batch, context)
            self.seen.append((context.epoch, x, y, index, logits, found, self.joining))
            return found

    monkeypatch.setitem(METHODS, "incv", Half)
    result = fit("incv", epochs=10, batch_size=16, model=network(norm=True))
    noise = selected_noise(0.6, CLASSES, "symmetric")
    context = result.recorder.context
    joined = {}
    for epoch, x, y, index, logits, batch, joining in Half.seen:
        n = round(len(index) * (1 - noise * min(1, epoch / 0.5)))
        assert [len(one) for one in batch.inputs] == [n, n]
        joined.setdefault(epoch, []).append(joining)
        if epoch <= 2:  # a fifth of ten
            assert not len(joining)
            losses = [F.cross_entropy(z, y, reduction="none") for z in logits]
            for k in (0, 1):
                picks = losses[1 - k].argsort(stable=True)[:n].sort().values
                assert torch.equal(batch.inputs[k], x[picks])
                assert torch.equal(batch.extra["labels"][k], y[picks])
        else:
            assert joining.shape[1] == min(16 * (context.n // 2) // ((context.n + 1) // 2), 8)
            assert (joining % 2 == 1).all()
            assert len(np.unique(joining)) == joining.size
    assert len(joined) == 10


def test_nobody_selected_is_everybody():
    """A network that cannot learn, with labels that it never predicts."""
    x, _, _ = clouds()
    with torch.no_grad():
        wrong = (network()(torch.from_numpy(x)).argmax(1).numpy() + 1) % CLASSES
    result = fit("incv", labels=wrong, learning_rate=1e-9, **SMALL)
    last = result.history.lines[-1]
    assert (last["selected"], last["n_selected"]) == (0, 90)
    assert not result.recorder.state.plan.method.joining.size  # who is there already does not join


# ------------------------------------------------------------ what it leaves


def test_opinions_are_the_sets():
    result = fit("incv", **SMALL)
    method = result.recorder.state.plan.method
    opinion = method.opinions()["unselected"]
    assert (opinion == np.array([0.0, 0.5, 1.0])[method.sets]).all()
    assert len(np.unique(opinion)) > 1


@pytest.mark.parametrize("stop", [1, 2, 3, 5, 8, 9, 11])
def test_resumed_anywhere_it_is_the_same_run(tmp_path, stop, whole):
    fit("incv", **SMALL, run_dir=tmp_path, stop_after=stop)
    again = fit("incv", **SMALL, run_dir=tmp_path, resume=True)
    assert told(again.history) == told(whole.history)
    assert everything(again) == everything(whole)


@pytest.fixture(scope="module")
def whole():
    return fit("incv", **SMALL)


def everything(result) -> str:
    digest = hashlib.sha256(result.recorder.state.plan.method.sets.tobytes())
    for one in result.recorder.context.networks:
        for value in one.state_dict().values():
            digest.update(value.numpy().tobytes())
    return digest.hexdigest()

"""T-Revision: its weights and losses by hand, its gradients by finite differences, its three stages."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.training.common import CLASSES, clouds, examples, fit, told, weights
from torch.nn import functional as F  # noqa: N812 - its usual name

from crust import noise
from crust.methods import METHODS
from crust.methods.t_revision import (
    TRevision,
    importance,
    noisy,
    prob_label_wrong,
    project_transition,
    released_importance,
    reweighted,
)
from crust.training.evaluation import predict
from crust.training.losses import anchor_T

CAP = 20.0


def drawn(n=6, classes=4, seed=0, spread=1.0):
    """Logits, labels, a transition matrix and a slack in float64."""
    generator = torch.Generator().manual_seed(seed)
    logits = spread * torch.randn(n, classes, generator=generator, dtype=torch.float64)
    y = torch.randint(classes, (n,), generator=generator)
    T = torch.rand(classes, classes, generator=generator, dtype=torch.float64) + classes * torch.eye(classes)
    slack = 0.05 * torch.randn(classes, classes, generator=generator, dtype=torch.float64)
    return logits, y, T / T.sum(1, keepdim=True), slack


@given(st.integers(1, 8), st.integers(2, 6), st.integers(0, 10**6))
@settings(max_examples=30)
def test_no_noise_is_cross_entropy(n, classes, seed):
    logits, y, _, _ = drawn(n, classes, seed)
    T = project_transition(torch.eye(classes, dtype=torch.float64), torch.zeros(classes, classes, dtype=torch.float64))
    for weight in (importance(logits, y, T, CAP), released_importance(logits, y, T, torch.zeros_like(T), CAP)):
        assert torch.allclose(reweighted(logits, y, weight), F.cross_entropy(logits, y))
    logits.requires_grad_()
    (ours,) = torch.autograd.grad(reweighted(logits, y, importance(logits, y, T, CAP)), logits)
    (plain,) = torch.autograd.grad(F.cross_entropy(logits, y), logits)
    assert torch.allclose(ours, plain)


def test_weights_by_hand():
    logits, y, T, _ = drawn()
    p = torch.softmax(logits, 1).numpy()
    found = importance(logits, y, T, CAP).numpy()
    for i, label in enumerate(y.tolist()):
        given_label = sum(p[i, j] * float(T[j, label]) for j in range(4))
        assert found[i] == pytest.approx(p[i, label] / given_label)
        assert float(noisy(torch.from_numpy(p), T, y)[i]) == pytest.approx(given_label)


def test_weights_have_a_cap_and_a_floor():
    T = torch.tensor([[0.01, 0.99], [0.5, 0.5]], dtype=torch.float64)
    sure = torch.tensor([[60.0, -60.0], [-60.0, 60.0]], dtype=torch.float64)
    found = importance(sure, torch.tensor([0, 0]), T, CAP)
    assert found.tolist() == pytest.approx([CAP, 0.0], abs=1e-9)
    nowhere = torch.tensor([[1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)  # label 1 is impossible
    assert torch.isfinite(importance(sure, torch.tensor([1, 1]), nowhere, CAP)).all()


def test_in_the_second_stage_a_weight_is_a_constant():
    logits, y, T, _ = drawn()
    logits.requires_grad_()
    weight = importance(logits, y, T, CAP).detach()
    (ours,) = torch.autograd.grad(reweighted(logits, y, weight), logits)
    constant = torch.tensor(weight.tolist(), dtype=torch.float64)
    (plain,) = torch.autograd.grad((constant * F.cross_entropy(logits, y, reduction="none")).mean(), logits)
    assert torch.equal(ours, plain)


@pytest.mark.parametrize("seed", range(3))
def test_in_the_third_stage_gradients_reach_the_slack(seed):
    logits, y, T, slack = drawn(seed=seed)
    logits.requires_grad_()
    slack.requires_grad_()

    def loss(z, d):
        return reweighted(z, y, importance(z, y, project_transition(T, d), CAP))

    assert torch.autograd.gradcheck(loss, (logits, slack))
    (found,) = torch.autograd.grad(loss(logits, slack), slack)
    assert float(found.abs().max()) > 1e-4
    zero = torch.zeros_like(slack).requires_grad_()  # where revision begins
    assert torch.autograd.gradcheck(lambda d: loss(logits, d), (zero,))


def test_the_released_weights_by_hand_and_by_finite_differences():
    logits, y, T, slack = drawn(n=8)
    p = torch.softmax(logits, 1)
    found = released_importance(logits, y, T, slack, CAP)
    for i in range(8):
        seen = T + (i + 1) * slack
        assert float(found[i]) == pytest.approx(float(p[i, y[i]] / (p[i] @ seen)[y[i]]))
    slack.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda d: reweighted(logits, y, released_importance(logits, y, T, d, CAP)), (slack,)
    )


def test_the_released_gradient_of_the_slack_is_inflated():
    """By a bit more than half the batch, as each example sees one more slack than the one before it."""
    zero = torch.zeros(4, 4, dtype=torch.float64, requires_grad=True)
    ratios = []
    for seed in range(20):
        logits, y, T, _ = drawn(n=8, seed=seed)
        (inflated,) = torch.autograd.grad(reweighted(logits, y, released_importance(logits, y, T, zero, CAP)), zero)
        (right,) = torch.autograd.grad(reweighted(logits, y, importance(logits, y, T + zero, CAP)), zero)
        ratios.append(float(inflated.abs().sum() / right.abs().sum()))
    assert np.mean(ratios) == pytest.approx(4.5, abs=0.5)


@given(st.integers(2, 6), st.integers(0, 10**6), st.floats(0, 3))
@settings(max_examples=50)
def test_projected_rows_sum_to_one(classes, seed, size):
    _, _, T, slack = drawn(1, classes, seed)
    found = project_transition(T, slack * 20 * size)
    assert torch.allclose(found.sum(1), torch.ones(classes, dtype=torch.float64))
    assert float(found.min()) >= 0
    assert torch.allclose(project_transition(T, torch.zeros_like(T)), T)


def test_a_row_with_nothing_left_is_the_estimate():
    T = torch.full((3, 3), 1 / 3)
    slack = torch.zeros(3, 3)
    slack[1] = -5
    slack.requires_grad_()
    found = project_transition(T, slack)
    assert torch.allclose(found, T)
    (gradient,) = torch.autograd.grad(found.square().sum(), slack)
    assert torch.isfinite(gradient).all()


def test_error_score_is_one_minus_the_posterior_of_the_label():
    rng = np.random.default_rng(0)
    T = noise.transition_matrix("pair-flip", 0.3, 4)
    p, labels = rng.dirichlet(np.ones(4), 20), rng.integers(0, 4, 20)
    found = prob_label_wrong(p, labels, T)
    for i, label in enumerate(labels):
        joint = p[i] * T[:, label]  # of the true class and this label
        assert found[i] == pytest.approx(1 - joint[label] / joint.sum())


# ------------------------------------------------------------ the three stages

SMALL = {"epochs": 3, "estimate_epochs": 4, "slack_rate": 1e-3}
DATA = examples(120)


class Watched(TRevision):
    """Writes down how a stage begins and ends."""

    log: list[dict]

    def begin_stage(self, context):
        super().begin_stage(context)
        self.log = [*getattr(self, "log", []), {"begin": weights_of(context)}]

    def end_stage(self, context):
        self.log[-1] |= {"end": weights_of(context), "said": predict(context, None, 0, None, False).probabilities}
        super().end_stage(context)
        self.log[-1]["T"] = self.transition()


def weights_of(context):
    return {name: value.clone() for name, value in context.networks[0].state_dict().items()}


@pytest.fixture(scope="module")
def whole():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(METHODS, "t-revision", Watched)
        return fit("t-revision", DATA, **SMALL)


def test_stages_follow_each_other(whole):
    assert [line["stage"] for line in whole.history] == ["estimate"] * 4 + ["reweight"] * 3 + ["revise"] * 3
    assert [line["counts"] for line in whole.history] == [False] * 7 + [True] * 3
    log = whole.recorder.state.plan.method.log
    for before, after in pairwise(log):
        assert all(torch.equal(before["end"][name], after["begin"][name]) for name in after["begin"])


def test_the_estimate_is_from_the_anchors_of_the_best_epoch(whole):
    log = whole.recorder.state.plan.method.log
    assert log[0]["T"] == pytest.approx(anchor_T(log[0]["said"], 0.97), abs=1e-6)
    assert log[1]["T"] == pytest.approx(log[0]["T"])  # the second stage does not touch it
    assert np.abs(log[2]["T"] - log[0]["T"]).max() > 1e-4
    assert log[2]["T"].sum(axis=1) == pytest.approx(np.ones(CLASSES))
    shown = [line.get("diagonal") for line in whole.history]
    assert shown[:4] == [None] * 4
    assert shown[4:8] == pytest.approx([log[0]["T"].diagonal().mean()] * 4)


def test_the_slack_moves_by_its_own_rate_and_the_network_hardly(whole):
    method = whole.recorder.state.plan.method
    steps = 3 * int(np.ceil(108 / 16))
    assert 1e-3 < float(method.slack.detach().abs().max()) <= steps * 1e-3 * 1.5  # Adam: about one rate a step
    log = method.log
    moved = max(float((log[2]["end"][name] - log[2]["begin"][name]).abs().max()) for name in log[2]["begin"])
    assert 0 < moved < steps * 5e-7 * 1.5


def test_weights_are_kept_by_the_noisy_labels_that_they_predict(whole):
    """The history's score is the accuracy of argmax pT on the validation set."""
    context, method = whole.recorder.context, whole.recorder.state.plan.method
    p = context.predict(examples=context.validation).probabilities
    right = (p.astype(np.float64) @ method.transition()).argmax(axis=1) == context.validation.labels
    assert whole.history.lines[-1]["score"] == pytest.approx(right.mean())


def test_opinions_are_error_scores(whole):
    method, context = whole.recorder.state.plan.method, whole.recorder.context
    (opinion,) = method.opinions().values()
    assert opinion == pytest.approx(prob_label_wrong(method.log[-1]["said"], context.labels, method.log[-1]["T"]))
    assert opinion.min() >= 0
    assert opinion.max() <= 1
    wrong = context.labels != clouds(120)[2][whole.data.kept]
    assert opinion[wrong].mean() > opinion[~wrong].mean() + 0.2


@pytest.mark.parametrize("stop", [1, 4, 5, 7, 8, 9])
def test_resumed_anywhere_it_is_the_same_run(tmp_path, stop, whole):
    fit("t-revision", DATA, **SMALL, run_dir=tmp_path, stop_after=stop)
    again = fit("t-revision", DATA, **SMALL, run_dir=tmp_path, resume=True)
    assert told(again.history) == told(whole.history)
    assert weights(again) == weights(whole)
    ours, theirs = again.recorder.state.plan.method, whole.recorder.state.plan.method
    assert torch.equal(ours.T, theirs.T)
    assert torch.equal(ours.slack, theirs.slack)
    assert (ours.error_scores == theirs.error_scores).all()


def test_the_released_revision_is_another(whole):
    other = fit("t-revision", DATA, **SMALL, revision="released").recorder.state.plan.method
    ours = whole.recorder.state.plan.method
    assert torch.equal(ours.T, other.T)
    assert not torch.equal(ours.slack, other.slack)


@pytest.mark.parametrize(
    ("epochs", "n", "first"), [(200, 45_000, 20), (120, 45_000, 12), (40, 45_000, 4), (40, 9000, 10), (3, 60, 1)]
)
def test_the_first_stage_scales(epochs, n, first):
    from tests.methods.test_crust import context

    found = context()
    found.experiment, found.n = found.settings.model_copy(update={"epochs": epochs}), n
    method = TRevision(TRevision.Settings())
    method.begin_run(found)
    assert [stage.epochs for stage in method.stages()] == [first, None, None]


def test_many_classes_have_their_surest_examples_as_anchors():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(21), 200)
    for anchors, q in (("auto", None), ("percentile", 0.97), ("argmax", None)):
        method = TRevision(TRevision.Settings(anchors=anchors))
        assert method.anchored(P).numpy() == pytest.approx(anchor_T(P, q), abs=1e-6)
    assert TRevision(TRevision.Settings()).anchored(P[:, :20]).numpy() == pytest.approx(anchor_T(P[:, :20]), abs=1e-6)


def test_without_a_validation_set_the_last_weights_are_taken():
    result = fit("t-revision", DATA, **SMALL, validation=0)
    assert len(result.history) == 10
    assert np.isfinite(result.history["loss"]).all()

"""MentorNet: the curricula, the mentor that learns them, and the student that is weighed."""

import numpy as np
import pytest
import torch
from tests.methods.single import auroc, batch_of, hand_made, logits_for, resumes, same_as_erm
from tests.training.common import clouds, fit, network, weights
from torch.nn import functional as F  # noqa: N812 - its usual name

from crust._util import seeding
from crust.errors import InputError
from crust.methods.mentornet import curricula
from crust.methods.mentornet.mentor import Mentor, from_table, grid, taught
from crust.methods.mentornet.mentornet import MentorNet, MentorNetSettings

OPEN = {"variant": "self-paced", "percentile": 1.0, "dropout": 0.0}  # lets everyone in
PD = {"noise_rate": 0.3, "mentor_steps": 60}


def method(**settings) -> MentorNet:
    return MentorNet(MentorNetSettings(**settings))


@pytest.fixture(scope="module")
def mentor() -> Mentor:
    """Taught as in a run with seed 0."""
    steps = MentorNetSettings().mentor_steps
    return taught(grid, steps, seeding.torch_rng(0, "mentor"))


# ------------------------------------------------------------ curricula


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        (0, [1, 1, 1, 1, 1]),
        (18, [1, 1, 1, 1, 1]),
        (19, [1, 1, 0, 0, 0]),
        (89, [1, 1, 0, 0, 0]),
        (90, [1, 1, 0.75, 0.25, 0]),
        (99, [1, 1, 0.75, 0.25, 0]),
    ],
)
def test_the_predefined_curriculum_at_its_borders(time, expected):
    difference = torch.tensor([-1.0, 0.0, 0.25, 0.75, 1.5])
    assert curricula.predefined(difference, torch.full((5,), time)).tolist() == expected


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.9])
def test_with_constant_losses_the_difference_vanishes_geometrically(decay):
    losses, threshold = torch.full((8,), 3.0), 0.0
    for step in range(1, 12):
        threshold = curricula.moved(threshold, losses, 0.7, decay)
        assert 3.0 - threshold == pytest.approx(3.0 * decay**step, abs=1e-6)
    assert curricula.moved(None, losses, 0.7, decay) == 3.0


@pytest.mark.parametrize("share", [0.01, 0.3, 0.5, 0.7, 0.99, 1.0])
@pytest.mark.parametrize("n", [1, 2, 10, 128])
def test_the_percentile_is_the_nearest_rank(n, share):
    losses = torch.randn(n, generator=torch.Generator().manual_seed(n))
    found = curricula.nearest_rank(losses, share)
    assert found in losses.tolist()
    assert (losses <= found).float().mean() >= share - 1e-6
    smaller = losses[losses < found]
    assert not len(smaller) or (losses <= smaller.max()).float().mean() < share


def test_percentiles_are_the_published_ones_at_the_published_rates():
    assert [curricula.percentile("pd", rate) for rate in (0.2, 0.4, 0.8)] == [0.75, 0.75, 0.5]
    assert [curricula.percentile("dd", rate) for rate in (0.2, 0.4, 0.8)] == [0.8, 0.6, 0.5]
    assert curricula.percentile("dd", 0.3) == pytest.approx(0.7)
    assert [curricula.percentile("self-paced", rate) for rate in (0.0, 0.8)] == [0.7, 0.7]


# ------------------------------------------------------------ the mentor


def test_the_mentor_reproduces_the_closed_form(mentor):
    loss, difference, time = torch.meshgrid(
        torch.cat([torch.arange(100) * 0.1, torch.arange(10.0, 30.0)]),
        torch.arange(100) * 0.1 - 5,
        torch.arange(100.0),
        indexing="ij",
    )
    loss, difference, time = loss.flatten(), difference.flatten(), time.flatten().long()
    with torch.no_grad():
        miss = (mentor(loss, difference, time).sigmoid() - curricula.predefined(difference, time)).abs()
    assert miss.mean() < 0.05
    for part in (time <= 18, (time > 18) & (time < 90)):
        assert miss[part].mean() < 0.05
    assert miss[time >= 90].mean() < 0.1


def test_the_mentor_reproduces_the_closed_form_on_losses_of_a_student(mentor):
    """Differences as they come in a batch, not on a grid."""
    rng = torch.Generator().manual_seed(1)
    misses = []
    for time in range(100):
        losses = torch.cat([0.3 * torch.rand(70, generator=rng), 2 + torch.randn(30, generator=rng).abs()])
        difference = losses - curricula.nearest_rank(losses, 0.75)
        wanted = curricula.predefined(difference, torch.full((100,), time))
        misses.append((mentor.weigh(losses, difference, time) - wanted).abs().mean())
    assert torch.stack(misses).mean() < 0.05


def test_weights_are_weights_without_gradients(mentor):
    losses = torch.tensor([0.0, 1e-3, 1.0, 30.0, 1e4], requires_grad=True)
    for time in (0, 18, 19, 50, 99):
        found = mentor.weigh(losses, losses - 1.0, time)
        assert ((found >= 0) & (found <= 1)).all()
        assert not found.requires_grad
    assert not any(p.requires_grad for p in mentor.parameters())


def test_the_mentor_depends_on_the_seed_alone():
    def first(seed):
        torch.manual_seed(int(np.random.default_rng().integers(1000)))  # what else was drawn does not matter
        return taught(grid, 5, seeding.torch_rng(seed, "mentor")).state_dict()

    one, again, other = first(0), first(0), first(1)
    assert all(one[name].equal(again[name]) for name in one)
    assert not one["time"].equal(other["time"])


def test_times_stay_as_they_were_drawn():
    generator = seeding.torch_rng(0, "mentor")
    assert taught(grid, 20, generator).time.equal(Mentor(seeding.torch_rng(0, "mentor")).time)


def test_a_mentor_learns_whose_label_is_right():
    rng = torch.Generator().manual_seed(0)
    right = torch.rand(4000, generator=rng) < 0.7
    loss = torch.where(right, 0.5 * torch.rand(4000, generator=rng), 2 + torch.rand(4000, generator=rng))
    time = torch.randint(100, (4000,), generator=rng)
    rows = (loss, loss - curricula.nearest_rank(loss, 0.9), time, right.float())
    found = taught(from_table(rows), 150, rng, binary=True)
    with torch.no_grad():
        said = found(*rows[:3]) > 0
    assert (said == right).float().mean() > 0.98


# ------------------------------------------------------------ the student


def step(one: MentorNet, context, size=16, logits=None):
    """The loss of a batch, its outputs and the batch."""
    batch = batch_of(context, size)
    outputs = logits_for(batch) if logits is None else logits
    one.begin_epoch(context)
    return one.losses(outputs, batch, context)[0], outputs[0].logits, batch


def started(context, **settings) -> MentorNet:
    one = method(**settings)
    one.begin_run(context)
    one.begin_stage(context)
    return one


def test_self_paced_with_everyone_in_is_cross_entropy():
    found = hand_made(weight_decay=0.0)
    loss, logits, batch = step(started(found, **OPEN, decay=0.0), found)
    assert loss.equal(F.cross_entropy(logits, batch.y, reduction="none").mean())
    assert same_as_erm("mentornet", **OPEN, decay=0.0)


def test_self_paced_takes_the_smaller_losses_and_divides_by_the_batch():
    found = hand_made(weight_decay=0.0)
    one = started(found, variant="self-paced", percentile=0.5)
    loss, logits, batch = step(one, found)
    losses = F.cross_entropy(logits, batch.y, reduction="none").detach()
    kept = losses <= losses.sort().values[7]
    assert int(kept.sum()) == 8
    assert loss.item() == pytest.approx((losses * kept).sum().item() / 16, rel=1e-6)
    loss.backward()
    assert (logits.grad[~kept] == 0).all()
    assert (logits.grad[kept] != 0).all()
    assert one.error_scores._sums[batch.index].tolist() == (~kept).double().tolist()


def test_at_a_threshold_of_zero_self_paced_takes_nobody_and_no_step_is_made():
    found = hand_made()
    assert step(started(found, variant="self-paced", first="zero", decay=0.99), found)[0] is None


@pytest.mark.parametrize(("scale", "share"), [(True, 0.5), (False, 1.0)])
def test_weight_decay_is_scaled_by_the_mean_weight(scale, share):
    found = hand_made(weight_decay=0.01)
    one = started(found, variant="self-paced", percentile=0.5, scale_decay=scale)
    model = found.networks[0]
    loss, logits, batch = step(one, found)
    plain = F.cross_entropy(logits, batch.y, reduction="none").detach()
    assert loss.item() == pytest.approx(plain.sort().values[:8].sum().item() / 16, rel=1e-6)  # the decay is not shown
    loss.backward()
    for parameter in model.parameters():
        given = 0.0 if parameter.grad is None else parameter.grad
        total = given + 0.01 * parameter  # what sgd makes of it
        assert torch.allclose(total, share * 0.01 * parameter, atol=1e-7)


def test_decoupled_decay_is_left_alone():
    found = hand_made(optimizer="adamw")
    loss, logits, _ = step(started(found, variant="self-paced", percentile=0.5), found)
    loss.backward()
    assert logits.grad.any()
    assert all(p.grad is None for p in found.networks[0].parameters())


def test_the_mentor_weighs_after_the_burn_in(mentor):
    found = hand_made(weight_decay=0.0, epochs=100, knowledge={"noise_rate": 0.6})
    one = method(dropout=0.0)
    one.begin_run(found)
    one.begin_stage = None  # no teaching here
    one.mentor = mentor
    for epoch, all_in in ((0, True), (16, True), (50, False)):
        found.epoch = epoch
        loss, logits, batch = step(one, found)
        losses = F.cross_entropy(logits, batch.y, reduction="none").detach()
        if all_in:
            assert loss.item() == pytest.approx(losses.mean().item(), rel=1e-6)
        else:
            v = mentor.weigh(losses, losses - one.threshold, 50)
            assert 0.3 < v.mean() < 0.9
            assert loss.item() == pytest.approx((v * losses).mean().item(), rel=1e-6)
    assert one._facts["percentile"] == pytest.approx(0.625)


@pytest.mark.parametrize(("variant", "last"), [("pd", 99), ("self-paced", 99), ("dd", 18)])
def test_time_runs_in_hundredths_whatever_the_epochs(variant, last, mentor):
    found = hand_made(epochs=3, batch_size=16)  # 60 examples: 4 batches
    one = method(variant=variant, clean_share=0.1, percentile=0.7)
    one.mentor = mentor
    times = []
    for epoch in range(3):
        found.epoch = epoch
        one.begin_epoch(found)
        for found.step in range(4):
            times.append(one._time(found))
    assert times == [min(last, 100 * i // 12) for i in range(12)]


@pytest.mark.parametrize(
    ("share", "n", "kept"), [(0.5, 16, 8), (0.05, 16, 15), (0.0, 16, 16), (0.9, 4, 1), (0.5, 1, 1)]
)
def test_dropout_leaves_out_a_share_of_the_batch(share, n, kept):
    found, one = hand_made(), method(dropout=share)
    drawn = one._kept(n, 0, found)
    assert drawn.sum() == kept
    assert drawn.equal(one._kept(n, 0, found))  # the same when it is run again
    found.step = 1
    if share == 0.5 and n > 1:
        assert not drawn.equal(one._kept(n, 0, found))


def test_dropout_follows_the_published_schedule():
    found = hand_made()
    assert [int(method()._kept(100, time, found).sum()) for time in (0, 16, 17, 99)] == [50, 50, 95, 95]
    assert [int(method(variant="self-paced")._kept(100, time, found).sum()) for time in (0, 99)] == [100, 100]


@pytest.mark.parametrize("settings", [{"variant": "self-paced"}, {"percentile": 0.7, "mentor_steps": 20}])
def test_the_rate_is_not_estimated_where_it_does_not_matter(settings):
    result = fit("mentornet", **settings)
    assert result.history["stage"] == ["train"] * 3
    assert result.config["noise_info"] == {}
    assert result.history["percentile"] == [0.7] * 3


def test_the_rate_is_estimated_by_default_and_chooses_the_percentile():
    result = fit("mentornet", mentor_steps=20)
    known = result.config["noise_info"]["noise_rate"]
    assert known["source"] == "estimated"
    assert result.history["percentile"][-1] == curricula.percentile("pd", known["value"])


# ------------------------------------------------------------ some labels are known to be right


def test_dd_says_what_it_needs():
    with pytest.raises(InputError, match="true labels of some examples: allow it a clean_share"):
        method(variant="dd")
    with pytest.raises(InputError, match="variant dd needs true labels: give true_labels, or use another variant"):
        fit("mentornet", variant="dd", clean_share=0.2)  # before anything is estimated


def test_dd_sees_only_the_share_it_is_allowed():
    found = hand_made(truth=True)
    one = started(found, variant="dd", clean_share=0.2)
    clean = one._clean(found)
    assert len(clean) == 12
    assert one.begin_epoch(found).indices.tolist() == list(range(60))
    published = started(found, variant="dd", clean_share=0.2, first_stage="clean")
    assert published.begin_epoch(found).indices.tolist() == clean.tolist()
    hidden = np.setdiff1d(np.arange(60), clean)
    one.dump = np.random.default_rng(0).random((3, 12)).astype(np.float32)
    rows = one._rows(found)
    found.true_labels = found.true_labels.copy()
    found.true_labels[hidden] = -1  # whatever the others' are
    assert all(a.equal(b) for a, b in zip(rows, one._rows(found), strict=True))
    assert found.noise_info["clean_labels"].value == 12
    assert found.noise_info["clean_labels"].source == "true"


@pytest.mark.parametrize("first_stage", ["all", "clean"])
def test_dd_writes_down_the_losses_of_its_first_stage(first_stage):
    own = {"variant": "dd", "clean_share": 0.3, "first_stage": first_stage, "mentor_steps": 40, "noise_rate": 0.3}
    result = fit("mentornet", true_labels=clouds()[2], **own)
    one, context = result.recorder.method, result.recorder.context
    clean = one._clean(context)
    trained_on = clean if first_stage == "clean" else np.arange(context.n)
    assert result.history["stage"] == ["losses"] * 3 + ["train"] * 3
    assert result.history["n_selected"] == [len(trained_on)] * 3 + [context.n] * 3
    assert one.dump.shape == (3, round(0.3 * context.n))
    assert np.isfinite(one.dump).all()
    first = network()
    first_batch = np.intersect1d(context_order(context, trained_on)[:16], clean)
    assert len(first_batch) > 2
    with torch.no_grad():
        x, y = context.train.inputs[first_batch], torch.from_numpy(context.labels[first_batch])
        losses = F.cross_entropy(first(x), y, reduction="none").numpy()
    assert one.dump[0][np.searchsorted(clean, first_batch)] == pytest.approx(losses, rel=1e-4)
    _, difference, time, wanted = one._rows(context)
    assert 0.85 <= float((difference <= 0).float().mean()) <= 0.95
    assert 0 <= time.min() < 10
    assert 90 < time.max() < 100
    assert wanted.reshape(3, -1)[0].tolist() == (context.labels == context.true_labels)[clean].tolist()


def context_order(context, indices):
    """The order of the first epoch of the first stage."""
    order = seeding.numpy_rng(0, "order", 0, 0).permutation(len(indices))
    return indices[order]


# ------------------------------------------------------------ runs


@pytest.mark.parametrize(
    ("settings", "stops"),
    [
        ({"variant": "self-paced"}, [1, 3]),
        (PD, [2]),
        ({**PD, "variant": "dd", "clean_share": 0.3, "true_labels": clouds()[2]}, [2, 4, 6]),
    ],
    ids=["self-paced", "pd", "dd"],
)
def test_it_resumes_to_the_byte(tmp_path, settings, stops):
    resumes(tmp_path, "mentornet", stops, epochs=4, **settings)


def test_a_run_repeats_by_its_seed():
    one, again, other = (fit("mentornet", **PD, seed=seed) for seed in (0, 0, 1))
    assert weights(one) == weights(again) != weights(other)


def test_the_mentor_finds_the_wrong_labels():
    result = fit("mentornet", epochs=12, validation=0, noise_rate=0.3, mentor_steps=200)
    _, given, true = clouds()
    assert auroc(result.recorder.method.opinions()["mentor"], given != true) > 0.9
    assert result.history["percentile"] == [0.75] * 12
    assert result.history["mean_weight"][0] == 1.0
    assert 0.5 < result.history["mean_weight"][-1] < 1.0
    assert all(value > 0 for value in result.history["threshold"])


@pytest.mark.parametrize(("name", "value"), [("percentile", 0), ("decay", 1.0), ("variant", "x"), ("clean_share", 2)])
def test_impossible_settings_get_a_sentence(name, value):
    with pytest.raises(InputError, match=f"setting {name}"):
        fit("mentornet", **{name: value})

"""The members of the CRUST family against slow, obvious versions of what they compute."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.refusals import refused
from tests.training.common import CLASSES, clouds, examples, fit, network

import crust
from crust import data, noise
from crust.data import from_arrays
from crust.errors import InputError
from crust.methods import METHODS
from crust.methods.crust_released import central_by_label
from crust.training.context import Context
from crust.training.distributed import Processes
from crust.training.method import Batch
from crust.training.settings import TrainSettings


def context(epoch: int = 0, n: int = 60, **more) -> Context:
    settings = TrainSettings(epochs=5, batch_size=16)
    found = Context(
        examples(n), CLASSES, [network()], settings, Processes(cpu=True), augment=False, validation=None, **more
    )
    found.epoch = epoch
    return found


def by_hand(found: Context):
    """p - y and predictions of all training examples."""
    with torch.no_grad():
        p = torch.softmax(found.networks[0].eval()(found.train.inputs), dim=1).numpy()
    return p - np.eye(CLASSES, dtype=np.float32)[found.labels], p.argmax(axis=1)


def algorithm_1(proxies, predictions, k):
    """Medoids and cluster sizes: greedy facility location in each predicted class, in Algorithm 1's own words."""
    n = len(proxies)
    wide = proxies.astype(np.float64)
    distance = np.linalg.norm(wide[:, None] - wide[None], axis=2)
    names, sizes = np.unique(predictions, return_counts=True)
    budget = dict.fromkeys(names.tolist(), 1)
    while sum(budget.values()) < k:
        lack = {g: k * s / n - budget[g] for g, s in zip(names.tolist(), sizes, strict=True) if budget[g] < s}
        budget[max(lack, key=lack.get)] += 1
    medoids, clusters = [], {}
    for group, count in budget.items():
        members = np.flatnonzero(predictions == group)
        chosen: list[int] = []
        for _ in range(count):
            rest = [j for j in members if j not in chosen]
            costs = [distance[np.ix_(members, [*chosen, j])].min(axis=1).sum().round(6) for j in rest]  # ties are real
            chosen.append(int(rest[int(np.argmin(costs))]))
        nearest = distance[np.ix_(members, chosen)].argmin(axis=1)
        for position, medoid in enumerate(chosen):
            clusters[medoid] = set(members[nearest == position].tolist())
        medoids += chosen
    return medoids, clusters


def test_crust_paper_is_algorithm_1():
    found = context()
    method = METHODS["crust-paper"](METHODS["crust-paper"].Settings(fraction=0.3))
    selection = method.begin_epoch(found)
    medoids, clusters = algorithm_1(*by_hand(found), 18)
    assert set(selection.indices.tolist()) == set(medoids)
    sizes = np.array([len(clusters[j]) for j in selection.indices.tolist()])
    assert sizes.sum() == 60
    assert selection.weights == pytest.approx(sizes / sizes.mean(), rel=1e-5)
    for medoid, partner in zip(selection.indices.tolist(), selection.partners.tolist(), strict=True):
        assert partner in clusters[medoid]
        assert (partner == medoid) == (len(clusters[medoid]) == 1)


def test_crust_paper_mixes_inputs_and_labels():
    found = context()
    method = METHODS["crust-paper"](METHODS["crust-paper"].Settings(fraction=0.3))
    selection = method.begin_epoch(found)
    rows = np.arange(8)
    index = selection.indices[rows]
    x, y = found.train.inputs[index], torch.from_numpy(found.labels[index])
    batch = method.prepare(Batch(x.clone(), y, index, rows), found)
    other = found.train.inputs[selection.partners[rows]]
    for i in range(8):
        own, partner = found.labels[index[i]], found.labels[selection.partners[rows[i]]]
        share = (batch.x[i] - other[i]).norm() / (x[i] - other[i]).norm() if index[i] != selection.partners[i] else 1.0
        assert torch.allclose(batch.x[i], share * x[i] + (1 - share) * other[i], atol=1e-5)
        expected = float(share) * np.eye(CLASSES)[own] + (1 - float(share)) * np.eye(CLASSES)[partner]
        assert batch.target[i].numpy() == pytest.approx(np.asarray(expected), abs=1e-5)
    assert float(batch.target.sum()) == pytest.approx(8)


def released(proxies, labels, share):
    """The published rule: in each label the smallest sums of distances, rounded down, ties to the highest index."""
    found = []
    for label in sorted(set(labels.tolist())):
        members = [i for i in range(len(labels)) if labels[i] == label]
        sums = {i: sum(abs(proxies[i] - proxies[j]).sum() for j in members) for i in members}
        found += sorted(members, key=lambda i: (sums[i], -i))[: int(share * len(members))]
    return found


@settings(max_examples=40, deadline=None)
@given(st.integers(4, 40), st.integers(0, 999), st.sampled_from([0.3, 0.5, 0.77, 1.0]))
def test_the_released_rule_with_its_quirks(n, seed, share):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 6, (n, 1)).astype(np.float32)  # whole numbers on a line: sums are exact, ties are many
    labels = rng.integers(0, 3, n)
    expected = released(points, labels, share)
    if not expected:
        with pytest.raises(InputError, match="rounds down to no example of any label"):
            central_by_label(points, labels, share)
        return
    assert central_by_label(points, labels, share).tolist() == expected


def test_crust_released_waits_then_selects_then_mixes():
    kind = METHODS["crust-released"]
    method = kind(kind.Settings(fraction=0.5))
    assert method.begin_epoch(context(4)) is None
    found = context(5)
    selection = method.begin_epoch(found)
    proxies, _ = by_hand(found)
    features = proxies @ found.networks[0][-1].weight.detach().numpy()
    sizes = np.where(np.arange(60) < 48, 16, 12)
    expected = central_by_label((features / sizes[:, None]).astype(np.float32), found.labels, 0.5)
    assert set(selection.indices.tolist()) == set(expected.tolist())
    assert selection.weights is None
    assert method.partners is None
    found = context(6)
    selection = method.begin_epoch(found)
    assert np.array_equal(found.labels[method.partners], found.labels[selection.indices])
    rows = np.arange(10)
    index = selection.indices[rows]
    x = found.train.inputs[index]
    batch = method.prepare(Batch(x.clone(), torch.from_numpy(found.labels[index]), index, rows), found)
    assert batch.target is None  # labels stay as they are
    other = found.train.inputs[method.partners[rows]]
    moved = [i for i in range(10) if index[i] != method.partners[rows[i]]]
    shares = [float((batch.x[i] - other[i]).norm() / (x[i] - other[i]).norm()) for i in moved]
    assert shares == pytest.approx([shares[0]] * len(shares), abs=1e-4)  # one share a batch


@pytest.mark.parametrize("share", ["noise-rate", 0.4])
def test_the_share_of_crust_is_set_or_found(share):
    result = fit("crust-half", fraction=share, data=None, epochs=6, validation=0)
    lines = [line for line in result.history if line["counts"]]
    if share == "noise-rate":
        known = lines[-1]["noise_info"]["noise_rate"]
        assert "estimated" in known["source"]
        assert lines[-1]["n_selected"] == pytest.approx(90 * (1 - known["value"]), abs=1)
    else:
        assert [line["n_selected"] for line in lines] == [90] + [36] * 5
        assert len(result.history) == 6  # nothing was estimated
        assert "noise_info" not in lines[-1]


@pytest.mark.parametrize(
    "own", [{"selection": "greedy"}, {"selection": "random"}, {"weights": "cluster"}, {"mixup": "cluster"}], ids=str
)
def test_what_needs_clusters_needs_the_budget_of_groups(own):
    kind = METHODS["crust-half"]
    with refused("needs-clusters"):
        kind(kind.Settings(**own))
    kind(kind.Settings(**own, budget="group"))
    with refused("needs-clusters"):  # a coreset that sizes itself goes by an order of all examples
        kind(kind.Settings(**own, budget="group", fraction="auto"))


def on_digits(**more):
    digits = data.load("digits", limit=600).train
    wrong = noise.make_noisy_labels(digits.labels, "symmetric:0.4", classes=10, seed=0).labels
    settings = {"epochs": 16, "batch_size": 32, **more}
    return crust.fit("mlp", digits.with_labels(wrong), true_labels=digits.labels, **settings)


def test_a_coreset_that_sizes_itself_begins_with_everyone_and_drops_wrong_labels():
    run = on_digits(select_after=6)
    sizes = run.history["n_selected"]
    assert sizes[0] == 540
    chosen = [line for line in run.history if line.get("memorised")]
    assert chosen[-1]["n_members"] < 480
    assert run.history["clean_fraction_weighted"][-1] > run.history["clean_fraction"][0] + 0.02
    noise = [line["noise_range"] for line in run.history if "noise_range" in line]
    assert all(0 <= one["low"] <= one["rate"] <= one["high"] <= 1 for one in noise)
    assert all(later["high"] <= sooner["high"] for sooner, later in itertools.pairwise(noise))


def test_averaged_weights_are_kept_unless_the_run_says_how_long_or_not_at_all():
    def ema(**more):
        method = METHODS["crust"](METHODS["crust"].Settings(**{k: v for k, v in more.items() if k == "averaged"}))
        found = context()
        found.experiment = found.settings.model_copy(update={"batch_size": 2, "ema": more.get("ema")})
        method.begin_run(found)
        return method.stages()[0].settings(found.experiment).ema

    assert ema() == pytest.approx(1 - 1 / 30)  # 60 examples, two a step
    assert ema(ema=0.5) == 0.5
    assert ema(averaged=False) is None


def test_without_anything_held_out_the_coreset_still_sizes_itself():
    run = on_digits(validation=0)
    assert run.history["n_selected"][:2] == [600, 600]
    assert run.history["clean_fraction_weighted"][-1] > run.history["clean_fraction"][0] + 0.02


def test_a_noise_rate_that_is_given_is_kept_to():
    run = on_digits(noise_rate=0.3, select_after=6)
    found = [line for line in run.history if line.get("memorised")]
    assert found
    assert all(line["noise_range"]["rate"] == 0.3 for line in found)
    assert all(line["n_members"] <= round(540 * 0.7) for line in found)


def test_images_are_mixed_and_other_inputs_are_not():
    method = METHODS["crust"](METHODS["crust"].Settings())
    assert method.begin_epoch(context()).partners is None
    digits = data.load("digits", limit=60).train
    images = context()
    images.train = images.plain = from_arrays(digits.inputs.reshape(60, 1, 8, 8), digits.labels)
    partners = method.begin_epoch(images).partners
    assert sorted(partners.tolist()) == list(range(60))


def test_everything_comes_first_for_an_eighth_of_the_epochs():
    method = METHODS["crust-half"](METHODS["crust-half"].Settings(fraction=0.5))
    found = context()
    found.epochs = 40
    sizes = []
    for found.epoch in range(7):
        sizes.append(len(method.begin_epoch(found).indices))
    assert sizes == [60] * 5 + [30] * 2
    assert [method.train_set_pass(epoch, 40) for epoch in range(7)] == [None] * 5 + ["logits"] * 2


def test_a_coreset_is_kept_between_selections():
    kind = METHODS["crust-half"]
    method = kind(kind.Settings(fraction=0.5, select_after=1, select_every=3))
    assert [epoch for epoch in range(8) if method.train_set_pass(epoch, 8)] == [1, 4, 7]
    found = context()
    chosen = []
    for epoch in range(5):
        found.epoch = epoch
        with torch.no_grad():
            found.networks[0][0].weight.mul_(-0.5)
        found.weights_changed()
        selection = method.begin_epoch(found)
        chosen.append(set(selection.indices.tolist()))
    assert len(chosen[0]) == found.n
    assert chosen[1] == chosen[2] == chosen[3] != chosen[4]


def test_the_oracle_without_true_labels_gets_a_sentence(tmp_path):
    with pytest.raises(InputError, match="oracle needs true labels: give true_labels, or use another method"):
        crust.fit(network(), examples(), method="oracle", epochs=1, run_dir=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    kind = METHODS["oracle"]
    with pytest.raises(InputError, match="oracle needs true labels"):
        kind(kind.Settings()).begin_epoch(context())


def test_the_controls_choose_what_they_say():
    found = context(3, true_labels=clouds(60)[2])
    random, loss, oracle = (METHODS[name](METHODS[name].Settings()) for name in ("random", "small-loss", "oracle"))
    drawn = random.begin_epoch(found).indices
    assert len(set(drawn.tolist())) == 30
    assert not np.array_equal(drawn, random.begin_epoch(context(4)).indices)
    assert len(loss.begin_epoch(found).indices) == 30
    assert loss.begin_epoch(context(0)) is None
    assert np.array_equal(oracle.begin_epoch(found).indices, np.flatnonzero(clouds(60)[1] == clouds(60)[2]))


def test_mixup_mixes_the_batch_with_itself():
    method = METHODS["mixup"](METHODS["mixup"].Settings())
    found = context()
    index = np.arange(12)
    x, y = found.train.inputs[:12], torch.from_numpy(found.labels[:12])
    batch = method.prepare(Batch(x.clone(), y, index, index), found)
    assert torch.allclose(batch.x.sum(0), x.sum(0), atol=1e-4)  # a convex mixture with a permutation of itself
    assert torch.allclose(batch.target.sum(0), torch.eye(CLASSES)[y].sum(0), atol=1e-5)
    assert torch.allclose(batch.target.sum(1), torch.ones(12))

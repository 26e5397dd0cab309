"""`CoresetSampler` in a loop of one's own: it selects as `crust.fit` does, and leaves everything else as it was."""

import copy
import io
import random

import numpy as np
import pytest
import torch
from tests.integrations.clouds import CLASSES, clouds
from tests.refusals import refused
from torch import nn
from torch.nn import functional as F  # noqa: N812 - its usual name
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import crust
from crust import data, noise
from crust.sampler import _visits
from crust.training.method import Selection


def network(seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, CLASSES))


def train(sampler, loader, model, epochs, rate=0.05, start=0):
    """An ordinary loop; the rows of every epoch."""
    optimizer = torch.optim.SGD(model.parameters(), rate, momentum=0.9)
    seen = []
    for epoch in range(start, epochs):
        model.train()
        rows = []
        with torch.random.fork_rng():
            torch.manual_seed(epoch)  # dropout, whatever other tests have drawn before
            for x, y, row in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()
                rows += row.tolist()
        seen.append(rows)
    return seen


@pytest.fixture
def problem():
    x, given, true = clouds()
    rows = TensorDataset(x, torch.from_numpy(given), torch.arange(len(x)))
    return rows, given, true


def pair(items):
    x, y = torch.utils.data.default_collate([item[:2] for item in items])
    return x, y


def sampler_of(problem, model, **options):
    return crust.CoresetSampler(problem[0], problem[1], model, **{"epochs": 12, "collate_fn": pair, **options})


def test_a_plain_loop_trains_on_right_labels_and_finds_the_wrong_ones(problem):
    rows, given, true = problem
    model = network()
    sampler = sampler_of(problem, model, select_after=2)
    loader = DataLoader(rows, 16, sampler=sampler)
    assert len(loader) == -(-len(sampler) // 16)
    epochs = train(sampler, loader, model, 12)
    assert {len(each) for each in epochs} == {len(sampler)}
    assert sampler.coreset.tolist() == sorted(set(sampler.coreset.tolist()))
    assert (given == true)[sampler.coreset].mean() > (given == true).mean() + 0.15
    assert not set(sampler.held.tolist()) & set(np.concatenate(epochs).tolist())
    table = sampler.audit()
    assert table["index"].tolist() == list(range(len(rows)))
    wrong, quality = given != true, table["label_quality"].to_numpy()
    assert (quality[wrong][:, None] < quality[~wrong][None]).mean() > 0.9  # AUROC
    assert table["is_held_out"].sum() == len(sampler.held) > 0
    assert [line["epoch"] for line in sampler.history] == list(range(11))  # audit() notes nothing
    assert len(sampler.history[-1]["noise_range"]) == 3


def test_the_first_selection_is_that_of_fit():
    """The same weights, data and held-out examples: the very same coreset, by the methods that `crust.fit` has."""
    digits = data.load("digits", limit=400).train
    given = noise.make_noisy_labels(digits.labels, "symmetric:0.3", classes=10, seed=0).labels
    x = digits.inputs.flatten(1).float() / 255
    for method in ("crust-half", "small-loss"):
        model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
        settings = {"method": method, "seed": 3, "epochs": 2, "select_after": 1}
        if method == "crust-half":
            settings["mixup"] = "none"
        sampler = crust.CoresetSampler(TensorDataset(x, torch.from_numpy(given)), given, model, **settings)
        iter(sampler)
        with torch.no_grad():
            model[2].bias += torch.randn(10)  # an update
        iter(sampler)
        kept, slow = sampler.kept, copy.deepcopy(model)
        seen = crust.proxies(slow, [(x[kept], np.arange(len(kept)))], given[kept])
        budget, rule = ("label", "central") if method == "crust-half" else ("group", "small-loss")
        expected = crust.choose(seen, given[kept], 0.5, selection=rule, budget=budget)
        assert sampler.coreset.tolist() == sorted(kept[expected.indices].tolist())
        assert len(sampler) == round(0.5 * len(kept))


def test_a_run_of_fit_and_of_the_sampler_agree_epoch_by_epoch():
    """With the rate at nothing both see the same network: range of noise and members are the same in every epoch."""
    x, given, _ = clouds(300)
    model = network()
    how = {"epochs": 8, "batch_size": 32, "seed": 1, "select_after": 2, "select_every": 1}
    history = crust.fit(model, TensorDataset(x, torch.from_numpy(given)), learning_rate=1e-12, **how).history
    sampler = crust.CoresetSampler(TensorDataset(x, torch.from_numpy(given)), given, model, **how)
    for _ in range(9):
        iter(sampler)
        with torch.no_grad():
            model[0].bias += 1e-7
    for name in ("n_members", "noise_range", "others_worth"):
        assert [line.get(name) for line in sampler.history] == history[name]


def test_visits_follow_weights_and_length():
    rng = np.random.default_rng(0)
    selection = Selection(np.arange(4), np.array([1, 2.5, 0.25, 0], np.float32))
    counts = np.mean([np.bincount(_visits(selection, rng), minlength=4) for _ in range(2000)], axis=0)
    np.testing.assert_allclose(counts, selection.weights, atol=0.05)


@pytest.mark.parametrize("length", [7, 108, 300])
def test_every_member_comes_equally_often(problem, length):
    """Before anything is selected: shorter epochs cut a round, longer ones begin another."""
    model = network()
    sampler = sampler_of(problem, model, length=length, select_after=99, epochs=99)
    seen = []
    for _ in range(20):
        seen += list(sampler)
        with torch.no_grad():
            model[0].bias += 0.1
        n, counts = len(sampler.kept), np.bincount(seen, minlength=240)[sampler.kept]
        assert counts.max() - counts.min() <= 1
        assert len(seen) % length == 0
    assert counts.sum() == 20 * length
    assert n == 216


def test_the_same_seed_gives_the_same_bytes_and_workers_change_nothing(problem):
    found = []
    for workers in (0, 2):
        torch.manual_seed(0)
        model = network()
        sampler = sampler_of(problem, model, workers=workers)
        loader = DataLoader(problem[0], 16, sampler=sampler, num_workers=workers)
        torch.manual_seed(1)
        found.append((train(sampler, loader, model, 5), sampler.audit()["label_quality"].tolist()))
    assert found[0] == found[1]


def test_resume_at_the_end_of_an_epoch_and_in_its_middle(problem):
    rows = problem[0]

    def start():
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        sampler = sampler_of(problem, model, epochs=8)
        return model, optimizer, sampler, DataLoader(rows, 16, sampler=sampler)

    def go_on(model, optimizer, batches, seen):
        model.eval()  # no dropout: its random numbers are the loop's own affair
        for x, y, row in batches:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            seen.append(row.tolist())

    model, optimizer, sampler, loader = start()
    whole = []
    for _ in range(8):
        go_on(model, optimizer, loader, whole)
    per = len(loader)
    for stop in (4 * per, 5 * per + 3):
        model, optimizer, sampler, loader = start()
        seen = []
        while len(seen) < stop:
            go_on(model, optimizer, (b for _, b in zip(range(stop - len(seen)), loader, strict=False)), seen)
        saved = copy.deepcopy({"m": model.state_dict(), "o": optimizer.state_dict(), "s": sampler.state_dict()})
        torch.save(saved["s"], buffer := io.BytesIO())
        buffer.seek(0)
        model, optimizer, sampler, loader = start()
        model.load_state_dict(saved["m"])
        optimizer.load_state_dict(saved["o"])
        sampler.load_state_dict(torch.load(buffer, weights_only=True))
        again, done = [], stop % per
        while len(seen) < len(whole):
            batches = iter(loader)
            again += [next(batches)[2].tolist() for _ in range(done)]
            done = 0
            go_on(model, optimizer, batches, seen)
        assert again == whole[stop - stop % per : stop]
        assert seen == whole
        assert sampler.epoch == 7


def test_everything_of_the_users_is_as_before(problem):
    """Modes, gradients, buffers, hooks, the global random states and the labels."""
    rows, given, _ = problem
    model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Dropout(0.5), nn.Linear(16, CLASSES))
    model[1].eval()  # frozen statistics stay so
    model(rows.tensors[0][:8]).sum().backward()
    sampler = sampler_of(problem, model, workers=2, select_after=1)
    labels = given.copy()
    iter(sampler)
    with torch.no_grad():
        model[0].bias += 1
    random.seed(5), np.random.seed(5), torch.manual_seed(5)  # noqa: NPY002

    def state():
        grads = [p.grad.clone() for p in model.parameters()]
        weights = {name: value.clone() for name, value in model.state_dict().items()}
        modes = [(m.training, len(m._forward_hooks), len(m._forward_pre_hooks)) for m in model.modules()]
        draws = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state()  # noqa: NPY002
        return grads, weights, modes, draws, torch.is_grad_enabled(), torch.get_num_threads()

    before = state()
    list(sampler)
    sampler.audit()
    crust.mixing(pair, sampler)([rows[i] for i in range(8)])
    after = state()
    torch.testing.assert_close(after[:2], before[:2], rtol=0, atol=0)
    assert after[2] == before[2]
    assert after[4:] == before[4:]
    assert after[3][:2] == before[3][:2]
    assert after[3][2].equal(before[3][2])
    assert (given == labels).all()


def test_a_look_at_the_first_batch_begins_no_other_epoch(problem):
    model = network()
    sampler = sampler_of(problem, model)
    loader = DataLoader(problem[0], 16, sampler=sampler)
    first = next(iter(loader))[2].tolist()
    assert next(iter(loader))[2].tolist() == first
    assert sampler.epoch == 0
    train(sampler, loader, model, 1)
    assert next(iter(loader))[2].tolist() != first
    assert sampler.epoch == 1


def test_another_model_than_the_trained_one_is_said(problem):
    model = network()
    sampler = sampler_of(problem, model)
    loader = DataLoader(problem[0], 16, sampler=sampler)
    other = copy.deepcopy(model)
    with pytest.warns(UserWarning, match="have not changed"):
        train(sampler, loader, other, 2)
    with refused("model-unchanged"):
        train(sampler, loader, other, 1)
    sampler.model = other  # now it is right
    train(sampler, loader, other, 2)
    assert len(sampler.audit()) == 240


def test_wrapped_and_frozen_models(problem):
    model = network()
    sampler = sampler_of(problem, nn.DataParallel(model))
    assert sampler.model is model
    for parameter in model.parameters():
        parameter.requires_grad = False
    with refused("frozen-model"):
        iter(sampler)


def test_the_look_sees_the_examples_without_augmentation(problem):
    rows, given, _ = problem

    class Noisy(torch.utils.data.Dataset):
        def __len__(self):
            return len(rows)

        def __getitem__(self, i):
            return torch.randn(6) * 100, given[i]

    found = []
    for seen in (rows, TensorDataset(*rows.tensors[:2])):
        model = network()
        sampler = crust.CoresetSampler(Noisy(), given, model, epochs=4, eval_dataset=seen, collate_fn=pair)
        iter(sampler)
        with torch.no_grad():
            model[0].bias += 1
        found.append(sampler.audit()["mean_loss"].tolist())
    assert found[0] == found[1]


def test_mixing(problem):
    model = network()
    sampler = sampler_of(problem, model)
    collate = crust.mixing(pair, sampler)
    examples = [problem[0][i] for i in range(32)]
    (x, y), (mixed, rows), (again, _) = pair(examples), collate(examples), collate(examples)
    assert mixed.equal(again)
    # every row lies on the line between its example and one other of the batch, and so does its label
    for i in range(32):
        candidates = [
            j
            for j in range(32)
            if any(
                torch.allclose(s * x[i] + (1 - s) * x[j], mixed[i], atol=1e-5)
                and torch.allclose(s * F.one_hot(y[i], 3) + (1 - s) * F.one_hot(y[j], 3), rows[i], atol=1e-5)
                for s in [_share(x[i], x[j], mixed[i])]
            )
        ]
        assert candidates
    as_dict = crust.mixing(lambda batch: {"x": x, "ids": x.long(), "labels": y}, sampler)(examples)
    assert as_dict["ids"].equal(x.long())
    assert as_dict["labels"].shape == (32, 3)
    assert not as_dict["x"].equal(x)
    with refused("cannot-mix"):
        crust.mixing(lambda batch: {"ids": x.long(), "labels": y}, sampler)(examples)
    loader = DataLoader(problem[0], 16, sampler=sampler, collate_fn=collate, num_workers=2)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    assert sampler.epoch == 0


def _share(own, other, mixed):
    far = own - other
    return float((mixed - other) @ far / (far @ far)) if float(far @ far) else 1.0


def test_proxies_of_a_loader_and_choose(problem):
    x, given = problem[0].tensors[0], problem[1]
    model = network()
    loader = DataLoader(TensorDataset(x, torch.from_numpy(given)), 50)
    found = crust.proxies(model, loader, given)
    model.eval()
    with torch.no_grad():
        expected = model(x).softmax(1) - F.one_hot(torch.from_numpy(given), CLASSES)
    np.testing.assert_allclose(found.proxies, expected.numpy(), atol=1e-6)
    as_dict = DataLoader([{"points": row, "labels": 0} for row in x], 50)
    np.testing.assert_array_equal(crust.proxies(_ByName(model), as_dict, given).proxies, found.proxies)
    chosen = crust.choose(found, given, 0.25)
    np.testing.assert_array_equal(np.bincount(given[chosen.indices]), np.round(np.bincount(given) * 0.25))
    with refused("loader-order"):
        crust.proxies(model, DataLoader(TensorDataset(x), 50, shuffle=True), given)


class _ByName(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, points):
        return self.inner(points)


class Stream(IterableDataset):
    def __iter__(self):
        yield from ()


def _pairs_of_kind(examples):
    return torch.stack([one["points"] for one in examples]), torch.tensor([one["kind"] for one in examples])


def test_labels_by_name_column_and_number(problem):
    x, given, _ = clouds()
    names = ["ant", "bee", "cat"]
    model = network()
    for dataset, labels in (
        ([{"points": row, "labels": y} for row, y in zip(x, given.tolist(), strict=True)], None),
        ([{"points": row, "kind": y} for row, y in zip(x, given.tolist(), strict=True)], "kind"),
        (TensorDataset(x), [names[y] for y in given]),
    ):
        net = _ByName(model) if labels is None else model
        collate = _pairs_of_kind if labels == "kind" else None
        sampler = crust.CoresetSampler(dataset, labels, net, epochs=2, collate_fn=collate, validation=0)
        assert sampler.context.labels.tolist() == given.tolist()
    assert sampler.classes == names


@pytest.mark.parametrize(
    ("code", "options"),
    [
        ("sampler-method", {"method": "co-teaching"}),
        ("sampler-method", {"method": "elr"}),
        ("sampler-method", {"method": "oracle"}),
        ("sampler-setting", {"learning_rate": 0.1}),
        ("sampler-estimate", {"fraction": "noise-rate"}),
        ("model-type", {"model": "mlp"}),
        ("model-classes", {"classes": ["a", "b"], "labels": [i % 2 for i in range(240)]}),
        ("labels-length", {"labels": [0, 1]}),
        ("not-a-dataset", {"dataset": Stream()}),
        ("eval-dataset-length", {"eval_dataset": TensorDataset(torch.zeros(3, 6))}),
        ("length-range", {"length": 0}),
        ("batch-parts", {"collate_fn": None}),
        ("label-column", {"dataset": [{"a": 1}], "labels": "b"}),
    ],
)
def test_refusals(problem, code, options):
    given = {"dataset": problem[0], "labels": problem[1], "model": network(), "epochs": 3, "collate_fn": pair}
    with refused(code):
        crust.CoresetSampler(**{**given, **options})


def test_another_samplers_state_and_an_audit_before_anything(problem):
    sampler = sampler_of(problem, network())
    with refused("not-looked"):
        sampler.audit()
    with refused("other-state"):
        sampler_of(problem, network(), seed=1).load_state_dict(sampler.state_dict())


def test_report_and_review(problem, tmp_path):
    dataset, given, model = problem[0], problem[1], network()
    sampler = crust.CoresetSampler(dataset, given, model, epochs=1, collate_fn=pair)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for x, y in torch.utils.data.DataLoader(dataset, 60, sampler=sampler, collate_fn=pair):
        optimizer.zero_grad()
        sampler.loss(model(x), y).backward()
        optimizer.step()
    shown = [f"point number {i}" for i in range(len(given))]
    page = sampler.report(tmp_path / "report.html", show=shown).read_text()
    assert shown[int(sampler.audit().nsmallest(1, "label_quality")["index"].iloc[0])] in page
    assert sampler.report(tmp_path / "own.html").is_file()  # of what the dataset itself has to show, if anything
    options = {"store": tmp_path / "review.sqlite", "browser": False, "on_start": lambda server: server.finish()}
    assert len(sampler.review(show=shown, **options)) == 0  # nobody has decided anything

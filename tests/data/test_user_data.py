"""Whatever users have their data in goes into `fit`, and comes back out of `predict`, in one form as in another."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from tests.integrations.clouds import clouds, network
from tests.refusals import refused
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset, WeightedRandomSampler

import crust

FAST = {"method": "erm", "epochs": 2, "batch_size": 16, "optimizer": "adamw", "learning_rate": 0.01, "progress": False}


class Halves(nn.Module):
    """Takes the columns in two parts, by name or one after the other."""

    def __init__(self):
        super().__init__()
        self.network = network()

    def forward(self, left, right):
        return self.network(torch.cat([left, right], 1))


def stacked(items):
    return torch.stack([x for x, _ in items]), torch.tensor([y for _, y in items])


@pytest.fixture(scope="module")
def problem():
    x, y, _ = clouds(120)
    return x, y


def forms(x, y):
    left, right = x[:, :3], x[:, 3:]
    frame = pd.DataFrame(x.numpy(), columns=list("abcdef")).assign(kind=y)
    rows = TensorDataset(x, torch.from_numpy(y))
    pairs = [(a, int(b)) for a, b in rows]
    parts = [{"left": a[:3], "right": a[3:], "label": int(b), "note": "so"} for a, b in rows]
    return {
        "pairs": (pairs, {}),
        "a loader": (DataLoader(rows, 7, shuffle=True), {}),
        "a loader with a collate_fn": (DataLoader(pairs, 7, shuffle=True, collate_fn=stacked), {}),
        "a collate_fn": (pairs, {"collate_fn": stacked}),
        "one-hot rows": (TensorDataset(x, torch.eye(3)[y]), {}),
        "one-hot items": ([(a, torch.eye(3)[b]) for a, b in pairs], {}),
        "a DataFrame": (frame, {"label_column": "kind"}),
        "a table of Arrow": (pa.Table.from_pandas(frame), {"label_column": "kind"}),
        "a DataFrame and labels": (frame.drop(columns="kind"), {"labels": y}),
        "a dict of arrays": ({"x": x.numpy(), "label": y}, {}),
        "a dict of parts": ({"left": left, "right": right, "label": y}, {}),
        "dicts": (parts, {}),
        "tuples": ([((a[:3], a[3:]), int(b)) for a, b in rows], {}),
    }


@pytest.mark.parametrize("name", forms(*clouds(4)[:2]))
def test_one_problem_in_all_forms(problem, name):
    x, y = problem
    data, options = forms(x, y)[name]
    model = Halves() if name in ("a dict of parts", "dicts", "tuples") else network()
    given = {"test_set": data} if "labels" not in options else {}
    result = crust.fit(model, data, **given, **options, **FAST)
    assert result.classes == [0, 1, 2]
    assert len(result.audit()) == 120
    said = result.predict(data)
    assert said.shape == (120,)
    assert (said == y).mean() > 0.4
    if given:
        assert result.accuracy["best"] is not None
    if name == "a DataFrame":
        assert (result.predict(data.drop(columns="kind")[list("fedcba")]) == said).all()  # columns by name
    if name == "a dict of arrays":
        assert (result.predict({"x": x}) == said).all()
        assert (result.predict(x) == said).all()


def test_forms_without_a_scale_of_their_own_train_the_same_network(problem):
    x, y = problem
    found = [
        crust.fit(Halves(), data, **{**FAST, **options})
        for data, options in (forms(x, y)[name] for name in ("a dict of parts", "dicts", "tuples"))
    ]
    for other in found[1:]:
        for name, value in found[0].model.state_dict().items():
            assert torch.equal(value, other.model.state_dict()[name])


def test_columns_that_hold_no_numbers_become_features_and_are_remembered(problem, tmp_path):
    x, y = problem
    frame = pd.DataFrame(x.numpy(), columns=list("abcdef")).assign(
        town=np.array(["Ulm", "Bonn"])[np.arange(120) % 2], label=np.array(["u", "v", "w"])[y]
    )
    frame.loc[3, "a"] = None
    result = crust.fit("mlp", frame, test_set=frame, run_dir=tmp_path, **FAST)
    assert result.config["inputs"]["shape"] == [6 + 1 + 2]
    assert (crust.load(tmp_path).predict(frame.drop(columns="label")) == result.predict(frame)).all()
    with refused("unknown-column"):
        result.predict(frame.drop(columns="town"))
    pair = crust.fit("mlp", (frame.drop(columns="label"), frame["label"]), **FAST)
    assert (pair.predict_proba(frame) == result.predict_proba(frame)).all()


def test_a_table_of_one_column_of_texts_is_texts():
    texts = [f"the {'sea is calm' if i % 2 else 'sky is clear'} on day {i}" for i in range(60)]
    frame = pd.DataFrame({"text": texts, "label": np.arange(60) % 2})
    result = crust.fit("text", frame, test_set=frame, **FAST)
    assert result.audit()["text"].tolist() == texts
    assert (result.predict(frame) == result.predict(texts)).all()


@pytest.mark.parametrize("workers", [0, 2])
def test_partners_for_mixing_are_read_with_the_batch(problem, workers, tmp_path):
    x, y = problem
    log = tmp_path / "reads"

    class Logged(torch.utils.data.Dataset):
        def __len__(self):
            return len(x)

        def __getitem__(self, i):
            with log.open("a") as file:
                file.write("worker\n" if torch.utils.data.get_worker_info() else "main\n")
            return x[i], int(y[i])

    result = crust.fit(
        network(), Logged(), labels=y, method="crust-half", workers=workers, validation=0.0, select_after=0, **SOME
    )
    reads = log.read_text().split()
    assert reads.count("worker" if workers else "main") >= 120  # two epochs of half of it, twice; and the looks
    assert reads.count("main") <= 12 if workers else "worker" not in reads
    RESULTS.append(result.model.state_dict())
    for name, value in RESULTS[0].items():  # the number of workers changes nothing
        assert torch.equal(value, result.model.state_dict()[name])


SOME = {name: value for name, value in FAST.items() if name != "method"}
RESULTS = []


def test_floats_of_dicts_are_mixed_and_token_ids_are_not(problem):
    x, y = problem
    rows = [{"left": a[:3], "right": a[3:], "label": int(b)} for a, b in zip(x, y, strict=True)]
    mixed = crust.fit(Halves(), rows, method="crust-half", select_after=0, **SOME)
    alone = crust.fit(Halves(), rows, method="crust-half", mixup="none", select_after=0, **SOME)
    assert any(not torch.equal(a, b) for a, b in zip(mixed.model.parameters(), alone.model.parameters(), strict=True))
    ids = [{"input": torch.tensor([i % 7, 3]), "label": i % 2} for i in range(40)]
    embed = nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(8, 2))
    with refused("cannot-mix"):
        crust.fit(embed, ids, method="crust-half", select_after=0, **SOME)


def test_what_an_example_counts(problem):
    x, y = problem
    weight = np.ones(120)
    weight[:40] = 0
    plain = {**FAST, "validation": 0.0, "batch_size": 120, "epochs": 1}
    one = crust.fit(network(), (x, y), sample_weight=weight, **plain)
    other = crust.fit(network(), (x, np.where(np.arange(120) < 40, (y + 1) % 3, y)), sample_weight=weight, **plain)
    for name, value in one.model.state_dict().items():  # labels that count nothing may be anything
        assert torch.equal(value, other.model.state_dict()[name])
    for bad, code in ((np.ones(3), "weight-shape"), (-weight, "weight-range"), (0 * weight, "weight-range")):
        with refused(code):
            crust.fit(network(), (x, y), sample_weight=bad, **plain)


class Files(torch.utils.data.Dataset):
    """As ImageFolder of torchvision has them."""

    def __init__(self, root, n=24):
        from PIL import Image

        self.root, self.classes, self.samples = str(root), ["dark", "light"], []
        for i in range(n):
            path = root / self.classes[i % 2] / f"{i}.png"
            path.parent.mkdir(exist_ok=True)
            Image.fromarray(np.full((8, 8), 40 + 150 * (i % 2) + i, np.uint8)).save(path)
            self.samples.append((str(path), i % 2))
        self.targets = [label for _, label in self.samples]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        from PIL import Image

        path, label = self.samples[i]
        return torch.from_numpy(np.array(Image.open(path)))[None].float() / 255, label


def test_files_of_a_dataset_are_ids_and_the_report_has_their_pictures(tmp_path):
    data = Files(tmp_path / "images" if (tmp_path / "images").mkdir() is None else None)
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 2))
    options = {**FAST, "epochs": 3, "augment": False}
    result = crust.fit(net, data, run_dir=tmp_path / "run", **options)
    assert result.audit()["id"].tolist() == [f"{'light' if i % 2 else 'dark'}/{i}.png" for i in range(24)]
    assert "data:image" in result.report(tmp_path / "one.html").read_text()
    assert "data:image" in crust.load(tmp_path / "run", net).report(tmp_path / "two.html").read_text()
    part = crust.fit(net, Subset(data, range(2, 24)), **options)
    assert part.audit()["id"][0] == "dark/2.png"
    assert "data:image" in part.report(tmp_path / "three.html").read_text()


class Stream(torch.utils.data.IterableDataset):
    def __len__(self):
        return 10

    def __iter__(self):
        return iter(())


@pytest.mark.parametrize(
    ("code", "data", "options"),
    [
        ("loader-sampler", lambda x, y: DataLoader(TensorDataset(x), 8, sampler=WeightedRandomSampler([1.0], 9)), {}),
        ("not-a-dataset", lambda x, y: Stream(), {}),
        ("not-a-dataset", lambda x, y: DataLoader(Stream(), 8), {}),
        ("labels-shape", lambda x, y: (x, torch.ones(120, 3)), {}),
        ("labels-shape", lambda x, y: [(a, torch.ones(3)) for a in x], {}),
        ("labels-shape", lambda x, y: (x, torch.full((120, 3), 1 / 3)), {}),
        ("label-column", lambda x, y: {"x": x, "kind": y}, {}),
        ("label-column", lambda x, y: [{"x": a, "kind": 0} for a in x], {}),
        ("unknown-column", lambda x, y: {"x": x, "kind": y}, {"label_column": "sort"}),
        ("columns-length", lambda x, y: {"a": x, "b": x[:3], "label": y}, {}),
        ("dataset-fields", lambda x, y: {"a": x, "b": x, "label": y}, {}),
        ("bad-collate", lambda x, y: [{"input": a, "label": i % 2} for i, a in enumerate(x)], {"collate_fn": stacked}),
        ("not-a-function", lambda x, y: (x, y), {"collate_fn": 3}),
        ("cannot-show", lambda x, y: (x, y), {"show": "text"}),
        ("cannot-show", lambda x, y: (x, y), {"show": ["one"]}),
        ("labels-type", lambda x, y: (x, x[:, 0]), {}),
    ],
)  # fmt: skip
def test_refusals(problem, code, data, options):
    x, y = problem
    with refused(code) as caught:
        crust.fit(network(), data(x, torch.from_numpy(y)), **options, **FAST)
    if code == "labels-type":
        assert "regression" in str(caught.value)

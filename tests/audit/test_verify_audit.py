"""The audit verified: injected errors, the truth in the intervals, what is written can be read."""

import json

import numpy as np
import pytest
import torch
import yaml
from tests.audit.samples import audit as sample
from tests.audit.samples import clouds
from tests.refusals import refused
from torch.utils.data import Dataset

import crust
from crust.audit.accuracy.estimates_with_intervals import AuditArrays, error_score_by_place, estimate_accuracy
from crust.audit.accuracy.inject_errors import InjectedErrors
from crust.audit.accuracy.verified_file import VERSION
from crust.audit.noise_rate import noise_rate
from crust.cli.audit import verified_lines
from crust.errors import InputError
from crust.report.page import audit_page
from crust.runs.folder import RunFolder
from crust.verification import verify_audit


def simulated(seed, rate=0.2, n=2000, errors=300, classes=3, held=0.1, knows=True):
    """Two audits that the model holds for exactly: scores of known kinds, the same for wrong labels and for errors."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, classes, n)
    given = np.where(rng.random(n) < rate, (true + rng.choice([1, 2], n, p=[0.8, 0.2])) % classes, true)

    def judged(labels):
        out, sure = rng.random(n) < held, rng.uniform(0.5, 1, n)
        taken_for = np.where(rng.random(n) < sure, true, (true + rng.integers(1, classes, n)) % classes)
        taken_for = taken_for if knows else rng.permutation(true)
        error_score = np.where(labels != true, rng.beta(6, 1.5, n), rng.beta(1, 12, n))
        return AuditArrays(error_score, labels, taken_for, sure, out)

    labels, injected = given.copy(), np.sort(rng.permutation(n)[:errors])
    labels[injected] = (given[injected] + 1) % classes
    some = InjectedErrors(labels, injected, np.empty(0, np.int64), p_injected_is_true=0.2)
    audit, second = judged(given), judged(labels)
    return estimate_accuracy(audit, second, some, list("abc")[:classes], rng), audit, given != true


def test_the_truth_lies_in_the_intervals_where_the_model_holds():
    inside, off = [], []
    for seed in range(12):
        found, audit, wrong = simulated(seed, rate=[0.1, 0.2, 0.4][seed % 3])
        said = [(found["noise_rate"], wrong.mean())]
        for point in (found["curve"][60], found["cut"]):
            flagged = audit.error_score >= point["threshold"]
            assert flagged.sum() == point["flagged"]
            said += [(point["precision"], wrong[flagged].mean()), (point["recall"], flagged[wrong].mean())]
        inside += [one["low"] - 0.005 <= real <= one["high"] + 0.005 for one, real in said]
        off += [one["value"] - real for one, real in said]
        assert np.array(found["transitions"]["value"]).sum(axis=1) == pytest.approx(1, abs=1e-3)
    assert np.mean(inside) > 0.8
    assert abs(np.mean(off)) < 0.06


def test_where_nothing_can_be_known_nothing_is_estimated():
    for found, why in ((simulated(0, knows=False)[0], "by chance"), (simulated(0, held=0.002)[0], "were held out")):
        assert why in found["cannot_say"]
        assert found["noise_rate"] is found["cut"] is found["transitions"] is None
        assert found["curve"] == []
        assert noise_rate(None, verified=found).sentence() == f"noise rate: cannot say, since {found['cannot_say']}"
        lines = verified_lines({**found, "injected": {"count": 300}})
        assert lines[1] == "no cut is recommended, since the noise rate is not known"
        table = sample(40, list("abc"))
        assert "cannot say" in audit_page(table, list("abc"), calibration={**found, "injected": {"count": 300}})


def test_an_injected_error_counts_by_its_place_and_not_by_the_second_score():
    rng = np.random.default_rng(4)
    errors = InjectedErrors(np.zeros(500, np.int64), np.arange(100, 180), np.arange(20), p_injected_is_true=0.0)
    first, second = rng.random(500), rng.random(480)
    injected = second[80:160]
    found = error_score_by_place(first, second, errors)
    assert (np.diff(found[np.argsort(injected)]) >= 0).all()
    assert found == pytest.approx(injected, abs=0.15)  # places, not values
    assert found == pytest.approx(error_score_by_place(first, second**5, errors))
    same = error_score_by_place(np.concatenate([np.ones(20), second]), second, errors)
    assert same == pytest.approx(injected, abs=0.02)


def test_who_is_above_or_below_all_others_is_where_these_end():
    errors = InjectedErrors(np.zeros(10, np.int64), np.array([8, 9]), np.array([0]), p_injected_is_true=0.0)
    first = np.linspace(0.1, 1.0, 10)
    second = np.array([0.2, 0.2, 0.3, 0.3, 0.4, 0.5, 0.6, 0.9, 0.1])
    assert error_score_by_place(first, second, errors) == pytest.approx([0.8, 0.2])
    second[3] = np.nan
    with refused("not-finite"):
        error_score_by_place(first, second, errors)


def test_the_curve_goes_down_and_the_intervals_hold_their_values():
    found = simulated(0)[0]
    thresholds, flagged = zip(*((p["threshold"], p["flagged"]) for p in found["curve"]), strict=True)
    assert list(thresholds) == sorted(thresholds, reverse=True)
    assert list(flagged) == sorted(flagged)
    assert len(found["curve"]) <= 101
    recall = [p["recall"]["value"] for p in found["curve"]]
    assert recall == sorted(recall)
    for estimate in [found["noise_rate"], *(p[name] for p in found["curve"] for name in ("precision", "recall"))]:
        assert 0 <= estimate["low"] <= estimate["value"] <= estimate["high"] <= 1
    assert json.loads(json.dumps(found)) == found


def test_more_injected_errors_make_narrower_intervals():
    widths = [simulated(3, errors=count)[0]["noise_rate"] for count in (40, 1000)]
    assert widths[0]["high"] - widths[0]["low"] > widths[1]["high"] - widths[1]["low"]
    assert any("40 label errors" in note for note in simulated(3, errors=40)[0]["notes"])


def test_a_run_is_verified_once_and_found_again(tmp_path):
    points, given, _ = clouds(0, 3.5, n=300)
    names = np.array(["ant", "bee", "cow", "dog"])[given]
    crust.fit("mlp", (points, names), epochs=4, batch_size=32, learning_rate=0.05, run_dir=tmp_path)
    assert RunFolder(tmp_path).verified() is None
    seen = []
    found = verify_audit(tmp_path, (points, names), on_epoch_end=seen.append)
    assert len(seen) == 4
    assert found["classes"] == ["ant", "bee", "cow", "dog"]
    assert RunFolder(tmp_path).verified() == found
    assert found["injected"]["count"] > 10
    assert RunFolder(tmp_path).seconds() > 0
    again = verify_audit(tmp_path, (points, names), on_epoch_end=seen.append)  # nothing is trained again
    assert len(seen) == 4
    assert again == found
    with refused("other-data"):
        verify_audit(tmp_path, (points, names[::-1]))
    (tmp_path / "verified.json").write_text(json.dumps({"version": VERSION + 1}))
    with pytest.raises(InputError, match=f"of version {VERSION + 1}, not {VERSION}"):
        RunFolder(tmp_path).verified()
    (tmp_path / "verified.json").write_text(json.dumps({"version": VERSION, "noise_rate": {}}))
    with pytest.raises(InputError, match="has no transitions: remove it, and verify the audit again"):
        RunFolder(tmp_path).verified()
    (tmp_path / "verified.json").write_text("{")
    with refused("damaged-file"):
        RunFolder(tmp_path).verified()


def test_clean_data_is_called_clean(tmp_path):
    """What the network suspects there is right, however much it looks like what it suspects of the injected labels."""
    points, _, true = clouds(5, 3.0, n=500)
    settings = {"method": "crust-half", "epochs": 6, "batch_size": 32, "learning_rate": 0.05}
    crust.fit("mlp", (points, true), run_dir=tmp_path, **settings)
    found = verify_audit(tmp_path, (points, true))
    assert found["noise_rate"]["low"] < 0.01
    assert found["noise_rate"]["value"] < 0.05


def test_a_verification_that_was_stopped_goes_on(tmp_path):
    points, given, _ = clouds(1, 3.5, n=200)
    for name in ("a", "b"):
        crust.fit("mlp", (points, given), epochs=3, batch_size=32, learning_rate=0.05, run_dir=tmp_path / name)

    class Enough(Exception):
        pass

    def stop(line):
        if line["epoch"] == 1:
            raise Enough

    with pytest.raises(Enough):
        verify_audit(tmp_path / "a", (points, given), on_epoch_end=stop)
    seen = []
    whole, parts = (
        verify_audit(tmp_path / "b", (points, given)),
        verify_audit(tmp_path / "a", (points, given), on_epoch_end=seen.append),
    )
    assert [line["epoch"] for line in seen] == [2]
    for found in (whole, parts):
        del found["injected"]["seconds"]
    assert whole == parts


def test_datasets_with_a_plain_twin_are_verified_without_those_left_out(tmp_path):
    points, given, _ = clouds(2, 3.5, n=240)

    class Shaken(Dataset):
        """Augments by itself."""

        def __init__(self, by):
            self.by = by

        def __len__(self):
            return len(points)

        def __getitem__(self, i):
            return torch.from_numpy(points[i]) + self.by * torch.randn(points.shape[1]), int(given[i])

    settings = {"epochs": 3, "batch_size": 32, "learning_rate": 0.05}
    crust.fit("mlp", Shaken(0.1), train_eval_set=Shaken(0.0), run_dir=tmp_path / "a", **settings)
    found = verify_audit(tmp_path / "a", Shaken(0.1), train_eval_set=Shaken(0.0))
    assert found["examples"] == 240
    left = len(RunFolder(tmp_path / "a/verification").audit_table())
    assert 240 - 0.4 * 240 < left < 240


def test_what_cannot_be_verified_is_refused(tmp_path):
    points, given, true = clouds(1, 3.5, n=120)
    crust.fit("mlp", (points, given), method="oracle", true_labels=true, epochs=1, run_dir=tmp_path / "oracle")
    with refused("true-labels"):
        verify_audit(tmp_path / "oracle", (points, given))
    crust.fit("mlp", (points, given), method="erm", val_set=(points, true), epochs=1, run_dir=tmp_path / "own")
    with refused("missing-validation"):
        verify_audit(tmp_path / "own", (points, given))
    config = yaml.safe_load((tmp_path / "own/config.yaml").read_text())
    (tmp_path / "own/config.yaml").write_text(yaml.safe_dump({**config, "built": False}))
    with refused("missing-model"):
        verify_audit(tmp_path / "own", (points, given), val_set=(points, true))
    with pytest.raises(InputError, match="holds no history"):
        RunFolder(tmp_path).seconds()

"""Label noise: what each name means, and that the labels drawn are what the matrix says."""

import logging
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.refusals import refused

from crust.errors import InputError
from crust.noise import (
    NoiseSpec,
    NoisyLabels,
    instance_noise,
    make_noisy_labels,
    noisify,
    parse_noise,
    released_labels,
    transition_matrix,
)
from crust.noise.spec import NAMES
from crust.noise.transition_matrices import CIFAR100_SUPERCLASSES, MATRICES

SIZES = {"asymmetric-cifar10": 10, "asymmetric-cifar100-superclass": 100, "asymmetric-cifar100-block": 100}
rates = st.floats(0, 1, allow_nan=False)


def build(name, rate, classes=7, seed=0):
    return transition_matrix(name, rate, SIZES.get(name, classes), rng=np.random.default_rng(seed))


# ------------------------------------------------------------------------------------------- matrices


@given(name=st.sampled_from(sorted(MATRICES)), rate=rates, classes=st.integers(2, 30), seed=st.integers(0, 99))
def test_rows_are_chances_that_sum_to_one(name, rate, classes, seed):
    T = build(name, rate, classes, seed)
    assert T.dtype == np.float64
    assert T.shape == (SIZES.get(name, classes),) * 2
    assert (T >= 0).all()
    np.testing.assert_allclose(T.sum(axis=1), 1, atol=1e-12)


@given(name=st.sampled_from(sorted(MATRICES)), classes=st.integers(2, 30))
def test_no_rate_no_noise(name, classes):
    T = build(name, 0.0, classes)
    np.testing.assert_array_equal(T, np.eye(len(T)))


@given(rate=rates, classes=st.integers(2, 50))
def test_inclusive_noise_is_exclusive_noise_at_a_lower_rate(rate, classes):
    inclusive = transition_matrix("symmetric-inclusive", rate, classes)
    exclusive = transition_matrix("symmetric", rate * (classes - 1) / classes, classes)
    np.testing.assert_allclose(inclusive, exclusive, atol=1e-12)


@given(classes=st.integers(2, 60), seed=st.integers(0, 1000))
def test_a_derangement_leaves_no_class_where_it_is(classes, seed):
    T = transition_matrix("derangement", 1.0, classes, rng=np.random.default_rng(seed))
    assert (np.diag(T) == 0).all()
    assert sorted(T.argmax(axis=1)) == list(range(classes))


def test_the_derangements_of_the_released_code():
    ten = transition_matrix("derangement", 1.0, 10, rng=np.random.RandomState(0)).argmax(axis=1)
    assert ten.tolist() == [2, 8, 4, 9, 1, 6, 7, 3, 0, 5]
    hundred = transition_matrix("derangement", 1.0, 100, rng=np.random.RandomState(0)).argmax(axis=1)
    assert cycle_lengths(hundred) == [2, 2, 11, 16, 69]


def cycle_lengths(image):
    lengths, seen = [], set()
    for start in range(len(image)):
        at, length = start, 0
        while at not in seen:
            seen.add(at)
            at, length = image[at], length + 1
        if length:
            lengths.append(length)
    return sorted(lengths)


def test_semantic_flips_of_cifar10():
    T = transition_matrix("asymmetric-cifar10", 0.4, 10)
    names = ["plane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    flips = {(names[i], names[j]): T[i, j] for i, j in np.argwhere(T > 0) if i != j}
    assert flips == {
        ("truck", "car"): 0.4, ("bird", "plane"): 0.4, ("deer", "horse"): 0.4, ("cat", "dog"): 0.4, ("dog", "cat"): 0.4
    }  # fmt: skip
    assert 1 - np.diag(T).mean() == pytest.approx(0.2)  # half of the classes are clean


def test_flips_of_cifar100_inside_superclasses_and_inside_blocks():
    groups = np.array(CIFAR100_SUPERCLASSES)
    assert np.bincount(groups).tolist() == [5] * 20
    target = transition_matrix("asymmetric-cifar100-superclass", 1.0, 100).argmax(axis=1)
    np.testing.assert_array_equal(groups[target], groups)
    assert cycle_lengths(target) == [5] * 20
    # aquatic mammals: beaver 4 → dolphin 30 → otter 55 → seal 72 → whale 95 → beaver
    assert target[[4, 30, 55, 72, 95]].tolist() == [30, 55, 72, 95, 4]
    block = transition_matrix("asymmetric-cifar100-block", 1.0, 100).argmax(axis=1)
    assert block[[0, 1, 4, 5, 99]].tolist() == [1, 2, 0, 6, 95]


def test_superclasses_of_ones_own():
    T = transition_matrix("asymmetric-cifar100-superclass", 0.5, 5, superclasses=[0, 1, 0, 1, 2])
    assert T[0, 2] == T[2, 0] == T[1, 3] == 0.5
    assert T[4, 4] == 1  # alone in its superclass: nowhere to go


def test_a_matrix_of_ones_own():
    T = transition_matrix([[1, 0], [0.5, 0.5]])
    assert T.dtype == np.float64


@pytest.mark.parametrize(
    ("T", "code"),
    [
        (np.ones((2, 3)), "not-square"),
        ([[1.0]], "not-square"),
        ([[0.5, 0.6], [0, 1]], "not-probabilities"),
        ([[1.5, -0.5], [0, 1]], "not-probabilities"),
        ([[np.nan, 1], [0, 1]], "not-probabilities"),
        ([["a", "b"], ["c", "d"]], "not-numbers"),
    ],
)
def test_matrices_that_are_none(T, code):
    with refused(code):
        transition_matrix(T)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("symetric", 0.5, 10), "unknown-noise"),
        (("symmetric", 50, 10), "rate-range"),
        (("symmetric", float("nan"), 10), "rate-range"),
        (("symmetric", None, 10), "missing-rate"),
        (("symmetric", 0.5, 1), "classes-count"),
        (("symmetric", 0.5, None), "classes-count"),
        (("derangement", 0.5, 10), "missing-rng"),
        (("asymmetric-cifar10", 0.5, 9), "classes-count"),
        (("asymmetric-cifar100-superclass", 0.5, 9), "classes-count"),
    ],
)
def test_impossible_noise(arguments, code):
    with refused(code):
        transition_matrix(*arguments)


def test_noise_that_nothing_can_undo_is_said(caplog):
    with caplog.at_level(logging.WARNING, logger="crust.noise"):
        transition_matrix("symmetric", 0.8, 10)
        assert not caplog.records
        transition_matrix("pair-flip", 0.5, 10)
    assert "as frequent as the right" in caplog.text


# ------------------------------------------------------------------------------------------- drawing


@pytest.mark.parametrize("name", sorted(MATRICES))
@pytest.mark.parametrize("rate", [0.2, 0.45, 1.0])
def test_labels_follow_the_matrix(name, rate):
    T = build(name, rate)
    n = 100_000
    clean = np.random.default_rng(1).integers(0, len(T), n)
    noisy = noisify(clean, T, np.random.default_rng(2))
    assert_within_sigmas(confusion(clean, noisy, len(T)), T)


def confusion(clean, noisy, classes):
    return np.bincount(clean * classes + noisy, minlength=classes**2).reshape(classes, classes)


def assert_within_sigmas(counts, T):
    n = counts.sum(axis=1, keepdims=True)
    sigma = np.sqrt(n * T * (1 - T))
    deviation = np.abs(counts - n * T)
    assert (deviation[sigma == 0] < 1e-6).all()
    # four sigma for one entry; the more entries, the farther the farthest
    bound = 4 if T.shape[0] <= 10 else 5
    assert (deviation <= bound * sigma + 1e-6).all()


@given(seed=st.integers(0, 2**32 - 1), classes=st.integers(2, 6), low=rates, high=rates)
def test_examples_that_change_at_a_low_rate_change_at_a_higher_one(seed, classes, low, high):
    low, high = sorted([low, high])
    clean = np.arange(60) % classes

    def changed(rate):
        T = transition_matrix("symmetric", rate, classes)
        return noisify(clean, T, np.random.default_rng(seed)) != clean

    assert (changed(low) <= changed(high)).all()


@given(seed=st.integers(0, 2**32 - 1))
def test_a_label_of_chance_zero_is_never_drawn(seed):
    T = transition_matrix("symmetric", 1.0, 4)
    clean = np.arange(400) % 4
    assert (noisify(clean, T, np.random.default_rng(seed)) != clean).all()


def test_the_same_seed_draws_the_same_and_leaves_the_global_state():
    before = pickle.dumps(np.random.get_state())  # noqa: NPY002
    clean = np.arange(1000) % 10
    for noise in ("symmetric:0.5", "derangement:0.4", "symmetric-released:0.5", "instance:0.3"):
        first, second = (make_noisy_labels(clean, noise, 10, 3, features=np.eye(1000, 5)) for _ in range(2))
        np.testing.assert_array_equal(first.labels, second.labels)
        assert first.hash == second.hash
    assert pickle.dumps(np.random.get_state()) == before  # noqa: NPY002


def test_no_labels_no_trouble():
    assert noisify(np.array([], int), np.eye(2), np.random.default_rng(0)).shape == (0,)


@pytest.mark.parametrize(
    ("labels", "code"),
    [([0, 3], "label-range"), ([-1], "label-range"), ([0.5], "labels-type"), ([[0]], "labels-shape")],
)
def test_labels_outside_of_the_matrix(labels, code):
    with refused(code):
        noisify(labels, np.eye(3), np.random.default_rng(0))


def released_by_the_letter(targets, kind, ratio, classes, seed):
    """The published procedure, one number after another from one seeded state."""
    state = np.random.RandomState(seed)
    found = []
    if kind == "asym":
        while True:
            permuted = state.permutation(classes)
            if not np.any(np.arange(classes) == permuted):
                break
    for target in targets:
        new = target
        if state.rand() < ratio:
            if kind == "asym":
                new = permuted[target]
            else:
                while new == target:
                    new = state.randint(classes)
        found.append(new)
    return found


@pytest.mark.parametrize("kind", ["agnostic", "asym"])
@pytest.mark.parametrize("seed", [0, 7])
def test_the_labels_of_the_released_code(kind, seed):
    clean = np.random.default_rng(0).integers(0, 10, 500)
    found = released_labels(clean, kind, 0.4, 10, seed)
    assert found.tolist() == released_by_the_letter(clean, kind, 0.4, 10, seed)
    name = {"agnostic": "symmetric-released", "asym": "derangement-released"}[kind]
    noise = make_noisy_labels(clean, f"{name}:0.4", 10, seed)
    np.testing.assert_array_equal(noise.labels, found)
    moved = noise.labels != clean
    assert (noise.matrix[clean[moved], noise.labels[moved]] > 0).all()


# ------------------------------------------------------------------------------------------- by instance


def test_instance_noise_has_the_rate_and_depends_on_the_instance():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20_000, 5))
    clean = rng.integers(0, 4, 20_000)
    noisy = instance_noise(x, clean, 0.4, 4, np.random.default_rng(1))
    # variance of a Bernoulli draw with a random rate of mean 0.4: 0.4 · 0.6, whatever the spread
    assert abs((noisy != clean).mean() - 0.4) < 4 * np.sqrt(0.24 / 20_000)
    # Of two halves of one class, split by a feature, the wrong labels differ: no transition matrix can say this.
    wrong = (clean == 0) & (noisy != clean)
    halves = [np.bincount(noisy[wrong & side], minlength=4) for side in (x[:, 0] > 0, x[:, 0] <= 0)]
    shares = [half / half.sum() for half in halves]
    assert np.abs(shares[0] - shares[1]).max() > 0.1


@given(seed=st.integers(0, 10_000), classes=st.integers(2, 5), scale=st.sampled_from([0.0, 1.0, 1e6]))
def test_instance_noise_stays_in_range_at_any_scale(seed, classes, scale):
    rng = np.random.default_rng(seed)
    clean = rng.integers(0, classes, 50)
    x = scale * rng.normal(size=(50, 3))
    noisy = instance_noise(x, clean, 0.9, classes, rng)
    assert noisy.min() >= 0
    assert noisy.max() < classes
    np.testing.assert_array_equal(instance_noise(x, clean, 0.0, classes, rng), clean)


@pytest.mark.parametrize(
    ("x", "code"),
    [(np.eye(2), "labels-length"), (np.full((3, 1), np.nan), "not-finite"), (list("abc"), "not-numbers")],
)
def test_features_that_cannot_be_used(x, code):
    with refused(code):
        instance_noise(x, [0, 1, 1], 0.5, 2, np.random.default_rng(0))


# ------------------------------------------------------------------------------------------- in one line, in a file


@given(name=st.sampled_from([n for n in NAMES if n != "matrix"]), rate=rates)
def test_a_line_is_read_as_it_is_written(name, rate):
    spec = NoiseSpec(name, round(rate, 6))
    assert parse_noise(str(spec)) == spec
    assert parse_noise(spec) is spec


@pytest.mark.parametrize(
    "text", ["symmetric", "symmetric:", "symmetric:half", "symmetric:1.5", ":0.5", "", "matrix:", "matrix:a.txt"]
)
def test_lines_that_say_nothing(text):
    with pytest.raises(InputError) as caught:
        parse_noise(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", [".npy", ".csv"])
def test_a_matrix_from_a_file(tmp_path, suffix):
    T, path = np.array([[0.75, 0.25], [0, 1]]), tmp_path / f"T{suffix}"
    np.save(path, T) if suffix == ".npy" else np.savetxt(path, T, delimiter=",")
    spec = parse_noise(f"matrix:{path}")
    np.testing.assert_array_equal(spec.matrix, T)
    assert spec == NoiseSpec("matrix", matrix=T)
    assert spec != NoiseSpec("matrix", matrix=np.eye(2))
    clean = np.array([0, 1] * 20)
    assert make_noisy_labels(clean, spec, 2).hash == make_noisy_labels(clean, T, 2).hash
    with pytest.raises(InputError, match="is for 2 classes, but there are 3"):
        make_noisy_labels(clean, spec, 3)


def test_a_matrix_file_that_is_none(tmp_path):
    with refused("missing-file"):
        parse_noise(f"matrix:{tmp_path}/none.npy")
    (tmp_path / "T.csv").write_text("a,b\nc,d\n")
    np.save(tmp_path / "T.npy", np.array([{}], dtype=object), allow_pickle=True)
    for name in ("T.csv", "T.npy"):
        with refused("damaged-file"):
            parse_noise(f"matrix:{tmp_path}/{name}")


@pytest.mark.parametrize("line", ["symmetric:0.3", "instance:0.3"])
def test_saved_and_loaded(tmp_path, line):
    noise = make_noisy_labels(np.arange(100) % 5, line, 5, seed=9, features=np.eye(100, 3))
    noise.save(tmp_path / "noise.npz")
    found = NoisyLabels.load(tmp_path / "noise.npz")
    np.testing.assert_array_equal(found.labels, noise.labels)
    assert (found.spec, found.seed, found.classes, found.hash) == (line, 9, 5, noise.hash)
    assert (found.matrix is None) == (line == "instance:0.3")
    assert [path.name for path in tmp_path.iterdir()] == ["noise.npz"]


def test_files_that_are_not_whole(tmp_path):
    noise = make_noisy_labels([0, 1] * 9, "symmetric:0.3", 2)
    path = tmp_path / "noise.npz"
    noise.save(path)
    whole = path.read_bytes()
    with np.load(path) as archive:
        arrays = dict(archive)
    for case in ("cut", "other labels", "no archive", "pickle"):
        if case == "cut":
            path.write_bytes(whole[: len(whole) // 2])
        elif case == "other labels":
            np.savez(path, **{**arrays, "labels": 1 - arrays["labels"]})
        elif case == "no archive":
            path.write_bytes(b"nothing")
        else:
            np.savez(path, **{**arrays, "about": np.array([{}], dtype=object)})
        with refused("damaged-file"):
            NoisyLabels.load(path)
    with refused("missing-file"):
        NoisyLabels.load(tmp_path / "none.npz")


def test_a_place_that_cannot_be_written(tmp_path):
    noise = make_noisy_labels([0, 1], "symmetric:0.3", 2)
    with pytest.raises(InputError, match="there is no folder"):
        noise.save(tmp_path / "no folder" / "noise.npz")
    with refused("file-suffix"):
        noise.save(tmp_path / "noise.csv")
    assert not list(tmp_path.iterdir())


def test_instance_noise_needs_features():
    with refused("missing-features"):
        make_noisy_labels([0, 1], "instance:0.2", 2)

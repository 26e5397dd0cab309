"""Noise in one line, such as `symmetric:0.5`, and the labels drawn from it: saved, loaded, named by a hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crust._util.atomic_write import write_atomic
from crust.errors import InputError, choices
from crust.noise.sample import check_range, instance_noise, noisify, released_labels
from crust.noise.transition_matrices import MATRICES, Matrix, check_matrix, check_rate, transition_matrix

# What the released code of CRUST draws, number for number, and its own names for it.
RELEASED = {"symmetric-released": "agnostic", "derangement-released": "asym"}
NAMES = (*MATRICES, "instance", *RELEASED, "matrix")


@dataclass(frozen=True, eq=False)
class NoiseSpec:
    """One kind of noise at one rate, or a matrix of one's own.

    Args:
        name: one of the names of `transition_matrix`, or `instance`, `symmetric-released`, `derangement-released`
            (the very labels of CRUST's released code), `matrix`.
        rate: the noise rate, from 0 to 1; None for a matrix.
        matrix: the transition matrix where the name is `matrix`.

    Example:
        >>> str(NoiseSpec("symmetric", 0.5))
        'symmetric:0.5'
    """

    name: str
    rate: float | None = None
    matrix: Matrix | None = None

    def __post_init__(self) -> None:
        choices(self.name, NAMES, "noise")
        if self.name == "matrix":
            object.__setattr__(self, "matrix", check_matrix(self.matrix))
            object.__setattr__(self, "rate", None)
        else:
            object.__setattr__(self, "rate", check_rate(self.rate))

    def __str__(self) -> str:
        if self.matrix is not None:  # by its content: where it was read from says nothing
            return f"matrix:{hashlib.sha256(self.matrix.astype('<f8').tobytes()).hexdigest()[:12]}"
        return f"{self.name}:{self.rate:.12g}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NoiseSpec) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


def parse_noise(text: str | NoiseSpec) -> NoiseSpec:
    """Read a line such as `symmetric:0.5`, or `matrix:T.npy` (also .csv) for a transition matrix in a file.

    Args:
        text: a name, a colon, a rate from 0 to 1.

    Returns:
        The specification.

    Example:
        >>> parse_noise("pair-flip:0.45")
        NoiseSpec(name='pair-flip', rate=0.45, matrix=None)
        >>> parse_noise("symetric:0.5")
        Traceback (most recent call last):
        ...
        crust.errors.InputError: unknown noise 'symetric': use one of symmetric, ...; did you mean 'symmetric'?
    """
    if isinstance(text, NoiseSpec):
        return text
    name, _, value = str(text).strip().partition(":")
    choices(name, NAMES, "noise")
    if name == "matrix":
        return NoiseSpec(name, matrix=_read_matrix(Path(value)))
    return NoiseSpec(name, check_rate(value or None))  # type: ignore[arg-type]


def make_noisy_labels(
    labels: ArrayLike,
    noise: str | NoiseSpec | NDArray[Any],
    classes: int,
    seed: int = 0,
    *,
    features: ArrayLike | None = None,
    superclasses: Sequence[int] | NDArray[Any] | None = None,
) -> NoisyLabels:
    """Draw noisy labels once, so that every run and every method can be given the same ones.

    Args:
        labels: the true labels, from 0 to C − 1.
        noise: a line such as `symmetric:0.5`, a `NoiseSpec`, or a transition matrix.
        classes: the number of classes C.
        seed: the same seed gives the same labels.
        features: (n, …) numbers, for `instance` noise only; pixels from 0 to 1.
        superclasses: for `asymmetric-cifar100-superclass` only; by default CIFAR-100's.

    Returns:
        The labels with all that is needed to draw them again.

    Example:
        >>> noise = make_noisy_labels([0, 1, 2, 0, 1, 2], "pair-flip:0.5", classes=3, seed=1)
        >>> noise.labels, noise.hash
        (array([0, 1, 0, 0, 2, 0]), '...')
    """
    spec = NoiseSpec("matrix", matrix=noise) if isinstance(noise, np.ndarray) else parse_noise(noise)
    clean = check_range(labels, classes)
    rng = np.random.default_rng(seed)
    T: Matrix | None = None
    if spec.name == "instance":
        if features is None:
            raise InputError("instance noise depends on the examples: give their features", code="missing-features")
        noisy = instance_noise(features, clean, spec.rate or 0.0, classes, rng)
    elif spec.name in RELEASED:
        noisy = released_labels(clean, RELEASED[spec.name], spec.rate or 0.0, classes, seed)
        # the same first draw, so the same permutation
        T = transition_matrix(spec.name.removesuffix("-released"), spec.rate, classes, rng=np.random.RandomState(seed))
    else:
        kind = spec.name if spec.matrix is None else spec.matrix
        T = transition_matrix(kind, spec.rate, classes, rng=rng, superclasses=superclasses)
        noisy = noisify(clean, T, rng)
    return NoisyLabels(noisy, str(spec), int(seed), int(classes), T)


@dataclass(frozen=True, eq=False)
class NoisyLabels:
    """Labels drawn from noise, with what they were drawn from.

    Args:
        labels: the noisy labels, int64.
        spec: the noise in one line, such as `symmetric:0.5`.
        seed: what they were drawn with.
        classes: the number of classes.
        matrix: the transition matrix; None for noise that depends on the instance.

    Example:
        >>> noise = make_noisy_labels([0, 1] * 50, "symmetric:0.4", classes=2, seed=0)
        >>> len(noise.hash), noise.hash == make_noisy_labels([0, 1] * 50, "symmetric:0.4", classes=2, seed=1).hash
        (12, False)
    """

    labels: NDArray[np.int64]
    spec: str
    seed: int
    classes: int
    matrix: Matrix | None = None

    @property
    def hash(self) -> str:
        """Twelve hexadecimal digits that name these labels: SHA-256 over the labels and the noise they came from."""
        content = np.ascontiguousarray(self.labels, dtype="<i8").tobytes() + b"\0" + self.spec.encode()
        return hashlib.sha256(content).hexdigest()[:12]

    def save(self, path: str | Path) -> None:
        """Write a .npz file, whole or not at all; `crust train --labels FILE:labels` reads it too."""
        path = Path(path)
        if path.suffix != ".npz":
            raise InputError(f"{path} cannot hold labels: give a name that ends in .npz", code="file-suffix")
        about = {"what": "noise", "spec": self.spec, "seed": self.seed, "classes": self.classes, "hash": self.hash}
        arrays: dict[str, Any] = {"labels": self.labels, "about": np.array(json.dumps(about))}
        if self.matrix is not None:
            arrays["matrix"] = self.matrix
        write_atomic(path, lambda file: np.savez(file, **arrays))

    @classmethod
    def load(cls, path: str | Path) -> NoisyLabels:
        """Read what `save` wrote; a file that was cut off or changed is refused."""
        path = Path(path)
        if not path.is_file():
            raise InputError(f"there is no file {path}: check the path", code="missing-file")
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
                about = json.loads(str(archive["about"]))
                matrix = archive["matrix"] if "matrix" in archive.files else None
                found = cls(archive["labels"], about["spec"], about["seed"], about["classes"], matrix)
            whole = about["what"] == "noise" and found.labels.dtype == np.int64 and found.hash == about["hash"]
        except Exception:  # a broken archive raises all kinds of errors, and all mean the same
            whole = False
        if not whole:
            raise InputError(f"{path} is no whole file of labels: give one of NoisyLabels.save", code="damaged-file")
        return found


def _read_matrix(path: Path) -> NDArray[Any]:
    if path.suffix.lower() not in (".npy", ".csv"):
        raise InputError(f"cannot read a matrix from {str(path)!r}: give matrix:FILE.npy or .csv", code="file-suffix")
    if not path.is_file():
        raise InputError(f"there is no file {path}: check the path", code="missing-file")
    try:
        if path.suffix.lower() == ".npy":
            return np.load(path, allow_pickle=False)
        return np.loadtxt(path, delimiter=",", ndmin=2, encoding="utf-8-sig")
    except (ValueError, OSError, EOFError):
        raise InputError(
            f"{path} does not hold a table of numbers: write the matrix again", code="damaged-file"
        ) from None

"""Label errors injected on purpose, to verify an audit: they take the place of labels that a run takes for wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEAST = 0.05  # of the examples are injected at least
ENOUGH = 200  # injected labels are enough, where that is more
SHARE = 0.4  # of the suspects are injected at most, where that is less
TAKEN = 0.45  # of the surest suspects are left out
FEW = 2  # examples of a label are kept in any case


@dataclass(frozen=True)
class InjectedErrors:
    """Labels with known wrong ones among them."""

    labels: NDArray[np.int64]  # for all examples, as numbers
    injected: NDArray[np.int64]  # positions of the examples that were given a wrong label on purpose
    # positions of suspects that are left out, so that there is about as much noise as before
    dropped: NDArray[np.int64]
    # the chance that an injected label is the true one, by accident, for each wrong label an example that was not
    # dropped had before; times their share it is the share of injected labels that are right
    p_injected_is_true: float

    @property
    def kept(self) -> NDArray[np.int64]:
        """Positions of all that are not dropped, in order."""
        return np.setdiff1d(np.arange(len(self.labels)), self.dropped)


def inject_errors(
    error_score: NDArray[np.float64],
    given: NDArray[np.int64],
    suggested: NDArray[np.int64],
    rate: float,
    classes: int,
    rng: np.random.Generator,
) -> InjectedErrors:
    """Leave out some of the surest suspects, and give as many other examples wrong labels like theirs.

    A suspect is an example whose suggested label is not the given one. Where one that seems to be a cat is labelled
    dog, another that is labelled cat is labelled dog instead, whatever the run thinks of it: noise that depends on
    the class alone does not ask which examples are easy. So there is about as much noise as before, of the same
    kind, and a network trained on it is about as good a judge as the one before. Noise that is merely added makes it
    a worse one. So does giving suspects their suggested labels instead of leaving them out where few of these are
    right: on CIFAR-10 with a fifth of the labels wrong injected labels were then found so much less often than
    others that the noise rate was said to be 0.31.

    Only some of the surest are left out, at random, so that error scores of all heights remain. The wrong labels are
    like those of as many suspects of the highest scores as are wrong by the first estimate `rate`: among fewer there
    are too many that are easy to find (a truck that is labelled cat), among more too many right ones that the network
    confuses.

    Example:
        >>> given = np.repeat([0, 1], 50)
        >>> suggested = np.where(np.arange(100) % 10 == 0, 1 - given, given)
        >>> error_score, rng = 1.0 * (given != suggested), np.random.default_rng(0)
        >>> errors = inject_errors(error_score, given, suggested, 0.1, 2, rng)
        >>> len(errors.injected), len(errors.dropped), int((errors.labels != given).sum())
        (5, 4, 5)
    """
    n = len(given)
    suspects = np.flatnonzero(given != suggested)
    count = round(float(np.clip(SHARE * len(suspects), LEAST * n, max(ENOUGH, LEAST * n))))
    suspects = suspects[np.argsort(-error_score[suspects], kind="stable")]
    dropped = _dropped(suspects[: round(count / TAKEN)], given, rng)
    models = suspects[: round(n * rate)]
    kept = np.ones(n, bool)
    kept[dropped] = False
    waiting = [rng.permutation(np.flatnonzero(kept & (given == label))).tolist() for label in range(classes)]
    labels, injected = given.copy(), []
    for seems, wrong in _label_pairs(models, given, suggested, count, classes, rng):
        if waiting[seems]:
            injected.append(waiting[seems].pop())
            labels[injected[-1]] = wrong
    some = np.array(sorted(injected), np.int64)
    return InjectedErrors(labels, some, dropped, _chance_to_be_true(models, some, labels, given, suggested, classes))


def _dropped(top: NDArray[np.int64], given: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Some of the surest suspects, but never the last examples of a label."""
    left = np.bincount(given)
    found = []
    for i in rng.permutation(top)[: round(TAKEN * len(top))]:
        if left[given[i]] > FEW:
            left[given[i]] -= 1
            found.append(i)
    return np.array(sorted(found), np.int64)


def _label_pairs(
    models: NDArray[np.int64],
    given: NDArray[np.int64],
    suggested: NDArray[np.int64],
    count: int,
    classes: int,
    rng: np.random.Generator,
) -> list[tuple[int, int]]:
    """What to take for what: as the models are, each at most once on average, and beyond that anything for anything.

    Many errors of one kind would be a noise of their own, which a network takes for the rule.
    """
    few = min(count, len(models))
    drawn = rng.choice(models, few) if few else models
    seems = given[rng.integers(len(given), size=count - few)]
    other = (seems + rng.integers(1, classes, count - few)) % classes
    return [
        *zip(suggested[drawn].tolist(), given[drawn].tolist(), strict=True),
        *zip(seems.tolist(), other.tolist(), strict=True),
    ]


def _chance_to_be_true(
    models: NDArray[np.int64],
    injected: NDArray[np.int64],
    labels: NDArray[np.int64],
    given: NDArray[np.int64],
    suggested: NDArray[np.int64],
    classes: int,
) -> float:
    """How often an injected label would be the true one if all labels were wrong, in the way that the models are.

    Who is labelled cat and is a dog, and is then labelled dog on purpose, is labelled right.
    """
    if not len(models) or not len(injected):
        return 0.0
    pairs = np.zeros((classes, classes))
    np.add.at(pairs, (suggested[models], given[models]), 1.0)
    sizes = np.bincount(given, minlength=classes)
    was, became = given[injected], labels[injected]
    return float(np.mean(pairs[became, was] / pairs.sum() * len(given) / sizes[was]))

"""Selection where each of several processes has some of the points: nobody ever has all of them.

A group that is measured whole goes to one process, which gets its rows from the others; groups are dealt so that all
have about the same work. A group that is measured against a sample stays where it is (`sampled_centrality`). What
everyone learns in the end are a few numbers a point. The answers are those of one process with all points, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust.selection.budget import resolve_k, split_budget
from crust.selection.coreset import Coreset
from crust.selection.sampled_centrality import SMALL, sample_size, sampled_means
from crust.selection.select_coreset import centrality, select
from crust.selection.together import Together

ROUND_NUMBERS = 2**26  # of the points that a process gets at once


def owners(sizes: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Which of so many processes measures which group, the largest first to whoever has least to do.

    Example:
        >>> owners(np.array([10, 60, 50, 30, 0]), 2).tolist()
        [1, 0, 1, 1, 1]
    """
    work, found = np.zeros(count), np.zeros(len(sizes), np.int64)
    for group in np.argsort(-sizes, kind="stable").tolist():
        found[group] = work.argmin()
        work[found[group]] += float(sizes[group]) ** 2
    return found


def dealt_centrality(
    features: NDArray[np.floating],
    codes: NDArray[np.int64],
    together: Together,
    *,
    sample: int,
    threads: int,
    device: Any = None,
) -> NDArray[np.float64]:
    """`centrality` of all points, of which we have some rows; everyone gets all answers.

    Args:
        features: our rows.
        codes: the group of every point, ours and the others'.
        together: the processes.
        sample: as `centrality` has it.
        threads: for our part of the work.
        device: a torch device that measures points against a sample.
    """
    ours, points = together.slice(len(codes)), sample_size(sample)
    sizes = np.bincount(codes)
    large = sizes > SMALL * points
    owner = owners(np.where(large, 0, sizes), together.count)
    how: dict[str, Any] = {"threads": threads, "device": device}
    means = np.empty(len(codes))
    for members, rows in _dealt(features, codes, ~large, owner, together):
        means[members] = centrality(rows, codes[members], sample=sample, **how)
    mine = codes[ours]
    on_device = None if device is None or str(device).startswith("cpu") else device
    for group in np.flatnonzero(large).tolist():
        index = np.flatnonzero(mine == group)
        found, _ = sampled_means(
            features, index, "euclidean", points, threads=threads, device=on_device, together=together
        )
        means[ours[index]] = found
    where = np.where(large[codes], _ranks(len(codes), together), owner[codes])
    return _made_right(means, where, together)


def dealt_select(
    features: NDArray[np.floating],
    share: float,
    codes: NDArray[np.int64],
    together: Together,
    *,
    algorithm: str,
    threads: int,
) -> Coreset:
    """`select` with groups, by "greedy" or "central", from points of which we have some rows."""
    if algorithm not in ("greedy", "central"):
        raise AssertionError(f"{algorithm} draws from all points")
    names, inner = np.unique(codes, return_inverse=True)
    sizes = np.bincount(inner)
    budgets = split_budget(resolve_k(share, len(codes)), sizes)
    if (budgets == 0).any():  # whose points then belong to medoids of other groups
        return select(together.join(features), share, groups=codes, algorithm=algorithm, threads=threads)
    owner = owners(sizes, together.count)
    medoid, nearest = np.empty(len(codes), np.int64), np.empty(len(codes), np.float32)
    gain = np.zeros(len(codes))  # of the medoids, and their place among those of their group
    place = np.full(len(codes), -1)
    for members, rows in _dealt(features, inner, np.ones(len(sizes), bool), owner, together):
        for group in np.unique(inner[members]).tolist():
            within = np.flatnonzero(inner[members] == group)
            found = select(rows[within], int(budgets[group]), algorithm=algorithm, threads=threads)
            index = members[within]
            medoid[index], nearest[index] = index[found.indices[found.assignment]], found.distances
            gain[index[found.indices]], place[index[found.indices]] = found.gains, np.arange(len(found.indices))
    where = owner[inner]
    medoid, nearest, place = (_made_right(each, where, together) for each in (medoid, nearest, place))
    gain = _made_right(gain, np.where(place >= 0, where, -1), together)
    order = np.lexsort((place, inner))
    order = order[place[order] >= 0]
    picked = [order[inner[order] == group] for group in range(len(sizes))]
    gains = [gain[each] for each in picked]
    info = {"algorithm": algorithm, "metric": "euclidean", "k": int(budgets.sum())}
    return Coreset.of_medoids(picked, medoid, nearest.astype(np.float64), gains, names[inner[order]], info)


def _dealt(
    features: NDArray[Any],
    codes: NDArray[np.int64],
    wanted: NDArray[np.bool_],
    owner: NDArray[np.int64],
    together: Together,
) -> Iterator[tuple[NDArray[np.int64], NDArray[Any]]]:
    """Which points of the wanted groups are for us, rising, and their rows; whole groups, not too many at once."""
    sizes = np.bincount(codes, minlength=len(wanted)) * wanted
    # some groups of every process in each round, so that all have something to do
    queue = np.argsort(-sizes, kind="stable")
    rounds = np.full(len(sizes), -1)
    rounds[queue] = np.cumsum(sizes[queue]) // max(1, ROUND_NUMBERS * together.count // features.shape[1])
    rounds[~wanted | (sizes == 0)] = -1
    mine = codes[together.slice(len(codes))]
    for number in np.unique(rounds[rounds >= 0]).tolist():
        to = np.where(rounds[mine] == number, owner[mine], -1)
        rows = together.exchange([features[to == rank] for rank in range(together.count)])
        members = np.flatnonzero((rounds[codes] == number) & (owner[codes] == together.rank))
        if len(members):  # else there are fewer groups than processes
            yield members, rows


def _ranks(n: int, together: Together) -> NDArray[np.int64]:
    """Which process has each of n points."""
    return np.repeat(np.arange(together.count), [len(together.slice(n, rank)) for rank in range(together.count)])


def _made_right(values: NDArray[Any], where: NDArray[np.int64], together: Together) -> NDArray[Any]:
    """Numbers that each are right in one process, `where` (-1: nowhere), made right in all."""
    joined = together.join(values[where == together.rank])
    order = np.argsort(where, kind="stable")
    order = order[where[order] >= 0]
    found = values.copy()
    found[order] = joined
    return found

"""The answer of every selection: which points, how many others each stands for, and how far those are.

Saved, a coreset is one Parquet table with a row a point, which pandas or any other reader opens:

| column | meaning |
|---|---|
| medoid | number of the point (row) that stands for this one; a medoid stands for itself |
| distance | to that medoid |
| rank | position among the picks, from 0; -1 for points that were not picked |
| weight | how many points it stands for; 0 for points that were not picked |
| gain | marginal gain when it was picked; empty for points that were not picked |
| group | its group, where groups were given |

The objective and the settings are JSON in the schema's metadata, under the key `crust`.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust._util.atomic_write import write_atomic
from crust._util.foreign_files import check_regular, path_of
from crust.errors import InputError, choices

FORMAT = 1  # of the file; to be raised when an older crust could not read it
SCALES = ("mean", "count")


@dataclass(frozen=True, eq=False, repr=False)
class Coreset:
    """Medoids chosen from n points, and the cluster of each.

    Args:
        indices: int64, the medoids in the order they were picked, group after group, groups sorted by name.
        weights: int64, cluster sizes; they sum to n.
        assignment: int64, for each of the n points the position of its medoid in `indices`.
        gains: float64, marginal gains in the order of the picks.
        objective: sum of the distances to the nearest medoid.
        distances: float32, for each of the n points the distance to its medoid.
        groups: for each medoid the name of its group (strings, integers or booleans); None without groups.
        info: the settings that led here; anything JSON can hold.

    Example:
        >>> coreset = Coreset([1, 2], [2, 1], [0, 0, 1], [9.0, 4.9], 0.1, [0.1, 0.0, 0.0])
        >>> coreset
        Coreset(2 of 3 points, objective 0.1)
        >>> coreset.indices[coreset.assignment].tolist()
        [1, 1, 2]
    """

    indices: NDArray[np.int64]
    weights: NDArray[np.int64]
    assignment: NDArray[np.int64]
    gains: NDArray[np.float64]
    objective: float
    distances: NDArray[np.float32]
    groups: NDArray[Any] | None = None
    info: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        def settle(name: str, dtype: type | None, length: int | None) -> None:
            array = np.asarray(getattr(self, name), dtype=dtype)
            if array.ndim != 1 or (length is not None and len(array) != length):
                raise InputError(
                    f"{name} has shape {array.shape}, but it must have shape ({length or 'k'},)", code="shape"
                )
            object.__setattr__(self, name, array)  # frozen: this is the one moment to set it

        settle("indices", np.int64, None)
        settle("weights", np.int64, len(self.indices))
        settle("gains", np.float64, len(self.indices))
        settle("assignment", np.int64, None)
        settle("distances", np.float32, len(self.assignment))
        if self.groups is not None:
            settle("groups", None, len(self.indices))
            if self.groups.dtype.kind not in "biuU":
                raise InputError(
                    f"groups has type {self.groups.dtype}: use strings, integers or booleans", code="group-type"
                )
        object.__setattr__(self, "objective", float(self.objective))

    @classmethod
    def of_medoids(
        cls, picked: list[Any], medoid: Any, nearest: Any, gains: list[Any], groups: Any, info: dict[str, Any]
    ) -> Coreset:
        """From what each group picked and gained by it, and the medoid (a row) of every point and how far it is."""
        indices = np.concatenate(picked)
        position = np.empty(len(medoid), np.int64)
        position[indices] = np.arange(len(indices))
        assignment = position[medoid]
        return cls(
            indices=indices,
            weights=np.bincount(assignment, minlength=len(indices)),
            assignment=assignment,
            gains=np.concatenate(gains),
            objective=float(nearest.sum()),
            distances=np.minimum(nearest, np.finfo(np.float32).max).astype(np.float32),
            groups=groups,
            info=info,
        )

    def __len__(self) -> int:
        """Number of medoids, k."""
        return len(self.indices)

    def __repr__(self) -> str:
        words = [f"{len(self)} of {self.n} points"]
        if self.groups is not None:
            count = len(np.unique(self.groups))
            words.append(f"{count} group{'s' if count != 1 else ''}")
        words.append(f"objective {self.objective:.6g}")
        words += [str(self.info[key]) for key in ("algorithm", "metric") if key in self.info]
        return f"Coreset({', '.join(words)})"

    @property
    def n(self) -> int:
        """Number of points the coreset was chosen from.

        Example:
            >>> Coreset([1, 2], [2, 1], [0, 0, 1], [9.0, 4.9], 0.1, [0.1, 0.0, 0.0]).n
            3
        """
        return len(self.assignment)

    def arrays(self) -> dict[str, Any]:
        """All fields by name, to be kept in a larger file; `from_arrays` takes them back.

        Example:
            >>> coreset = Coreset([1], [2], [0, 0], [1.0], 0.5, [0.5, 0.0])
            >>> Coreset.from_arrays(coreset.arrays()).objective
            0.5
        """
        return {name: value for name, value in vars(self).items() if value is not None}

    @classmethod
    def from_arrays(cls, fields: dict[str, Any]) -> Coreset:
        """The coreset whose `arrays` these are."""
        return cls(**fields)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one Parquet file: all of it or, where anything goes wrong, nothing.

        Args:
            path: the file; its folder must exist.

        Example:
            >>> import tempfile
            >>> coreset = Coreset([1, 2], [2, 1], [0, 0, 1], [9.0, 4.9], 0.1, [0.1, 0.0, 0.0])
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     coreset.save(f"{folder}/coreset.parquet")
            ...     Coreset.load(f"{folder}/coreset.parquet").weights.tolist()
            [2, 1]
        """
        import pyarrow.parquet as pq

        table = _to_table(self)
        # Checksums: a page that went bad on a disk is refused when it is loaded
        write_atomic(path_of(path), lambda file: pq.write_table(table, file, write_page_checksum=True))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Coreset:
        """Read what `save` wrote, the same to the last bit.

        Args:
            path: the file.

        Returns:
            The coreset.

        Example:
            >>> Coreset.load("nowhere.parquet")
            Traceback (most recent call last):
            ...
            crust.errors.InputError: there is no file nowhere.parquet
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = path_of(path, "the coreset")
        check_regular(path)
        if path.is_dir():
            raise InputError(f"{path} is a folder: give the Parquet file of a coreset", code="is-folder")
        try:
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                table = file.read()
        except FileNotFoundError:
            raise InputError(f"there is no file {path}", code="missing-file") from None
        except PermissionError:
            raise InputError(f"{path} may not be read: change its permissions", code="unreadable") from None
        # Damaged bytes surface as any of these
        except (pa.ArrowException, OSError, ValueError, MemoryError, OverflowError):
            raise InputError(
                f"{path} is damaged or no Parquet file: save the coreset again", code="damaged-file"
            ) from None
        return _from_table(table, path)

    def subset(self, dataset: Any, scale: str = "mean") -> WeightedSubset:
        """The medoids' items of a dataset, each with its weight, ready for a torch DataLoader.

        Args:
            dataset: map-style, with an item for each of the n points, in the same order.
            scale: "mean" scales the weights to a mean of 1 over the coreset, "count" leaves the cluster sizes.

        Returns:
            A map-style dataset of k items.

        Example:
            >>> coreset = Coreset([1, 2], [2, 1], [0, 0, 1], [9.0, 4.9], 0.1, [0.1, 0.0, 0.0])
            >>> subset = coreset.subset([("a", 0), ("b", 0), ("c", 1)], scale="count")
            >>> [(x, y, float(weight)) for x, y, weight in subset]
            [('b', 0, 2.0), ('c', 1, 1.0)]
        """
        choices(scale, SCALES, "scale")
        if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
            raise InputError(
                f"the dataset is a {type(dataset).__name__}: give one with a length and items by number",
                code="not-a-dataset",
            )
        if len(dataset) != self.n:
            raise InputError(
                f"the dataset has {len(dataset)} items, but the coreset was chosen from {self.n} points: "
                "give the dataset it was chosen from",
                code="dataset-length",
            )
        factor = 1.0 if scale == "count" else 1.0 / self.weights.mean()
        return WeightedSubset(dataset, self.indices, (self.weights * factor).astype(np.float32))


class WeightedSubset:
    """Some items of a map-style dataset, each with a weight as its last part.

    An item that is a tuple or a list gets the weight appended: `(x, y)` becomes `(x, y, weight)`. Any other item
    becomes `(item, weight)`.

    Args:
        dataset: anything with a length and items by number.
        indices: which items, in this order.
        weights: one float32 each.

    Example:
        >>> subset = WeightedSubset(["a", "b", "c"], [2, 0], np.array([0.5, 1.5], dtype=np.float32))
        >>> [(item, float(weight)) for item, weight in subset]
        [('c', 0.5), ('a', 1.5)]
    """

    def __init__(self, dataset: Any, indices: Sequence[int] | NDArray[np.int64], weights: NDArray[np.float32]) -> None:
        self.dataset = dataset
        self.indices = np.asarray(indices, dtype=np.int64)
        self.weights = np.asarray(weights, dtype=np.float32)

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, position: int) -> tuple[Any, ...]:
        # int(): many datasets know Python's integers only
        return _with_weight(self.dataset[int(self.indices[position])], self.weights[position])

    def __getitems__(self, positions: Sequence[int]) -> list[tuple[Any, ...]]:
        """A whole batch: the way a DataLoader asks, and some datasets are much faster when asked so."""
        if not hasattr(self.dataset, "__getitems__"):
            return [self[position] for position in positions]
        items = self.dataset.__getitems__([int(i) for i in self.indices[positions]])
        return [_with_weight(item, weight) for item, weight in zip(items, self.weights[positions], strict=True)]


def _with_weight(item: Any, weight: np.float32) -> tuple[Any, ...]:
    return (*item, weight) if isinstance(item, (tuple, list)) else (item, weight)


# ---------------------------------------------------------------------------------------------- the file


def _to_table(coreset: Coreset) -> Any:
    """The coreset as a pyarrow table, a row a point."""
    import pyarrow as pa

    picked, n = coreset.indices, coreset.n
    rank = np.full(n, -1, dtype=np.int64)
    rank[picked] = np.arange(len(picked))
    weight = np.zeros(n, dtype=np.int64)
    weight[picked] = coreset.weights
    gain = np.zeros(n, dtype=np.float64)
    gain[picked] = coreset.gains
    columns = {
        "medoid": picked[coreset.assignment],
        "distance": coreset.distances,
        "rank": rank,
        "weight": weight,
        "gain": pa.array(gain, mask=rank < 0),
    }
    if coreset.groups is not None:
        # A cluster never crosses groups, so each point has the group of its medoid
        names, codes = np.unique(coreset.groups, return_inverse=True)
        group = pa.DictionaryArray.from_arrays(codes[coreset.assignment], pa.array(_native(names)))
        columns["group"] = group.cast(group.type.value_type)  # as plain values: pandas then shows plain values too
    about = {
        "what": "coreset",
        "format": FORMAT,
        "version": _version(),
        "k": len(coreset),
        "n": n,
        "objective": coreset.objective,
        "groups": None if coreset.groups is None else coreset.groups.dtype.str,
        "info": coreset.info,
    }
    # numpy's numbers in the settings are numbers all the same
    text = json.dumps(about, default=lambda value: value.item())
    return pa.table(columns, metadata={"crust": text})


def _native(array: NDArray[Any]) -> NDArray[Any]:
    """In the byte order of this machine, the only one pyarrow takes."""
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _from_table(table: Any, path: Path) -> Coreset:
    """What `_to_table` made a table of."""
    text = (table.schema.metadata or {}).get(b"crust")
    if text is None:
        raise InputError(
            f"{path} is a Parquet file, but not one of a coreset: give what Coreset.save wrote", code="not-a-coreset"
        )
    try:
        about = json.loads(text)
        if about["what"] != "coreset":
            raise ValueError
        if about["format"] > FORMAT:
            raise InputError(
                f"{path} was written by crust {about['version']}, which is newer: upgrade crust-learn",
                code="newer-version",
            )
        medoid, distances, rank, weight, gain = (
            table[name].to_numpy() for name in ("medoid", "distance", "rank", "weight", "gain")
        )
        picked = np.flatnonzero(rank >= 0)
        indices = picked[np.argsort(rank[picked])]
        assignment = rank[medoid]
        whole = len(rank) == about["n"] and np.array_equal(rank[indices], np.arange(about["k"]))
        if not whole or min(medoid.min(initial=0), assignment.min(initial=0)) < 0:
            raise ValueError
        groups = None
        if about["groups"] is not None:
            groups = table["group"].take(indices).to_numpy(zero_copy_only=False).astype(about["groups"])
        return Coreset(
            indices=indices,
            weights=weight[indices],
            assignment=assignment,
            gains=gain[indices],
            objective=about["objective"],
            distances=np.array(distances),  # a copy, because pyarrow's own array cannot be written to
            groups=groups,
            info=about["info"],
        )
    except InputError:
        raise
    except (KeyError, IndexError, TypeError, ValueError):
        raise InputError(
            f"{path} does not hold together as a coreset: save the coreset again", code="damaged-file"
        ) from None


def _version() -> str:
    try:
        return importlib.metadata.version("crust-learn")
    except importlib.metadata.PackageNotFoundError:  # run from a source folder
        return "unknown"

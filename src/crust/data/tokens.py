"""Token ids of examples of different lengths: one after the other in memory, padded a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crust.data.examples import Examples
from crust.data.labels import encode_labels
from crust.errors import InputError

if TYPE_CHECKING:
    import torch

__all__ = ["Tokens", "from_tokens"]

PADDING = 0
LARGEST = 2**31 - 1  # ids are kept as int32


class Tokens:
    """Whole numbers, as many an example as it has: the inputs of `Examples` of the kind `tokens`.

    Args:
        ids: of all examples, one after the other; 0 is padding.
        offsets: where each example begins, and at last where the last one ends.
        vocabulary: how many ids there are, 0 counted: the rows that an embedding must have.
        texts: what the ids were made from, to be shown.
        encoding: how they were made, so that new texts become ids in the same way; plain values.

    Example:
        >>> tokens = Tokens(np.array([5, 3, 7]), np.array([0, 2, 3]), vocabulary=8)
        >>> len(tokens), tokens[0].tolist(), tokens.padded(np.array([1, 0])).tolist()
        (2, [5, 3], [[7, 0], [5, 3]])
    """

    def __init__(
        self,
        ids: NDArray[Any],
        offsets: NDArray[np.int64],
        vocabulary: int,
        texts: Sequence[str] | None = None,
        encoding: dict[str, Any] | None = None,
    ):
        self.ids, self.offsets = np.ascontiguousarray(ids, np.int32), offsets
        self.vocabulary, self.texts, self.encoding = vocabulary, texts, encoding

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, position: int) -> NDArray[np.int32]:
        if not 0 <= position < len(self):
            raise IndexError(position)  # where a loop over the examples ends
        return self.ids[self.offsets[position] : self.offsets[position + 1]]

    def __iter__(self) -> Iterator[NDArray[np.int32]]:
        return (self[i] for i in range(len(self)))

    def subset(self, rows: NDArray[np.int64]) -> Tokens:
        """Some of the examples, copied, in this order."""
        lengths = np.diff(self.offsets)[rows]
        texts = None if self.texts is None else [self.texts[i] for i in rows]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return Tokens(self._ids_of(rows, lengths), offsets, self.vocabulary, texts, self.encoding)

    def padded(self, rows: NDArray[np.int64]) -> torch.Tensor:
        """Some of the examples as one matrix (int64), as wide as the longest of them."""
        import torch

        lengths = np.diff(self.offsets)[rows]
        width = max(1, int(lengths.max(initial=0)))  # one column at least: a network is not made for none
        found = np.full((len(rows), width), PADDING, np.int64)
        found[np.arange(width) < lengths[:, None]] = self._ids_of(rows, lengths)
        return torch.from_numpy(found)

    def counts(self, width: int = 256) -> NDArray[np.float32]:
        """How often ids occur in each example, folded into so many columns, as logarithms: features for others.

        Example:
            >>> np.expm1(Tokens(np.array([5, 3, 7]), np.array([0, 2, 3]), 8).counts(4)).round().tolist()
            [[0.0, 1.0, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0]]
        """
        row = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        found = np.bincount(row * width + self.ids % width, minlength=len(self) * width)
        return np.log1p(found.reshape(len(self), width)).astype(np.float32)

    def hash_into(self, digest: Any) -> None:
        """All that the network sees, for a fingerprint."""
        digest.update(np.ascontiguousarray(self.ids, "<i4").data)
        digest.update(np.ascontiguousarray(self.offsets, "<i8").data)

    def _ids_of(self, rows: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int32]:
        begin = self.offsets[rows] - (np.cumsum(lengths) - lengths)
        return self.ids[np.arange(int(lengths.sum())) + np.repeat(begin, lengths)]


def from_tokens(
    ids: Any, y: Any = None, *, classes: Sequence[Any] | None = None, where: str = "the labels"
) -> Examples:
    """Examples from token ids in memory, for networks that embed them; they stay whole numbers all the way.

    Args:
        ids: a matrix of whole numbers, (n, length), which the network gets as it is; or a list of lists of different
            lengths, which are filled up with 0 batch by batch.
        y: the labels; None where they are not known.
        classes: the classes; by default the different labels.
        where: what to call the labels in an error message.

    Returns:
        The examples, kind `tokens`.

    Example:
        >>> examples = from_tokens([[4, 8, 1], [7]], ["a", "b"])
        >>> examples.shape, examples.inputs.padded(np.array([0, 1])).tolist()
        ((9,), [[4, 8, 1], [7, 0, 0]])
    """
    if are_ids(ids):
        matrix = ids.detach().cpu().numpy() if hasattr(ids, "detach") else np.asarray(ids)
        flat, lengths = matrix.reshape(-1), np.full(len(matrix), matrix.shape[1])
    else:
        try:
            rows = [np.asarray(row) for row in ids]
        except (TypeError, ValueError):
            rows = []
        bad = next(
            (i for i, row in enumerate(rows) if row.ndim != 1 or (row.size and row.dtype.kind not in "iu")), None
        )
        if not rows or bad is not None:
            what = (
                "the token ids are empty or no list" if bad is None else f"row {bad} of the token ids is no list of ids"
            )
            raise InputError(f"{what}: give a matrix or a list of lists of whole numbers", code="no-token-ids")
        flat, lengths = np.concatenate([row.astype(np.int64) for row in rows]), np.array([len(row) for row in rows])
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    if flat.size and not (flat.min() >= 0 and flat.max() <= LARGEST):
        place = int(((flat < 0) | (flat > LARGEST)).argmax())
        raise InputError(
            f"row {int(np.searchsorted(offsets, place, 'right')) - 1} holds the token id {flat[place]}: "
            f"give whole numbers from 0 to {LARGEST}",
            code="token-id-range",
        )
    return token_examples(Tokens(flat, offsets, int(flat.max(initial=0)) + 1), y, classes, where)


def token_examples(tokens: Tokens, y: Any, classes: Sequence[Any] | None, where: str) -> Examples:
    """Examples with these inputs; without labels where they are not known."""
    if y is None:
        return Examples(tokens, np.full(len(tokens), -1), list(classes or []), "tokens")
    if len(y) != len(tokens):
        raise InputError(
            f"there are {len(y)} labels for {len(tokens)} examples: give one label an example", code="label-count"
        )
    codes, names = encode_labels(y, classes, where)
    return Examples(tokens, codes, names, "tokens")


def are_ids(values: Any) -> bool:
    """Whether this is a matrix of whole numbers, as token ids of one length are.

    Example:
        >>> are_ids(np.array([[1, 2]])), are_ids(np.array([[1.0, 2.0]])), are_ids(np.array([1, 2]))
        (True, False, False)
    """
    kind = str(getattr(values, "dtype", "")).removeprefix("torch.")
    return getattr(values, "ndim", 0) == 2 and kind.startswith(("int", "uint"))

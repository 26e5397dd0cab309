"""Texts as token ids, without a vocabulary and without a download: words and pairs of words, hashed."""

from __future__ import annotations

import logging
import re
import unicodedata
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust.data.examples import Examples
from crust.data.tokens import Tokens, token_examples
from crust.errors import InputError

__all__ = ["from_texts", "hash_texts", "is_text"]

log = logging.getLogger("crust.data")

# How texts become ids. It is kept with a run, so that new texts become ids in the same way.
ENCODING: dict[str, Any] = {"words": 400, "pairs": True, "buckets": 2**15}
LETTERS = 100  # a word: what stands beyond so many characters for each word that is read is not even looked at

# Scripts without spaces between words (Thai, Japanese, Chinese): each letter counts as a word.
UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")
# Accents on their own, and vowel signs from Hebrew to Khmer: within words, though Python's \w leaves them out.
SIGNS = "\u0300-\u036f\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff\u0e80-\u109f\u1780-\u17d3"
# A word, or signs in a row: !!! is one, and so is an emoji.
WORD = re.compile(rf"[\w{SIGNS}]+|[^\w\s]+")


def from_texts(
    texts: Any,
    y: Any = None,
    *,
    classes: Sequence[Any] | None = None,
    encoding: dict[str, Any] | None = None,
    where: str = "the labels",
) -> Examples:
    """Examples from texts in memory.

    Args:
        texts: a list, a pandas Series or a one-dimensional array of strings; empty ones are texts too.
        y: the labels; None where they are not known.
        classes: the classes; by default the different labels.
        encoding: how texts become ids; by default as in `ENCODING`, for new texts as those trained on did.
        where: what to call the labels in an error message.

    Returns:
        The examples, kind `tokens`; their inputs keep the texts, to be shown.

    Example:
        >>> examples = from_texts(["so good", "so bad", "good"], ["up", "down", "up"])
        >>> examples.kind, examples.classes, [len(ids) for ids in examples.inputs]
        ('tokens', ['down', 'up'], [3, 3, 1])
    """
    return token_examples(hash_texts(check_texts(texts), encoding), y, classes, where)


def hash_texts(texts: Sequence[str], encoding: dict[str, Any] | None = None) -> Tokens:
    """The words of each text and the pairs of neighbours as numbers from 1 on; the same on every machine.

    Letters are compared without case and without Unicode's compatibility forms (NFKC). A word or a pair goes to one of
    a fixed number of buckets by its hash, so that no vocabulary is needed; two of them may share one.

    Args:
        texts: any strings; those without a word have no ids.
        encoding: `words` that are read of a text at most, `pairs` or not, and the number of `buckets`.

    Example:
        >>> tokens = hash_texts(["Straße, ÜBER", "STRASSE , über", ""])
        >>> bool((tokens[0] == tokens[1]).all()), len(tokens[0]), len(tokens[2])
        (True, 5, 0)
    """
    form = ENCODING if encoding is None else encoding
    limit, buckets = form["words"], form["buckets"]
    known: dict[str, int] = {}
    codes: list[int] = []
    lengths = np.empty(len(texts), np.int64)
    cut = 0
    for i, text in enumerate(texts):
        words = words_of(text, limit)
        cut += len(words) > limit
        lengths[i] = min(len(words), limit)
        for word in words[:limit]:
            code = known.get(word)
            if code is None:
                code = known[word] = zlib.crc32(word.encode("utf-8", "surrogatepass"))
            codes.append(code)
    if cut:
        log.info("of %d of %d texts only the first %d words are read", cut, len(texts), limit)
    empty = np.flatnonzero(lengths == 0)
    if len(empty):
        log.warning("%d of %d texts hold no word, the first being text %d: to a network they are all the same",
                    len(empty), len(texts), empty[0])  # fmt: skip
    hashes, row = np.array(codes, np.uint64), np.repeat(np.arange(len(texts)), lengths)
    ids = _mixed(hashes)
    if form["pairs"]:
        together = row[1:] == row[:-1]
        pairs = _mixed(hashes[:-1] * np.uint64(0x9E3779B97F4A7C15) + hashes[1:] + np.uint64(1))
        ids, row = np.concatenate([ids, pairs[together]]), np.concatenate([row, row[1:][together]])
    order = np.argsort(row, kind="stable")  # the words of a text, then its pairs
    offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(texts)))]).astype(np.int64)
    return Tokens(1 + (ids % np.uint64(buckets))[order].astype(np.int64), offsets, buckets + 1, list(texts), dict(form))


def words_of(text: str, limit: int) -> list[str]:
    """The words of a text, without case; at most about so many are looked for."""
    plain = unicodedata.normalize("NFKC", text[: LETTERS * limit]).casefold()
    if UNSPACED.search(plain):
        plain = UNSPACED.sub(r" \g<0> ", plain)
    return WORD.findall(plain)


def _mixed(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The bits of each number stirred well, as MurmurHash3 ends: a remainder depends on all of them."""
    h = hashes ^ (hashes >> np.uint64(33))
    h *= np.uint64(0xFF51AFD7ED558CCD)
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xC4CEB9FE1A85EC53)
    h ^= h >> np.uint64(33)
    return h


def is_text(values: Any) -> bool:
    """Whether these are texts: a sequence, a Series or a one-dimensional array whose first value is a string.

    A list is a sequence, and so is a column of a `datasets.Dataset`.

    Example:
        >>> is_text(["a", "b"]), is_text(np.array(["a"])), is_text([1, 2]), is_text("a")
        (True, True, False, False)
    """
    pandas = hasattr(values, "isna") and hasattr(values, "tolist")
    sequence = isinstance(values, Sequence) and not isinstance(values, str | bytes | bytearray)
    if not (pandas or sequence or (isinstance(values, np.ndarray) and values.ndim == 1)):
        return False
    return isinstance(next((value for value in values if not _is_missing(value)), None), str)


def check_texts(values: Any, where: str = "") -> list[str]:
    """The texts as a list of strings, none of them missing.

    Example:
        >>> check_texts(["a", None])
        Traceback (most recent call last):
        ...
        crust.errors.InputError: text 1 is missing: give a string, '' where there is none, or leave the example out
    """
    found = list(values.tolist() if hasattr(values, "tolist") else values)
    for row, value in enumerate(found):
        if _is_missing(value):
            raise InputError(
                f"text {row} {where}is missing: give a string, '' where there is none, or leave the example out",
                code="missing-text",
            )
        if not isinstance(value, str):
            raise InputError(
                f"text {row} {where}is a {type(value).__name__}, not a string: give strings", code="not-a-text"
            )
    return found


def _is_missing(value: Any) -> bool:
    return (
        value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    )

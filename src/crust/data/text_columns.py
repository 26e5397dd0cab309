"""Columns of tables that hold texts: which they are, and their texts."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from crust.data.text import UNSPACED, check_texts
from crust.errors import InputError

log = logging.getLogger("crust.data")

LOOKED_AT = 1000  # rows from which a column is judged
FEW_WORDS = 4  # texts have at least so many in the mean; names and codes have fewer


def text_to_learn(table: Any, names: Sequence[str], file: str) -> tuple[str | None, list[str]]:
    """The column of texts that is learned from, where there is but one column to learn from; else the others of them.

    Args:
        table: as pyarrow has it.
        names: its columns without the labels.
        file: its name for messages.

    Returns:
        The column of texts, or None; and the columns to take as numbers and categories.
    """
    texts = [name for name in names if holds_texts(table.column(name))]
    if texts and len(names) == 1:
        log.info("column %r of %s holds texts: they are learned from as texts", texts[0], file)
        return texts[0], []
    others = [name for name in names if name not in texts]
    if texts and not others:
        raise InputError(
            f"{file} has several columns of texts, {', '.join(texts)}: name one with text_column (--text-column)",
            code="several-text-columns",
        )
    for name in texts:
        log.warning(
            "column %r of %s holds texts and is left out: to learn from it alone, name it with --text-column",
            name,
            file,
        )
    return None, others


def holds_texts(values: Any) -> bool:
    """Whether a column holds free text: strings of several words, most of them different.

    Example:
        >>> import pyarrow as pa
        >>> holds_texts(pa.chunked_array([["we had so much fun", "it fell apart at once"]]))
        True
        >>> holds_texts(pa.chunked_array([["New York", "Bonn"]])), holds_texts(pa.chunked_array([[1, 2]]))
        (False, False)
    """
    import pyarrow as pa

    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        return False
    found = [text for text in values.slice(0, LOOKED_AT).to_pylist() if text]
    if len(found) < 2 or 2 * len(set(found)) <= len(found):
        return False
    # where no spaces are, two letters stand for a word
    words = sum(len(text.split()) + len(UNSPACED.findall(text[:LOOKED_AT])) // 2 for text in found)
    return words >= FEW_WORDS * len(found)


def column_texts(table: Any, name: str, file: str) -> list[str]:
    """The texts of a column, one a row; an `InputError` where it holds something else, or nothing."""
    import pyarrow as pa

    values = table.column(name)
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        raise InputError(
            f"column {name!r} of {file} holds {values.type}, not texts: name another text_column (--text-column)",
            code="not-a-text",
        )
    return check_texts(values.to_pylist(), f"in column {name!r} of {file} ")

"""Texts as the tokens of a pretrained network of transformers, by its own tokenizer."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from crust.data.examples import Examples
from crust.data.field_rows import Padding
from crust.errors import InputError, require

HF = "hf:"
LONGEST = 512  # tokens, where the tokenizer itself knows no end


class TokenisedTexts:
    """A dataset of what a tokenizer makes of each text.

    Args:
        texts: any strings.
        name: of the network, `hf:NAME` or `hf:FOLDER`.
    """

    def __init__(self, texts: Sequence[str], name: str):
        tokenizer = tokenizer_of(name)
        self.texts, self.name = list(texts), name
        longest = min(LONGEST, int(tokenizer.model_max_length))
        found = tokenizer(self.texts, truncation=True, max_length=longest)
        self.fields = [field for field in ("input_ids", "token_type_ids", "attention_mask") if field in found]
        self.rows = [
            dict(zip(self.fields, row, strict=True)) for row in zip(*(found[f] for f in self.fields), strict=True)
        ]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, position: int) -> dict[str, list[int]]:
        return self.rows[position]

    def fingerprint(self) -> str:
        """Of all tokens, and of who made them."""
        digest = hashlib.sha256(self.name.encode())
        for row in self.rows:
            digest.update(np.asarray(row["input_ids"], "<i8").tobytes() + b";")
        return digest.hexdigest()[:16]


@lru_cache(maxsize=4)
def tokenizer_of(name: str) -> Any:
    """The tokenizer of a network."""
    transformers = require("transformers", extra="transformers")
    try:
        return transformers.AutoTokenizer.from_pretrained(name.removeprefix(HF))
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise InputError(
            f"the tokenizer of {name} could not be loaded ({reason}): check the name and the connection, or name a "
            "folder",
            code="download",
        ) from error


def by_tokenizer(examples: Examples, name: str) -> Examples:
    """Texts as tokens of that network; anything else stays as it is."""
    texts = examples.inputs.texts if examples.kind == "tokens" else None
    if texts is None:
        return examples
    padding = tokenizer_of(name).pad_token_id or 0
    return dataclasses.replace(
        examples,
        inputs=TokenisedTexts(texts, name),
        kind="dataset",
        collate_fn=Padding(padding),
        encoding={**(examples.encoding or {}), "tokenizer": name},
    )

"""Data of every kind as `Examples`: one file a format.

`load` reads a dataset by name or path; `from_dataset`, `from_arrays`, `from_texts` and `from_tokens` take what is in
memory already; `batches` goes through examples on a device. `read_labels` takes labels from a file of their own,
`hold_out` sets a share aside.
"""

from __future__ import annotations

from crust.data.batches import batches, crop_flip
from crust.data.examples import Bundle, Examples
from crust.data.holdout import hold_out
from crust.data.labels import encode_labels, read_labels
from crust.data.load import load, load_new
from crust.data.npz_dataset import from_arrays
from crust.data.text import from_texts
from crust.data.tokens import from_tokens
from crust.data.torch_dataset import can_mix, from_dataset

__all__ = [
    "Bundle", "Examples", "batches", "can_mix", "crop_flip", "encode_labels", "from_arrays", "from_dataset",
    "from_texts", "from_tokens", "hold_out", "load", "load_new", "read_labels",
]  # fmt: skip

"""How far an audit can be trusted, as a plain JSON file in the run's folder: `verified.json`.

Version 2. All shares are from 0 to 1; every estimate is `{"value": v, "low": l, "high": h}` with a 90% interval:

    {
      "version": 2,
      "level": 0.9,
      "examples": 1297,                    # rows of the audit that were judged
      "injected": {"count": 130, "share": 0.1, "seed": 0, "seconds": 12.3},
      "noise_rate": ESTIMATE,
      "classes": ["cat", "dog"],           # in the order of the matrix, the user's own names
      "transitions": {"value": [[..]], "low": [[..]], "high": [[..]]},   # row: true class, column: given label
      "curve": [                           # thresholds falling, flagged rising; at most 101 points
        {"threshold": 0.97, "flagged": 12, "precision": ESTIMATE, "recall": ESTIMATE}
      ],
      "cut": {"threshold": 0.71, "flagged": 260, "precision": ESTIMATE, "recall": ESTIMATE},
      "cannot_say": null,                  # or why nothing could be estimated: then there are no estimates above
      "notes": ["one sentence each: what to keep in mind"]
    }

A label is flagged where its error score, one minus its label quality, is at least the threshold. `cut` is the
recommended one, or null where the run finds no wrong labels.
How it is estimated stands in `crust.audit.accuracy.estimates_with_intervals`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from crust._util.atomic_write import write_atomic
from crust._util.foreign_files import parse_json, read_file
from crust.errors import InputError

VERSION = 2
KEYS = ("noise_rate", "transitions", "curve", "cut", "cannot_say", "notes", "injected")  # what is shown of it


def write_verified(path: str | Path, found: dict[str, Any]) -> None:
    """Write it, whole or not at all."""
    write_atomic(path, json.dumps(found, indent=1, ensure_ascii=False, default=_json_value).encode())


def read_verified(path: str | Path) -> dict[str, Any] | None:
    """What `crust verify` has left, or None."""
    path = Path(path)
    if not path.is_file():
        return None
    try:
        found = parse_json(read_file(path))
        version = found["version"]
        lacking = [name for name in KEYS if name not in found] if version == VERSION else []
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{path} cannot be read: remove it, and verify the audit again", code="damaged-file") from None
    if version != VERSION:
        raise InputError(
            f"{path} is of version {version}, not {VERSION}: remove it, and verify the audit again", code="version"
        )
    if lacking:
        raise InputError(f"{path} has no {lacking[0]}: remove it, and verify the audit again", code="damaged-file")
    return dict(found)


def _json_value(value: Any) -> Any:
    """Class names that JSON does not know, such as numpy's numbers."""
    return value.item() if hasattr(value, "item") else str(value)

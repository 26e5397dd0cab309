"""How far an audit can be trusted, as a plain JSON file in the run's folder: `calibration.json`.

Version 1. All shares are from 0 to 1; every estimate is `{"value": v, "low": l, "high": h}` with a 90% interval:

    {
      "version": 1,
      "level": 0.9,
      "examples": 1297,                    # rows of the audit that were judged
      "plants": {"count": 130, "share": 0.1, "seed": 0, "seconds": 12.3},
      "noise_rate": ESTIMATE,
      "classes": ["cat", "dog"],           # in the order of the matrix, the user's own names
      "transitions": {"value": [[..]], "low": [[..]], "high": [[..]]},   # row: true class, column: given label
      "curve": [                           # thresholds falling, flagged rising; at most 101 points
        {"threshold": 0.97, "flagged": 12, "precision": ESTIMATE, "recall": ESTIMATE}
      ],
      "cut": {"threshold": 0.71, "flagged": 260, "precision": ESTIMATE, "recall": ESTIMATE},
      "notes": ["one sentence each: what to keep in mind"]
    }

A label is flagged where its doubt is at least the threshold. `cut` is the recommended one, or null where the run finds
no wrong labels. Estimates that cannot be made (the precision of none flagged) are null.
"""

from __future__ import annotations

VERSION = 1
NAME = "calibration.json"
LEVEL = 0.9

"""How the learning rate goes over a stage, step by step: pure functions, so that a resumed run has the same bytes."""

from __future__ import annotations

import math
from typing import Literal

Schedule = Literal["milestones", "cosine", "one-cycle", "linear", "constant"]

RISE = 0.3  # share of a one-cycle stage in which the rate rises
FIRST, LAST = 1 / 25, 1 / 250_000  # of the highest rate: where one cycle begins, and where it ends


def schedule_factor(schedule: Schedule, progress: float) -> float:
    """What the highest rate is multiplied by, at a share of the stage; milestones fall by epochs (`TrainSettings`)."""
    if schedule == "cosine":
        return _between(1.0, 0.0, progress)
    if schedule == "linear":
        return 1.0 - progress
    if schedule == "one-cycle":
        if progress < RISE:
            return _between(FIRST, 1.0, progress / RISE)
        return _between(1.0, LAST, (progress - RISE) / (1 - RISE))
    return 1.0


def warmup_factor(steps: int, warmup_steps: int) -> float:
    """What the rate is multiplied by after so many steps of the stage: it rises in equal parts, from the first on."""
    return min(1.0, (steps + 1) / warmup_steps) if warmup_steps else 1.0


def _between(start: float, end: float, share: float) -> float:
    """From one value to another along half a cosine."""
    return end + (start - end) * 0.5 * (1 + math.cos(math.pi * share))

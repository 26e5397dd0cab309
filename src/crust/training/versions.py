"""What a run was made with, for the record. None of it is part of what makes a run the same run."""

from __future__ import annotations

import logging
import platform
from pathlib import Path
from typing import Any

log = logging.getLogger("crust")


def versions() -> dict[str, Any]:
    """The versions of what computes, the platform, and the number of threads.

    Example:
        >>> sorted(versions())
        ['crust', 'numpy', 'platform', 'python', 'threads', 'torch']
    """
    import numpy as np
    import torch

    from crust import __version__

    return {
        "crust": __version__,
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "threads": torch.get_num_threads(),
    }


def went_on(begun: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The record of a run that goes on: what it was begun with, and all that was different later; says so.

    Args:
        begun: `versions` and `resumed_with` of the run so far, as in its config.yaml; may be empty.
        folder: the run's folder, for the message.

    Example:
        >>> now = versions()
        >>> went_on({"versions": now}, Path("runs/a")) == {"versions": now}
        True
    """
    now = versions()
    first, later = begun.get("versions") or now, list(begun.get("resumed_with") or [])
    before = later[-1] if later else first
    if before != now:
        names = [name for name in now if before.get(name) != now[name]]
        log.warning(
            "the run in %s was made with %s and goes on with %s: it may not end with the same bytes",
            folder,
            ", ".join(f"{name} {before.get(name)}" for name in names),
            ", ".join(f"{name} {now[name]}" for name in names),
        )
        later.append(now)
    return {"versions": first, "resumed_with": later} if later else {"versions": first}

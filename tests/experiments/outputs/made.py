"""Result lines that are made up, so that tables can be checked by hand."""

from __future__ import annotations

from typing import Any

from crust.experiments import key, make


def line(
    method: str,
    labels: str,
    last: float,
    seed: int = 0,
    *,
    scale: str = "cpu",
    passes: tuple[int, int] = (100, 50),
    seconds: float = 10.0,
    knowledge: dict[str, Any] | None = None,
    curves: dict[str, list[float | None]] | None = None,
    machine: str = "x86_64",
    more_machine: dict[str, Any] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """One finished run."""
    spec = make(method, labels, scale=scale, seed=seed, **options)
    return {
        "key": key(spec),
        "spec": spec,
        "accuracy": {"last": last, "last10": last - 0.01, "best": last + 0.02},
        "curves": curves or {"test_accuracy": [last / 2, last], "clean_fraction": [0.5, 0.8]},
        "audit": {"auroc": 0.9, "average_precision": 0.8, "precision_at_count": 0.7},
        "cost": {
            "forward": passes[0],
            "backward": passes[1],
            "seconds": {"stage": 0.0, "selection": 99.0, "epoch": seconds, "evaluation": 0.0, "gradients": 0.0},
        },
        "facts": {} if knowledge is None else {"noise_info": knowledge},
        "date": "2026-11-16",
        "machine": {"processor": machine, "threads": 1, "torch": "2", **(more_machine or {})},
    }

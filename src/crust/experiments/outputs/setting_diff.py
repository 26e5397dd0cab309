"""What tells a run from others of its method: settings that are neither the method's defaults nor the scale's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from crust.experiments.specs import SCALES, make, today
from crust.methods import METHODS

APART = ("method", "data", "labels", "seed")  # these are always said, in columns of their own
NOTHING = object()


def differing(specs: Sequence[Mapping[str, Any]], scales: Iterable[str] = SCALES) -> tuple[str, list[str]]:
    """The scale that runs were made at, and in words what differs from it, run after run.

    Specifications do not say their scale: it is the one that the least differs from.

    Args:
        specs: of the runs; those that are not whole have no words.
        scales: that come into question.

    Example:
        >>> some = make("crust", "true", scale="smoke", fraction=0.3, epochs=2), make("erm", "true", scale="smoke")
        >>> differing(some)
        ('smoke', ['epochs=2 fraction=0.3', ''])
    """
    found = {scale: [_apart(spec, scale) for spec in specs] for scale in scales}
    best = min(found, key=lambda scale: sum(map(len, found[scale])))
    return best, [" ".join(f"{name}={_said(value)}" for name, value in some.items()) for some in found[best]]


def _apart(spec: Mapping[str, Any], scale: str) -> dict[str, Any]:
    inner = (spec.get("experiment"), spec.get("settings"))
    if spec.get("method") not in METHODS or not all(isinstance(each, dict) for each in inner):
        return {}  # of another version of crust
    usual = _usual(spec["method"], scale)
    return {
        name: value
        for name, value in _flat(today(dict(spec))).items()
        if name not in APART and usual.get(name, NOTHING) != value
    }


@cache
def _usual(method: str, scale: str) -> dict[str, Any]:
    return _flat(make(method, "true", scale=scale))


def _flat(spec: Mapping[str, Any]) -> dict[str, Any]:
    outer = {name: value for name, value in spec.items() if name not in ("experiment", "settings")}
    return {**outer, **spec["experiment"], **spec["settings"]}


def _said(value: Any) -> str:
    """A setting in short.

    Example:
        >>> _said([1 / 3, 2 / 3]), _said(None), _said("mlp")
        ('0.3333,0.6667', 'none', 'mlp')
    """
    if isinstance(value, (list, tuple)):
        return ",".join(map(_said, value))
    return "none" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)

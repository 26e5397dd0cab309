"""What a result line must have, so that whoever reads it may rely on it."""

from __future__ import annotations

import math
from typing import Any

TEXT, OBJECT, NUMBER = (str,), (dict,), (int, float)
NOTHING = type(None)
WORDS: dict[type, str] = {
    str: "text", dict: "an object", int: "a number", float: "a number", bool: "true or false", NOTHING: "null",
}  # fmt: skip
Kinds = tuple[type, ...]
Needed = dict[str, Kinds]

LINE: Needed = {"key": TEXT, "spec": OBJECT, "accuracy": OBJECT}
SPEC: Needed = {
    "data": TEXT, "limit": (int, NOTHING), "labels": TEXT, "model": TEXT, "augment": (bool,), "validation": NUMBER,
    "method": TEXT, "experiment": OBJECT, "settings": OBJECT,
}  # fmt: skip
EXPERIMENT: Needed = {"epochs": (int,), "seed": (int,)}
COST: Needed = {"forward": NUMBER, "backward": NUMBER, "seconds": OBJECT}
MORE: Needed = {"cost": OBJECT, "curves": OBJECT, "facts": OBJECT, "tests": OBJECT, "audit": (dict, NOTHING)}


def fault(line: Any) -> str | None:
    """What is wrong with a line, in a few words; None where it is a result.

    Example:
        >>> fault({"key": "x"}), fault([1])
        ('it has no spec', 'it is no object')
    """
    if not isinstance(line, dict):
        return "it is no object"
    words = _missing(line, LINE, "") or _missing(line["spec"], SPEC, "spec.")
    words = words or _missing(line["spec"]["experiment"], EXPERIMENT, "spec.experiment.")
    words = words or _missing(line["accuracy"], dict.fromkeys(line["accuracy"], (*NUMBER, NOTHING)), "accuracy.")
    words = words or _missing(line, {name: kinds for name, kinds in MORE.items() if name in line}, "")
    if words is None and "cost" in line:
        words = _missing(line["cost"], COST, "cost.")
        words = words or _missing(line["cost"]["seconds"], dict.fromkeys(line["cost"]["seconds"], NUMBER), "seconds.")
    return words


def _missing(there: dict[str, Any], needed: Needed, above: str) -> str | None:
    for name, kinds in needed.items():
        if name not in there:
            return f"it has no {above}{name}"
        if not isinstance(there[name], kinds):
            wanted = " or ".join(dict.fromkeys(WORDS[kind] for kind in kinds))
            return f"its {above}{name} is not {wanted}"
        if isinstance(there[name], float) and not math.isfinite(there[name]):
            return f"its {above}{name} is {there[name]}, which is no number"
    return None

"""Small runs for the engines, and what of a result must not depend on where it was made."""

from __future__ import annotations

from crust.experiments import key, make


def tiny(method="erm", labels="symmetric:0.3", **more):
    """A run of a second."""
    return make(method, labels, scale="smoke", **{"epochs": 2, "limit": 100, **more})


SPECS = [tiny("erm"), tiny("crust"), tiny("co-teaching", noise_rate=0.3, seed=1)]


def substance(lines):
    """Results by key, without seconds, dates and machines."""
    found = {}
    for line in lines:
        cost = {name: value for name, value in line["cost"].items() if name != "seconds"}
        kept = {name: value for name, value in line.items() if name not in ("cost", "date", "machine")}
        found[key(line["spec"])] = {**kept, "cost": cost}
    return found

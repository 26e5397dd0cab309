"""Where runs are carried out: in this process, in several on this machine, or on a Ray cluster."""

from __future__ import annotations

from crust.experiments.engines.local import Local
from crust.experiments.engines.ray import Ray
from crust.experiments.engines.task import Event, Work

__all__ = ["Event", "Local", "Ray", "Work"]

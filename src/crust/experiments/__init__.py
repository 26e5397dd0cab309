"""Experiments: what is to be run as plain data, engines that run it, and results as lines of JSON."""

from __future__ import annotations

from crust.experiments.engines import Event, Local, Ray, Work
from crust.experiments.grid import run_all, run_grid
from crust.experiments.results_file import append, find, read
from crust.experiments.run_spec import run
from crust.experiments.specs import SCALES, key, make

__all__ = [
    "SCALES",
    "Event",
    "Local",
    "Ray",
    "Work",
    "append",
    "find",
    "key",
    "make",
    "read",
    "run",
    "run_all",
    "run_grid",
]

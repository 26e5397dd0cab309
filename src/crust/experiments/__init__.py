"""Experiments: what is to be run as plain data, engines that run it, and results as lines of JSON."""

from crust.experiments.engines import LocalGrid, RayGrid
from crust.experiments.grid import run_grid
from crust.experiments.results_file import append, find, read_results
from crust.experiments.run_spec import train_spec
from crust.experiments.specs import SCALES, key, make
from crust.experiments.task import Event, Work

__all__ = [
    "SCALES", "Event", "LocalGrid", "RayGrid", "Work", "append", "find", "key", "make", "read_results", "run_grid",
    "train_spec",
]  # fmt: skip

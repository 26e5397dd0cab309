"""Experiments: what is to be run as plain data, results as lines of JSON, and a queue that never runs a thing twice."""

from __future__ import annotations

from crust.experiments.queue import run_all
from crust.experiments.results import append, find, read
from crust.experiments.running import run
from crust.experiments.specs import SCALES, key, make

__all__ = ["SCALES", "append", "find", "key", "make", "read", "run", "run_all"]

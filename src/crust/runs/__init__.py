"""Everything that knows the folder of a run: its files, its result, its data and checkpoints opened again."""

from crust.runs.audit_table import read_audit, read_table
from crust.runs.result import Result, load

__all__ = ["Result", "load", "read_audit", "read_table"]

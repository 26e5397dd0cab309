"""Corrected labels in the form that the data came in: a table, an archive of arrays, a list of moves, a labels file."""

from crust.audit.applying.files import apply_to_npz, apply_to_table, labels_file
from crust.audit.applying.moves import Move, do_moves, plan_moves, read_moves, write_moves

__all__ = [
    "Move",
    "apply_to_npz",
    "apply_to_table",
    "do_moves",
    "labels_file",
    "plan_moves",
    "read_moves",
    "write_moves",
]

"""Corrected labels, in the form that the data came in: a table, an archive of arrays, moved images, a labels file."""

from crust.corrections.move_image_files import Move, do_moves, plan_moves, read_moves, write_moves
from crust.corrections.tables_and_arrays import apply_to_npz, apply_to_table, labels_file

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

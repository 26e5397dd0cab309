"""`apply_corrections`: the labels of a run's data, corrected, in the form that the data came in."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crust._util.atomic_write import remove_drafts
from crust._util.foreign import path_of
from crust._util.output_files import check_output, write_table
from crust.corrections.corrected_labels import SUFFIXES, corrected_labels, read_corrections
from crust.corrections.move_image_files import any_done, do_moves, done, plan_moves, read_moves, write_moves
from crust.corrections.tables_and_arrays import apply_to_npz, apply_to_table, labels_file
from crust.errors import InputError
from crust.runs.data import options_of
from crust.runs.folder import RunFolder

__all__ = ["apply_corrections", "move_files_back"]


@dataclass(frozen=True)
class AppliedCorrections:
    """What was done.

    Args:
        form: `table` or `npz`, a copy of the data with corrected labels; `labels`, a file for `crust train --labels`;
            `folder`, a list of image files to move.
        path: the file that was written.
        changed: how many labels are others now.
        examples: how many there are in all.
        moved: image files that were moved now.
        moved_before: those that had been moved before.
    """

    form: str
    path: Path
    changed: int
    examples: int
    moved: int = 0
    moved_before: int = 0


def apply_corrections(
    run: str | Path | RunFolder,
    corrections: str | Path | None = None,
    *,
    output: str | Path | None = None,
    move: bool = False,
    data: str | None = None,
    data_dir: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> AppliedCorrections:
    """Write the corrected labels of a run's training data, in the form that the data came in.

    A table or an archive of arrays is copied with the corrected labels. Labels that did not come from the data itself,
    or came from a named dataset, get a file of labels. For images in class folders a list of moves is written, and the
    files are moved only with `move`; `move_files_back` undoes that. A move that was stopped goes on when it is called
    again.

    Args:
        run: the folder of a finished run.
        corrections: a .csv, .tsv or .parquet file with the columns index (or id) and corrected, or the database of
            another review; default: the decisions of the run's own review (`crust review`).
        output: the file to write; default: in the run's folder.
        move: move the files of an image folder.
        data: the run's data, where it is not in its old place.
        data_dir: where named datasets are.
        progress: called with the number of files moved so far, and of all.

    Returns:
        The file that was written, and how many labels have changed.

    Example:
        >>> import tempfile
        >>> import crust
        >>> folder = Path(tempfile.mkdtemp())
        >>> digits = crust.data.load("digits", limit=100).train
        >>> _ = crust.fit("mlp", digits, method="erm", epochs=1, run_dir=folder / "run")
        >>> _ = (folder / "mine.csv").write_text("index,corrected\\n0,7\\n")
        >>> found = apply_corrections(folder / "run", folder / "mine.csv", output=folder / "labels.csv")
        >>> found.form, found.changed, found.path.name
        ('labels', 1, 'labels.csv')
    """
    folder = RunFolder(run)
    table, classes = folder.audit()
    options = data_options(folder, data, data_dir)
    form = corrected_form(options)
    if corrections is not None:
        corrections = path_of(corrections, "corrections")
    if move and form != "folder":
        raise InputError(
            "only images in class folders can be moved: leave out move to get a file of corrected labels",
            code="not-movable",
        )
    place = _place(folder, output, form, options, corrections)
    changes = corrected_labels(_new_labels(folder, corrections, table, classes), table, classes)
    if not changes:
        raise InputError("none of the corrections changes a label: there is nothing to write", code="no-changes")
    with folder.claimed():
        remove_drafts(place)
        if form == "folder":
            undo = move_back_command(folder, place, data)
            return _apply_to_folder(place, table, classes, changes, options, move, progress, undo)
        if form == "table":
            apply_to_table(options["data"], place, options.get("label_column") or "label", changes, table, classes)
        elif form == "npz":
            apply_to_npz(options["data"], place, changes, table, classes)
        else:
            # Positions among files that were left out, or taken class by class, mean nothing elsewhere: names do.
            write_table(labels_file(table, changes, classes, by_id="id" in table), place)
    return AppliedCorrections(form, place, len(changes), len(table))


def move_files_back(
    run: str | Path | RunFolder,
    *,
    moves: str | Path | None = None,
    data: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> AppliedCorrections:
    """Undo the moves that `apply_corrections` has made in an image folder.

    Args:
        run: the folder of the run.
        moves: the list of the moves; default: that in the run's folder.
        data: the image folder, where it is not in its old place.
        progress: called with the number of files moved so far, and of all.

    Example:
        >>> move_files_back("runs/nowhere")
        Traceback (most recent call last):
        ...
        crust.errors.InputError: the run in runs/nowhere was not trained on an image folder: there is nothing to ...
    """
    from crust.data.image_folder import train_root

    folder = RunFolder(run)
    options = data_options(folder, data)
    if corrected_form(options) != "folder":
        raise InputError(
            f"the run in {folder} was not trained on an image folder: there is nothing to move back", code="not-movable"
        )
    path = folder.moves_path if moves is None else path_of(moves, "moves")
    backwards = [one.back() for one in read_moves(path)]
    with folder.claimed():
        now, before = do_moves(train_root(Path(options["data"])), backwards, _counted(progress, len(backwards)))
    return AppliedCorrections("folder", path, len(backwards), len(backwards), now, before)


def data_options(run: RunFolder, data: str | None = None, data_dir: str | None = None) -> dict[str, Any]:
    """What the run was trained on; nothing where it does not say, which a file of labels can do without."""
    if data is None and data_dir is None and run.trained_by != "recipe":
        return {}
    return options_of(run, data, data_dir)[0]


def corrected_form(options: dict[str, Any]) -> str:
    """What corrected labels look like for this data; those that did not come from the data itself get a file."""
    from crust.data.load import NAMES
    from crust.data.matrix_io import TABLES

    data = options.get("data")
    if data is None or str(data) in NAMES or options.get("labels") is not None or options.get("noise") is not None:
        return "labels"
    path = Path(str(data))
    if not path.exists():
        raise InputError(
            f"there is no file or folder {path}, which the run was trained on: name it with --data", code="missing-file"
        )
    if path.is_dir():
        return "folder"
    return "table" if path.suffix.lower() in TABLES else "npz"


def move_back_command(run: RunFolder, place: Path, data: str | None = None) -> str:
    """The command that takes the moves of a list back: with all that says which list, and where the files are."""
    words = ["crust", "apply", str(run), "--move-back"]
    if place != run.moves_path:
        words += ["-o", str(place)]
    if data is not None:
        words += ["--data", data]
    return shlex.join(words)


def _place(
    run: RunFolder, output: str | Path | None, form: str, options: dict[str, Any], corrections: str | Path | None
) -> Path:
    suffix = {"folder": ".csv", "labels": ".csv"}.get(form) or Path(str(options["data"])).suffix
    usual = run.moves_path if form == "folder" else run.corrected_path(suffix)
    place = usual if output is None else path_of(output, "output")
    allowed = (".csv", ".parquet") if form == "labels" else (suffix.lower(),)
    inputs = [options.get(name) for name in ("data", "test", "labels", "true_labels")]
    kind, _, matrix = str(options.get("noise") or "").partition(":")
    inputs += [matrix if kind == "matrix" else None, corrections, run.audit_path]
    check_output(place, "output", allowed, inputs)
    return place


def _new_labels(run: RunFolder, corrections: str | Path | None, table: Any, classes: list[Any]) -> dict[int, int]:
    """By index, the new class: from the review of the run, from another database, or from a table."""
    path = None if corrections is None else Path(corrections)
    if path is not None and path.suffix.lower() in SUFFIXES:
        return read_corrections(path, table, classes)
    if path is not None and not path.is_file():
        raise InputError(
            f"there are no corrections {path}: give a .csv or .parquet file, or none for the decisions of crust review",
            code="missing-file",
        )
    store = run.review_store(table, classes, path)
    try:
        return {one.example: one.label for one in store.decisions() if one.kind == "relabel" and one.label is not None}
    finally:
        store.close()


def _apply_to_folder(
    place: Path,
    table: Any,
    classes: list[Any],
    changes: dict[int, int],
    options: dict[str, Any],
    move: bool,
    progress: Callable[[int, int], None] | None,
    undo: str,
) -> AppliedCorrections:
    """The list of moves, written before the first one is made; and the moves."""
    from crust.data.image_folder import train_root

    root = train_root(Path(options["data"]))
    moves = read_moves(place) if place.is_file() else []
    if any_done(root, moves):  # begun before: go on with it, for the files are no longer where the audit has them
        wanted = {index: str(classes[number]) for index, number in changes.items()}
        if {one.index: one.new.partition("/")[0] for one in moves} != wanted:
            raise InputError(
                f"{place} lists other moves, and some of them are made: go back first with {undo}", code="other-moves"
            )
    else:
        moves = plan_moves(root, table, changes, classes)
        write_moves(moves, place)
    now, before = do_moves(root, moves, _counted(progress, len(moves))) if move else (0, len(done(root, moves)))
    return AppliedCorrections("folder", place, len(moves), len(table), now, before)


def _counted(progress: Callable[[int, int], None] | None, total: int) -> Callable[[int], None] | None:
    return None if progress is None else lambda finished: progress(finished, total)

"""`apply_corrections`: the labels of a run's data, or of any audit, corrected, in the form that the data came in."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crust._util.atomic_write import remove_drafts
from crust._util.foreign_files import path_of
from crust._util.output_files import check_output, write_table
from crust.corrections.corrected_labels import SUFFIXES, corrected_labels, read_corrections
from crust.corrections.move_image_files import EXCLUDED, any_done, do_moves, done, plan_moves, read_moves, write_moves
from crust.corrections.tables_and_arrays import apply_to_npy, apply_to_npz, apply_to_table, labels_file
from crust.errors import InputError
from crust.runs.audit_source import AuditSource, open_audit
from crust.runs.data import options_of
from crust.runs.folder import RunFolder

__all__ = ["apply_corrections", "move_files_back"]


@dataclass(frozen=True)
class AppliedCorrections:
    """What was done.

    Args:
        form: `table` or `npz`, a copy of the data with corrected labels; `npy`, of an array of labels; `labels`, a file
            for `crust train --labels`; `folder`, a list of image files to move.
        path: the file that was written.
        changed: how many labels are others now.
        examples: how many there are in all.
        moved: image files that were moved now.
        moved_before: those that had been moved before.
        excluded: examples that are left out; in a file of labels they are marked.
    """

    form: str
    path: Path
    changed: int
    examples: int
    moved: int = 0
    moved_before: int = 0
    excluded: int = 0


def apply_corrections(
    run: Any,
    corrections: Any = None,
    *,
    output: str | Path | None = None,
    move: bool = False,
    data: str | None = None,
    data_dir: str | None = None,
    label_column: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> AppliedCorrections:
    """Write the corrected labels of an audit, in the form that the data came in.

    A table or an archive of arrays is copied with the corrected labels. Labels that did not come from the data itself,
    or came from a named dataset, get a file of labels. For images in class folders a list of moves is written, and the
    files are moved only with `move`; `move_files_back` undoes that. A move that was stopped goes on when it is called
    again. What was excluded is left out of a table or archive, moved below `.excluded`, or marked in a file of labels.

    Args:
        run: the folder of a finished run, its `Result`, or a table of label issues as a file or a DataFrame.
        corrections: what `crust.review_labels` returns; a .csv, .tsv or .parquet with the columns index (or id) and
            corrected; a .json of annotations of Label Studio, Argilla or FiftyOne; or the database of another review;
            default: the decisions of the audit's own review (`crust review`).
        output: the file to write; default: in the run's folder, or beside the table.
        move: move the files of an image folder.
        data: the run's data, where it is not in its old place; of a table of label issues, the table with the labels.
        data_dir: where named datasets are.
        label_column: of that table.
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
    source = _opened(run, data, data_dir)
    table, classes = source.table, source.classes
    options = source_options(source, label_column)
    form = _form(source, options)
    if corrections is not None and not hasattr(corrections, "iloc"):
        corrections = path_of(corrections, "corrections")
    if move and form != "folder":
        raise InputError(
            "only images in class folders can be moved: leave out move to get a file of corrected labels",
            code="not-movable",
        )
    place = _place(source, output, form, options, corrections)
    changes, left_out = corrected_labels(_new_labels(source, corrections), table, classes)
    if not changes and not left_out:
        raise InputError("none of the corrections changes a label: there is nothing to write", code="no-changes")
    with contextlib.nullcontext() if source.run is None else source.run.claimed():
        remove_drafts(place)
        if form == "folder":
            undo = move_back_command(source, place)
            return _apply_to_folder(place, table, classes, changes, left_out, options, move, progress, undo)
        if form == "table":
            column = options.get("label_column") or "label"
            apply_to_table(options["data"], place, column, changes, table, classes, left_out)
        elif form == "npz":
            apply_to_npz(options["data"], place, changes, table, classes, left_out)
        elif form == "npy":
            apply_to_npy(options["data"], place, changes, table, classes, left_out)
        else:
            # Positions among files that were left out, or taken class by class, mean nothing elsewhere: names do.
            write_table(labels_file(table, changes, classes, by_id="id" in table, left_out=left_out), place)
    return AppliedCorrections(form, place, len(changes), len(table), excluded=len(left_out))


def move_files_back(
    run: Any,
    *,
    moves: str | Path | None = None,
    data: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> AppliedCorrections:
    """Undo the moves that `apply_corrections` has made in an image folder.

    Args:
        run: the folder of the run, or the table of label issues.
        moves: the list of the moves; default: that in the run's folder, or beside the table.
        data: the image folder, where it is not in its old place.
        progress: called with the number of files moved so far, and of all.

    Example:
        >>> move_files_back("runs/nowhere")
        Traceback (most recent call last):
        ...
        crust.errors.InputError: there is no folder runs/nowhere: give the folder of a run, or ...
    """
    from crust.data.image_folder import train_root

    source = _opened(run, data, None)
    options = source_options(source)
    if _form(source, options) != "folder":
        raise InputError(
            f"{source.path or 'the audit'} is not of an image folder: there is nothing to move back", code="not-movable"
        )
    path = source.moves_path if moves is None else path_of(moves, "moves")
    assert path is not None
    backwards = [one.back() for one in read_moves(path)]
    with contextlib.nullcontext() if source.run is None else source.run.claimed():
        now, before = do_moves(train_root(Path(options["data"])), backwards, _counted(progress, len(backwards)))
    return AppliedCorrections("folder", path, len(backwards), len(backwards), now, before)


def _opened(run: Any, data: str | None, data_dir: str | None) -> AuditSource:
    return run if isinstance(run, AuditSource) else open_audit(run, data=data, data_dir=data_dir)


def source_options(source: AuditSource, label_column: str | None = None) -> dict[str, Any]:
    """What the labels came from: the data of a run, the table that was named, a file of labels, or a folder."""
    if source.run is not None:
        found = data_options(source.run, source.data, source.data_dir)
        return found if label_column is None else {**found, "label_column": label_column}
    if source.data is not None:
        return {"data": source.data, "label_column": label_column}
    if isinstance(source.show, str | Path) and Path(source.show).is_dir():
        return {"data": str(source.show)}
    if source.labels is None:
        return {}
    from crust.data.matrix_io import TABLES

    head, _, key = source.labels.rpartition(":")
    if head.lower().endswith(TABLES):
        return {"data": head, "label_column": key}
    path = Path(source.labels)
    if path.suffix.lower() in TABLES:
        from crust.data import matrix_io, table_io

        with matrix_io.reading(path):
            names = table_io.read_table_file(path).column_names
        return {"data": str(path), "label_column": names[0]} if len(names) == 1 else {}
    return {"data": str(path)} if path.suffix.lower() == ".npy" else {}


def data_options(run: RunFolder, data: str | None = None, data_dir: str | None = None) -> dict[str, Any]:
    """What the run was trained on; nothing where it does not say, which a file of labels can do without."""
    if data is None and data_dir is None and run.trained_by != "recipe":
        return {}
    return options_of(run, data, data_dir)[0]


def _form(source: AuditSource, options: dict[str, Any]) -> str:
    """What corrected labels look like: a folder only where the audit knows its files by their classes."""
    if str(options.get("data")).lower().endswith(".npy"):
        return "npy"
    found = corrected_form(options)
    if found == "folder" and source.run is None:
        ids = source.table["id"].astype(str) if "id" in source.table else []
        folders = [Path(name).parts[0] for name in ids]
        if not folders or folders != source.table["given_label"].astype(str).tolist():
            return "labels"
    return found


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


def move_back_command(source: AuditSource, place: Path) -> str:
    """The command that takes the moves of a list back: with all that says which list, and where the files are."""
    more = [] if place == source.moves_path else ["-o", str(place)]
    return source.command("apply", "--move-back", *more)


def _place(
    source: AuditSource, output: str | Path | None, form: str, options: dict[str, Any], corrections: Any
) -> Path:
    suffix = {"folder": ".csv", "labels": ".csv"}.get(form) or Path(str(options["data"])).suffix
    usual = source.moves_path if form == "folder" else source.corrected_path(suffix)
    place = usual if output is None else path_of(output, "output")
    if place is None:
        raise InputError("the corrected labels do not know where to go: name a file with output", code="no-output")
    allowed = (".csv", ".parquet") if form == "labels" else (suffix.lower(),)
    inputs = [options.get(name) for name in ("data", "test", "labels", "true_labels")]
    kind, _, matrix = str(options.get("noise") or "").partition(":")
    named = corrections if isinstance(corrections, str | Path) else None
    inputs += [matrix if kind == "matrix" else None, named, source.path, source.labels]
    check_output(place, "output", allowed, inputs)
    return place


def _new_labels(source: AuditSource, corrections: Any) -> dict[int, int | None]:
    """By index, the new class: from the review of the audit, from another database, or from a table."""
    if corrections is not None and not isinstance(corrections, str | Path):
        return read_corrections(corrections, source.table, source.classes)
    path = None if corrections is None else Path(corrections)
    if path is not None and path.suffix.lower() in SUFFIXES:
        return read_corrections(path, source.table, source.classes)
    if path is not None and not path.is_file():
        raise InputError(
            f"there are no corrections {path}: give a .csv or .parquet file, or none for the decisions of crust review",
            code="missing-file",
        )
    with contextlib.closing(source.store(path)) as store:
        kept = [one for one in store.decisions() if one.kind in ("relabel", "exclude")]
    return {one.example: one.label if one.kind == "relabel" else None for one in kept}


def _apply_to_folder(
    place: Path,
    table: Any,
    classes: list[Any],
    changes: dict[int, int],
    left_out: Sequence[int],
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
        wanted = {index: str(classes[number]) for index, number in changes.items()} | dict.fromkeys(left_out, EXCLUDED)
        if {one.index: one.new.partition("/")[0] for one in moves} != wanted:
            raise InputError(
                f"{place} lists other moves, and some of them are made: go back first with {undo}", code="other-moves"
            )
    else:
        moves = plan_moves(root, table, changes, classes, left_out)
        write_moves(moves, place)
    now, before = do_moves(root, moves, _counted(progress, len(moves))) if move else (0, len(done(root, moves)))
    return AppliedCorrections("folder", place, len(moves), len(table), now, before, len(left_out))


def _counted(progress: Callable[[int, int], None] | None, total: int) -> Callable[[int], None] | None:
    return None if progress is None else lambda finished: progress(finished, total)

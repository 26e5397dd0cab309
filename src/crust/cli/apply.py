"""`crust audit --apply`: corrected labels in the form that the data came in."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import typer

from crust.cli.output_files import check_output, write_table
from crust.cli.review import open_store
from crust.errors import InputError
from crust.runs.data import MOVES, options_of

WORDS = ("corrections", "review")  # what the review of the run itself is called on the command line


def apply(
    run: Path,
    output: Path | None,
    corrections: str,
    move: bool,
    data: str | None,
    data_dir: str | None,
    quiet: bool,
) -> None:
    """Write what the corrections make of the labels; move files only where that is asked for."""
    from crust.corrections.corrected_labels import corrected_labels
    from crust.runs.audit_table import read_audit

    table, classes = read_audit(run)
    options = _options(run, data, data_dir)
    form = _form(options)
    if move and form != "folder":
        raise InputError("--move is for images in class folders: leave it out to get a file with the corrected labels")
    place = _place(run, output, form, options, corrections)
    changes = corrected_labels(_corrections(run, corrections, table, classes), table, classes)
    if not changes:
        raise InputError("none of the corrections changes a label: there is nothing to write")
    if form == "folder":
        _folder(place, table, classes, changes, options, move, quiet, _back(run, place, data))
        return
    _write(form, place, table, classes, changes, options)
    if not quiet:
        typer.echo(f"{len(changes):,} of {len(table):,} labels changed, written to: {place}")
        typer.echo(f"next: {_next(form, place, options)}")


def back(run: Path, output: Path | None, data: str | None, quiet: bool) -> None:
    """Undo the moves of a list."""
    from crust.corrections import do_moves, read_moves
    from crust.data.image_folder import train_root

    options = _options(run, data, None)
    if _form(options) != "folder":
        raise InputError(f"the run in {run} was not trained on an image folder: there is nothing to move back")
    path = run / MOVES if output is None else output
    moves = [one.back() for one in read_moves(path)]
    now, before = do_moves(train_root(Path(options["data"])), moves, None if quiet else _progress(len(moves)))
    if not quiet:
        typer.echo(f"{now:,} files moved back" + (f"; {before:,} were in their places" if before else ""))


def _options(run: Path, data: str | None, data_dir: str | None) -> dict[str, Any]:
    """What the run was trained on; nothing where it does not say, which a file of labels can do without."""
    if data is None and data_dir is None and not (run / "recipe.yaml").is_file():
        return {}
    return options_of(run, data, data_dir)[0]


def _form(options: dict[str, Any]) -> str:
    """What corrected labels look like for this data; those that did not come from the data itself get a file."""
    from crust.data.load import NAMES
    from crust.data.matrix_io import TABLES

    data = options.get("data")
    if data is None or str(data) in NAMES or options.get("labels") is not None or options.get("noise") is not None:
        return "labels"
    path = Path(str(data))
    if not path.exists():
        raise InputError(f"there is no file or folder {path}, which the run was trained on: name it with --data")
    if path.is_dir():
        return "folder"
    return "table" if path.suffix.lower() in TABLES else "npz"


def _place(run: Path, output: Path | None, form: str, options: dict[str, Any], corrections: str) -> Path:
    suffix = {"folder": ".csv", "labels": ".csv"}.get(form) or Path(str(options["data"])).suffix
    place = run / (MOVES if form == "folder" else f"corrected{suffix}") if output is None else output
    allowed = (".csv", ".parquet") if form == "labels" else (suffix.lower(),)
    read = [options.get(name) for name in ("data", "test", "labels", "true_labels")]
    kind, _, matrix = str(options.get("noise") or "").partition(":")
    read += [matrix if kind == "matrix" else None, corrections, run / "audit.parquet"]
    check_output(place, "-o", allowed, read)
    return place


def _corrections(run: Path, corrections: str, table: Any, classes: list[Any]) -> dict[int, int]:
    """By index, the new class: from the review of the run, from another database, or from a table."""
    from crust.corrections.corrected_labels import SUFFIXES, read_corrections

    path = Path(corrections)
    if path.suffix.lower() in SUFFIXES:
        return read_corrections(path, table, classes)
    known = corrections in WORDS and not path.exists()
    if not known and not path.is_file():
        raise InputError(
            f"there are no corrections {corrections}: give a .csv or .parquet file, or the word corrections "
            "for those of crust review"
        )
    store = open_store(run, table, classes, None if known else path)
    try:
        return {one.example: one.label for one in store.decisions() if one.kind == "relabel" and one.label is not None}
    finally:
        store.close()


def _write(
    form: str, place: Path, table: Any, classes: list[Any], changes: dict[int, int], options: dict[str, Any]
) -> None:
    from crust import corrections

    if form == "table":
        column = options.get("label_column") or "label"
        corrections.apply_to_table(options["data"], place, column, changes, table, classes)
    elif form == "npz":
        corrections.apply_to_npz(options["data"], place, changes, table, classes)
    else:
        # Positions among files that were left out, or taken class by class, mean nothing elsewhere: names do.
        by_id = "id" in table
        write_table(corrections.labels_file(table, changes, classes, by_id=by_id), place)


def _folder(
    place: Path,
    table: Any,
    classes: list[Any],
    changes: dict[int, int],
    options: dict[str, Any],
    move: bool,
    quiet: bool,
    back: str,
) -> None:
    """The list of moves, written before the first one is made; and the moves, with the command that takes them back."""
    from crust.corrections import do_moves, plan_moves, read_moves, write_moves
    from crust.corrections.move_image_files import any_done, done
    from crust.data.image_folder import train_root

    root = train_root(Path(options["data"]))
    moves = read_moves(place) if place.is_file() else []
    if any_done(root, moves):  # begun before: go on with it, for the files are no longer where the audit has them
        wanted = {index: str(classes[number]) for index, number in changes.items()}
        if {one.index: one.new.partition("/")[0] for one in moves} != wanted:
            raise InputError(f"{place} lists other moves, and some of them are made: go back first with {back}")
    else:
        moves = plan_moves(root, table, changes, classes)
        write_moves(moves, place)
    train = f"back: {back}; next: {_train(options['data'], options)}"
    if not move:
        if not quiet:
            made = len(done(root, moves))
            what = f"{made:,} of them made before" if made else "nothing is moved yet"
            typer.echo(f"{len(moves):,} moves listed in: {place}; {what}")
            typer.echo("next: the same command with --move" if made < len(moves) else train)
        return
    now, before = do_moves(root, moves, None if quiet else _progress(len(moves)))
    if not quiet:
        typer.echo(f"{now:,} files moved, as listed in {place}" + (f"; {before:,} had been before" if before else ""))
        typer.echo(train)


def _progress(total: int) -> Any:
    """A line now and then: renaming is quick, but a network drive is not."""

    def report(done: int) -> None:
        if done % 1000 == 0:
            sys.stderr.write(f"{done:,} of {total:,} files moved\n")

    return report


def _next(form: str, place: Path, options: dict[str, Any]) -> str:
    if form == "labels":
        return f"{_train(options.get('data') or 'DATA', options)} --labels {shlex.quote(str(place))}"
    return _train(place, options)


def _train(data: Any, options: dict[str, Any]) -> str:
    """The command that reads the data as the run did."""
    words = ["crust", "train", str(data)]
    for name in ("data_dir", "label_column", "image_size", "limit"):
        if options.get(name) is not None:
            words += [f"--{name.replace('_', '-')}", str(options[name])]
    if options.get("skip_broken"):
        words.append("--skip-broken")
    return shlex.join(words)


def _back(run: Path, place: Path, data: str | None) -> str:
    """The command that takes the moves of a list back: with all that says which list, and where the files are."""
    words = ["crust", "audit", str(run), "--move-back"]
    if place != run / MOVES:
        words += ["-o", str(place)]
    if data is not None:
        words += ["--data", data]
    return shlex.join(words)

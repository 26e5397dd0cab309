"""`crust reproduce`: the paper's tables and figures, or a grid of one's own, on this machine or on a cluster."""

from __future__ import annotations

import contextlib
import logging
import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crust.cli.formatting import StoppedByUser, show_log
from crust.cli.reproduce_plan import Asked, check_folder, read_asked, read_engine, read_known, show_plan
from crust.cli.reproduce_progress import GridProgress
from crust.errors import InputError, require

if TYPE_CHECKING:
    from crust.experiments.preflight import Checked
    from crust.experiments.task import Spec, Work

WHAT = partial(typer.Option, rich_help_panel="What to run")
WHERE = partial(typer.Option, rich_help_panel="Where it runs")
DATA = partial(typer.Option, rich_help_panel="Data and results")
MANY = 5  # failures that are shown one by one


def reproduce_command(
    context: typer.Context,
    what: Annotated[
        list[str] | None,
        typer.Argument(
            help="table1, table2, table3, figure1, several of them, or all.", metavar="WHAT", show_default=False
        ),
    ] = None,
    grid: Annotated[
        Path | None, WHAT(help="A grid of your own instead: see docs/reproduce.md.", metavar="FILE")
    ] = None,
    scale: Annotated[
        str | None,
        WHAT(
            help="paper: all of it, for GPUs; full: one column on all of CIFAR-10; cpu: CIFAR-10 in small, the default;"
            " smoke: digits, minutes.",
            metavar="NAME",
        ),
    ] = None,
    seeds: Annotated[
        str | None, WHAT(help="How many, as in 5, or which, as in 0,3; default: the scale's.", metavar="N")
    ] = None,
    methods: Annotated[str | None, WHAT(help="Only these, as in erm,crust.", metavar="NAMES")] = None,
    dry_run: Annotated[bool, WHAT("--dry-run", help="Show what would run and how long it takes.")] = False,
    tables: Annotated[
        bool,
        WHAT("--tables", help="Run nothing, and write tables, figures and the page from the results that are there."),
    ] = False,
    retry_failed: Annotated[bool, WHAT("--retry-failed", help="Also try again what has failed.")] = False,
    skip_missing: Annotated[bool, WHAT("--skip-missing", help="Leave out runs whose data is not here.")] = False,
    engine: Annotated[str, WHERE(help="local or ray.", metavar="NAME")] = "local",
    jobs: Annotated[int | None, WHERE(help="local: runs at a time, each with its share of the cores.")] = None,
    address: Annotated[
        str | None, WHERE(help="ray: of the cluster, such as auto; default: one on this machine.")
    ] = None,
    cpus: Annotated[float | None, WHERE(help="Cores of each run; ray: 1 by default.")] = None,
    gpus: Annotated[float | None, WHERE(help="ray: GPU of each run, 1 at most; 0.25 puts four on one.")] = None,
    workers: Annotated[int, WHERE(help="Processes of each run that read large image folders.")] = 0,
    data_dir: Annotated[Path | None, DATA(help="Where named datasets are; default: $CRUST_DATA, else data.")] = None,
    human_labels: Annotated[Path | None, DATA(help="The .npz with CIFAR-10N's labels.", metavar="FILE")] = None,
    skip_broken: Annotated[bool, DATA("--skip-broken", help="Leave out images that cannot be read.")] = False,
    results: Annotated[
        list[Path] | None, DATA(help="Results from elsewhere that count too: a .jsonl or a folder of them; repeated.")
    ] = None,
    output: Annotated[Path | None, DATA("-o", "--output", help="Folder; default: runs/reproduce-SCALE.")] = None,
    keep_runs: Annotated[
        bool, DATA("--keep-runs", help="Keep models, audits and checkpoints of finished runs.")
    ] = False,
    quiet: Annotated[bool, DATA("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Run the paper's experiments, or a grid of your own; what is there already is not run again."""
    show_log(logging.ERROR if quiet else logging.WARNING)
    from crust.experiments.task import check_alone

    check_alone()
    asked = read_asked(what or [], grid, scale, seeds, methods)
    if "figure1" in asked.names and not dry_run:
        require("matplotlib", extra="plot")
    folder = output or Path("runs") / (f"reproduce-{asked.scale}" if grid is None else grid.stem)
    check_folder(folder)
    place = read_engine(engine, jobs, address, cpus, gpus)
    if workers < 0:
        raise InputError(f"--workers is {workers}: give a number of processes, or 0 for none", code="bad-workers")
    if human_labels is not None and not human_labels.is_file():
        raise InputError(
            f"--human-labels {human_labels} is no file: name the .npz with people's labels, or leave it out",
            code="missing-file",
        )

    from crust.experiments import key, read_results, run_grid
    from crust.experiments.grid import failures, without_result
    from crust.experiments.preflight import check_room, look
    from crust.experiments.task import Work

    work = Work(
        folder / "results.jsonl", folder / "runs", data_dir, human_labels, workers=workers, skip_broken=skip_broken
    )
    known = read_known(results or [])
    if tables:
        if dry_run:
            raise InputError("--tables and --dry-run exclude each other: leave one of them out", code="options-exclude")
        _only_tables(asked, [*known, *read_results(work.results)], folder, quiet)
        return
    todo = without_result(asked.specs, [*read_results(work.results), *known])
    failed = failures(todo, work.folder)
    if not retry_failed:
        todo = [spec for spec in todo if key(spec) not in failed]
    if todo and not quiet:
        typer.echo("looking at the data and the networks of the runs", err=True)
    checked = look(todo, work, download=not dry_run)
    if skip_broken:
        logging.getLogger("crust.data").setLevel(logging.ERROR)  # what is left out is said once, not for every run
    if dry_run:
        lines = [*known, *read_results(work.results)]
        show_plan(asked.title, asked.specs, todo, lines, failed, checked, work, place, keep_runs=keep_runs)
        return
    todo = _possible(todo, checked, skip_missing, quiet)
    with place if todo else contextlib.nullcontext():  # no cluster is asked for where nothing is to run
        if todo:
            check_room(todo, checked.sizes, folder, place.at_once, keep_runs)
        progress = _grid_progress(asked.specs, todo, checked, [*known, *read_results(work.results)], quiet)
        try:
            with progress:
                run_grid(todo, place, work, progress, known=known, retry_failed=retry_failed, keep_runs=keep_runs)
        except KeyboardInterrupt:
            _write_outputs(asked, [*known, *read_results(work.results)], folder)
            done = f"{progress.before + progress.ended} of {len(asked.specs)} runs are finished"
            words = f"stopped; {done}, the others go on from their last epoch with: {_again(context)}"
            raise StoppedByUser(words) from None
    lines = [*known, *read_results(work.results)]
    files = _write_outputs(asked, lines, folder)
    left = without_result(asked.specs, lines)
    failed = failures(left, work.folder)  # now, or before and not tried again
    if not quiet:
        _print_summary(asked, work, progress, len(left))
        _print_files(files)
    if failed:
        typer.echo(f"{_runs_in_words(len(failed))} failed: --retry-failed tries them again", err=quiet)
        raise typer.Exit(1)


def _possible(todo: Sequence[Spec], checked: Checked, skip_missing: bool, quiet: bool) -> list[Spec]:
    """The runs that can be made here; the others are refused, or left out."""
    from crust.experiments import key

    reasons: dict[str, int] = {}
    for problem in checked.problems.values():
        reasons[problem] = reasons.get(problem, 0) + 1
    if reasons and not skip_missing:
        problem, count = next(iter(reasons.items()))
        of = _runs_in_words(len(todo))
        raise InputError(
            f"{count} of {of} cannot be made: {problem}; --skip-missing leaves them out", code="cannot-run"
        )
    for problem, count in reasons.items():
        if not quiet:
            typer.echo(f"left out: {_runs_in_words(count)}, {problem}", err=True)
    return [spec for spec in todo if key(spec) not in checked.problems]


def _grid_progress(
    specs: Sequence[Spec], todo: Sequence[Spec], checked: Checked, lines: Sequence[Any], quiet: bool
) -> GridProgress:
    from crust.experiments import key
    from crust.experiments.grid import titles, without_result
    from crust.experiments.preflight import Estimates, epochs_of

    estimates = Estimates(lines, checked.sizes)
    names, keys = titles(todo), [key(spec) for spec in todo]
    return GridProgress(
        dict(zip(keys, names, strict=True)),
        {key(spec): epochs_of(spec, checked.sizes[key(spec)]) for spec in todo},
        {key(spec): estimates.work(spec) or 1.0 for spec in todo},
        len(specs) - len(without_result(specs, lines)),
        quiet,
    )


def _write_outputs(asked: Asked, lines: Sequence[dict[str, Any]], folder: Path) -> list[Path]:
    """Tables, figures and the page, from all results that are there."""
    from crust.experiments.grid import write_grid
    from crust.experiments.paper import EXPERIMENTS, write_results_page

    folder.mkdir(parents=True, exist_ok=True)
    if asked.grid is not None:
        return write_grid(asked.specs, lines, folder)
    files = [
        path for name in asked.names for path in EXPERIMENTS[name].write(lines, asked.scale, folder, seeds=asked.seeds)
    ]
    return [*files, write_results_page(asked.names, lines, asked.scale, folder / "results.html", seeds=asked.seeds)]


def _again(context: typer.Context) -> str:
    """The command that was typed."""
    words = ["crust", "reproduce"]
    options: list[str] = []
    for parameter in context.command.params:
        value = context.params.get(str(parameter.name))
        source = context.get_parameter_source(str(parameter.name))
        if source is None or source.name != "COMMANDLINE":
            continue
        values = value if isinstance(value, (list, tuple)) else [value]
        if parameter.param_type_name == "argument":
            words += map(str, values)
        elif value is True:
            options.append(parameter.opts[0])
        else:
            texts = [f"{each:g}" if isinstance(each, float) else str(each) for each in values]
            options += [word for text in texts for word in (parameter.opts[0], text)]
    return shlex.join([*words, *options])


def _runs_in_words(count: int) -> str:
    return f"{count} run{'s' * (count != 1)}"


def _only_tables(asked: Asked, lines: Sequence[dict[str, Any]], folder: Path, quiet: bool) -> None:
    """What `--tables` does: tables, figures and the page, from results that are there or were named."""
    from crust.experiments.grid import without_result

    left = len(without_result(asked.specs, lines))
    if left == len(asked.specs):
        raise InputError(
            f"none of the {_runs_in_words(left)} has a result in {folder}: leave out --tables to make them, or name "
            "results from elsewhere with --results",
            code="no-results",
        )
    files = _write_outputs(asked, lines, folder)
    if not quiet:
        _print_there(asked, left)
        _print_files(files)


def _print_summary(asked: Asked, work: Work, progress: GridProgress, left: int) -> None:
    _print_there(asked, left)
    for error in progress.errors[:MANY]:
        typer.echo(f"failed: {error}")
    if len(progress.errors) > MANY:
        typer.echo(f"… and {len(progress.errors) - MANY} more failures: see error.json in the folders of {work.folder}")
    if progress.held:
        typer.echo(f"left to another process: {_runs_in_words(progress.held)}")
    typer.echo(f"results: {work.results}")


def _print_there(asked: Asked, left: int) -> None:
    typer.echo(f"{asked.title}: {len(asked.specs) - left} of {len(asked.specs)} runs are there")


def _print_files(files: Sequence[Path]) -> None:
    typer.echo(f"written: {', '.join(str(path) for path in files)}")

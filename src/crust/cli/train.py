"""`crust train`: from data with wrong labels to a model and an audit."""

from __future__ import annotations

import json
import logging
import os
import shlex
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crust._util.progress import EpochProgress
from crust.cli.formatting import StoppedByUser, show_log
from crust.cli.retrain import CARRIED_OUT, compared, load_finished
from crust.cli.train_summary import print_summary, summary
from crust.errors import InputError, choices
from crust.runs import recipe as recipes
from crust.runs.data import load_data, with_labels
from crust.runs.folder import RunFolder

if TYPE_CHECKING:
    from crust.data import Examples
    from crust.runs.result import Result
    from crust.training.settings import TrainSettings

LABELS = partial(typer.Option, rich_help_panel="Labels")
DATA = partial(typer.Option, rich_help_panel="Data")
HOW = partial(typer.Option, rich_help_panel="How to train")
RUN = partial(typer.Option, rich_help_panel="The run")


def train_command(
    data: Annotated[
        str | None,
        typer.Argument(
            help="digits, cifar10, cifar100, webvision, a folder of class folders, or a .npz, .csv, .tsv or .parquet.",
            metavar="DATA",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str | None,
        HOW(
            help="resnet8 to resnet56, small_cnn, mlp, text, timm:NAME, hf:NAME or a folder (pretrained, for texts), "
            "or auto; default: auto, what fits the data.",
            metavar="NAME",
        ),
    ] = None,
    method: Annotated[str | None, HOW(help="See `crust methods`; default: crust.", metavar="NAME")] = None,
    epochs: Annotated[int | None, HOW(help="Default: by the data.")] = None,
    fraction: Annotated[
        str | None,
        HOW(help="Of the examples that is trained on; default: auto, as many as seem right.", metavar="SHARE"),
    ] = None,
    batch_size: Annotated[int | None, HOW(help="Default: by the data.")] = None,
    optimizer: Annotated[str | None, HOW(help="sgd, adam or adamw; default: by the data.", metavar="NAME")] = None,
    learning_rate: Annotated[float | None, HOW(help="The highest one; default: by the data.")] = None,
    augment: Annotated[
        bool | None,
        HOW("--augment/--no-augment", help="Crop and mirror images at random; default: from 32 pixels a side on."),
    ] = None,
    device: Annotated[
        str | None, HOW(help="Such as cpu, cuda:1 or mps; default: a GPU where CUDA has one.", metavar="NAME")
    ] = None,
    mixed_precision: Annotated[str | None, HOW(help="no, fp16 or bf16; default: no.", metavar="NAME")] = None,
    budget: Annotated[
        str | None,
        HOW(
            help="Stop when so many examples went through a network, forward or backward, as in passes=2e6.",
            metavar="passes=N",
        ),
    ] = None,
    seed: Annotated[int | None, HOW(help="Of everything random; default: 0.")] = None,
    setting: Annotated[
        list[str] | None, HOW("--set", help="Any other setting (see `crust methods NAME`), repeated.", metavar="N=V")
    ] = None,
    recipe: Annotated[
        str | None,
        HOW(
            help="All of this from FILE.yaml, or cifar10-paper, webvision-paper; options above it win.", metavar="NAME"
        ),
    ] = None,
    noise: Annotated[
        str | None,
        LABELS(
            help="Make labels wrong on purpose, as in symmetric:0.5; the clean ones are kept for measuring.",
            metavar="KIND:RATE",
        ),
    ] = None,
    labels: Annotated[
        str | None, LABELS(help="Labels from a file, in place of the data's own.", metavar="FILE:KEY")
    ] = None,
    true_labels: Annotated[
        str | None, LABELS(help="True labels from a file: for measuring only.", metavar="FILE:KEY")
    ] = None,
    validation: Annotated[
        float | None,
        LABELS(help="Share held out, noisy as it is, to choose the model that is kept; default: 0.1.", metavar="SHARE"),
    ] = None,
    data_dir: Annotated[str | None, DATA(help="Where named datasets are; default: $CRUST_DATA, else data.")] = None,
    test: Annotated[str | None, DATA(help="Clean data of the same kind to measure on.")] = None,
    label_column: Annotated[str | None, DATA(help="Column of a table with the labels; default: label.")] = None,
    text_column: Annotated[
        str | None, DATA(help="Column of a table with texts to learn from; default: the only one besides the labels.")
    ] = None,
    image_size: Annotated[int | None, DATA(help="Side in pixels that images in folders are brought to.")] = None,
    limit: Annotated[int | None, DATA(help="Only the first so many examples.")] = None,
    skip_broken: Annotated[bool, DATA("--skip-broken", help="Leave out images that cannot be read.")] = False,
    workers: Annotated[int | None, DATA(help="Processes that read large image folders.")] = None,
    output: Annotated[
        Path | None, RUN("-o", "--output", help="Folder of the run; default: runs/DATA-METHOD-NUMBER.")
    ] = None,
    keep_every: Annotated[
        int | None,
        RUN(
            help="Keep the checkpoint of every Nth epoch, for `crust theory`; default: only the newest two.",
            metavar="N",
        ),
    ] = None,
    resume: Annotated[bool, RUN("--resume", help="Go on with the run in -o; needs nothing else.")] = False,
    after: Annotated[
        Path | None,
        RUN(help="The run before its labels were corrected: say whether this one is better.", metavar="RUN"),
    ] = None,
    tracker: Annotated[
        list[str] | None, RUN(help="Also tell this tracker, such as tensorboard; repeated.", metavar="NAME")
    ] = None,
    as_json: Annotated[
        bool, RUN("--json", help="Print what was reached as JSON, for a machine to read; progress stays on stderr.")
    ] = False,
    quiet: Annotated[bool, RUN("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Train a network on data with wrong labels, and learn which labels are likely wrong."""
    show_log(logging.ERROR if quiet else logging.WARNING, logging.NOTSET if quiet else logging.INFO)
    given = {
        "data": data, "data_dir": data_dir, "test": test, "label_column": label_column, "text_column": text_column,
        "image_size": image_size, "limit": limit, "skip_broken": skip_broken or None, "labels": labels,
        "true_labels": true_labels, "noise": noise, "model": model, "method": method, "validation": validation,
        "augment": augment,
        "trackers": tracker or None,
    }  # fmt: skip
    shortcuts = {
        "epochs": epochs, "batch_size": batch_size, "learning_rate": learning_rate, "seed": seed, "workers": workers,
        "mixed_precision": mixed_precision, "keep_every": keep_every, "optimizer": optimizer,
        "device": device,
    }  # fmt: skip
    words = [*(setting or []), *([] if fraction is None else [f"fraction={fraction}"])]
    settings = recipes.parse_settings(words) | _without_none(shortcuts)
    if budget is not None:
        settings["max_passes"] = _parse_passes(budget)
    base = recipes.read_recipe(recipe) if recipe is not None else _recipe_of(output, resume, data)
    options, settings = recipes.merge_recipe(base, _without_none(given), settings)
    start = time.perf_counter()
    before = None if after is None else load_finished(after)
    result = train_by_recipe(options, settings, output, resume, quiet, told=not (quiet or as_json))
    if as_json and result.is_main_process:
        typer.echo(json.dumps(summary(result, options, time.perf_counter() - start), indent=2, default=str))
    elif not quiet and result.is_main_process:
        print_summary(result, options, time.perf_counter() - start, resume)
        if before is not None:
            typer.echo(compared(before, result, options))
        typer.echo(f"next: crust audit {shlex.quote(str(result.run_dir))}")


def train_by_recipe(
    options: dict[str, Any],
    settings: dict[str, Any],
    output: Path | None,
    resume: bool,
    quiet: bool,
    told: bool = True,
) -> Result:
    """Train as the options and settings of a recipe say, with live progress; leave what other commands ask for."""
    from crust.methods import METHODS
    from crust.selection.input_checks import check_device
    from crust.training.settings import split_settings
    from crust.training.trackers import check_trackers

    # What can be refused is refused before a large dataset is read.
    kind = METHODS[options["method"]]
    experiment, own = split_settings(settings, kind.Settings)
    _check_options(options, output)
    check_device(experiment.device)
    if output is not None and not resume:
        _refuse_taken(RunFolder(output), options, experiment, own)
    check_trackers(options.get("trackers", ()), output or Path("runs"))
    folder = RunFolder(output or _new_folder(options))

    import crust

    bundle = load_data(options)
    examples, truth, noise = with_labels(bundle, options, experiment.seed)
    settings = settings | _choose(examples, options, experiment, quiet or not told)
    experiment, _ = split_settings(settings, kind.Settings)
    epochs = sum(stage.epochs or experiment.epochs for stage in kind(own).stages())
    folder.remember_data(recipes.recipe_text(options, experiment, own), bundle.encoding, noise)
    progress = EpochProgress(epochs, quiet or os.environ.get("RANK", "0") != "0")  # of several processes one speaks

    try:
        with progress:
            return crust.fit(
                options["model"],
                examples,
                method=options["method"],
                true_labels=None if truth is None else examples.decode(truth),
                test_set={"test": bundle.test, **bundle.more_tests} if bundle.more_tests else bundle.test,
                validation=options.get("validation", 0.1),
                augment=options.get("augment"),
                run_dir=folder,
                resume=resume,
                on_epoch_end=progress,
                progress=False,  # shown here already
                trackers=options.get("trackers", ()),
                **settings,
            )
    except KeyboardInterrupt:
        raise StoppedByUser(_how_to_resume(folder, progress.finished, epochs)) from None


def _parse_passes(budget: str) -> float:
    """What `--budget passes=N` allows."""
    name, _, number = budget.partition("=")
    try:
        if name.strip() == "passes" and float(number) > 0:
            return float(number)
    except ValueError:
        pass
    raise InputError(f"--budget {budget} is no number of passes: write it as passes=2e6", code="bad-budget")


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _recipe_of(folder: Path | None, resume: bool, data: str | None) -> dict[str, Any]:
    """The recipe of the run that is to go on, so that its folder is all that must be named."""
    if not resume:
        return {}
    if folder is None:
        raise InputError("--resume does not know which run: name its folder with -o", code="no-run")
    run = RunFolder(folder)
    if run.recipe_path.is_file():
        try:
            run.config()
        except InputError as error:  # one that is damaged is made anew
            if error.code == "old-run":
                raise
        return recipes.read_recipe(run.recipe_path)
    if data is None:
        raise InputError(
            f"there is no run in {folder} that could go on: check the folder, or give the whole command again",
            code="no-run",
        )
    return {}


def _check_options(options: dict[str, Any], output: Path | None) -> None:
    if options.get("data") is None:
        raise InputError(
            "there is nothing to train on: give DATA, such as digits, or a folder or a file", code="nothing-to-do"
        )
    model = options.get("model")
    if model is not None and not str(model).startswith("timm:"):
        from crust.defaults import AUTO
        from crust.models import MODELS
        from crust.models.build import model_name

        options["model"] = model_name(str(model))
        if not options["model"].startswith("hf:"):
            choices(model, [*MODELS, "timm:NAME", "hf:NAME", AUTO], "model")
    if options.get("noise") is not None:
        from crust.noise import parse_noise

        parse_noise(options["noise"])
        for name in ("labels", "true_labels"):
            if options.get(name) is not None:
                raise InputError(
                    f"--noise is made from the data's own labels: leave out --{name.replace('_', '-')}",
                    code="options-exclude",
                )
    if output is None and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise InputError("several processes need one folder: name it with -o", code="no-output")
    if output is not None and output.exists() and not output.is_dir():
        raise InputError(f"-o {output} is a file: name a folder", code="output-is-file")


def _refuse_taken(folder: RunFolder, options: dict[str, Any], experiment: Any, own: Any) -> None:
    """Say what is in the folder where there is a run: whether it is the one that is asked for, and how far it is."""
    asked = recipes.absolute_paths(options)
    for chosen in (experiment, own):
        asked |= chosen.model_dump(mode="json", include=chosen.model_fields_set - set(CARRIED_OUT))
    changed = []
    if folder.recipe_path.is_file():
        there = recipes.read_recipe(folder.recipe_path)
        changed = [
            f"{name} (was {there.get(name)}, is {value})"
            for name, value in asked.items()
            if value != there.get(name) and name != "model"  # auto is a name for what is there by another one
        ]
    sentence = folder.what_is_there(changed)
    if sentence is not None:
        raise InputError(sentence, code="output-taken")
    if folder.lock_path.exists():  # before the data is read
        with folder.claimed():
            pass


def _new_folder(options: dict[str, Any]) -> Path:
    """runs/DATA-METHOD-NUMBER with the first number that is free."""
    start = f"{Path(str(options['data'])).stem or 'data'}-{options['method']}"
    number = 1
    while (found := Path("runs") / f"{start}-{number}").exists():
        number += 1
    return found


def _choose(examples: Examples, options: dict[str, Any], experiment: TrainSettings, quiet: bool) -> dict[str, Any]:
    """The settings that nobody gave, and the network; says what was chosen. Datasets of the paper keep its protocol."""
    from crust import defaults

    given = experiment.model_dump(include=experiment.model_fields_set)
    about = examples.kind, examples.shape, len(examples)
    model, paper = options.get("model", defaults.AUTO), options["data"] in recipes.FILED
    choice = defaults.choose(*about, model=model, given=given, paper=paper)
    options["model"] = choice.model
    if not quiet and os.environ.get("RANK", "0") == "0":
        hint = None if paper or model != defaults.AUTO else defaults.advice(*about, choice.model)
        for line in (choice.sentence, hint):
            if line is not None:
                typer.echo(line)
    return choice.settings


def _how_to_resume(folder: RunFolder, finished: int | None, epochs: int) -> str:
    if finished is None and folder.what_is_there() is None:
        return "stopped before the first epoch was finished: start again"
    done = "what was finished" if finished is None else f"epoch {finished} of {epochs}"
    return f"stopped; {done} is saved, go on with: crust train --resume -o {shlex.quote(str(folder))}"

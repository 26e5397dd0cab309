"""Training on corrected data as the run before was trained: its own settings, spelled out, and what came of it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crust.cli.formatting import percent

if TYPE_CHECKING:
    from crust.runs.folder import RunFolder
    from crust.runs.result import Result

FLAGS = ("epochs", "batch_size", "optimizer", "learning_rate", "seed", "mixed_precision", "fraction")  # others: --set
# How a run is carried out, not what it is.
CARRIED_OUT = ("stop_after", "keep_every", "workers", "eval_batch_size", "device")
WORSE = 0.01  # so much less accurate than before the corrections is more than a wobble


def retrain_command(run: RunFolder, data: Any, options: dict[str, Any], n: int, labels: Any = None) -> str:
    """`crust train DATA` with what the run was told and had chosen; what would be chosen again is left out."""
    words = ["crust", "train", str(data)]
    for name in ("data_dir", "label_column", "text_column", "image_size", "limit"):
        words += _flag(name, options.get(name))
    if options.get("skip_broken"):
        words.append("--skip-broken")
    for name in ("test", "true_labels"):
        words += _flag(name, options.get(name))
    words += _settings_words(run.config(), n, options)
    there = run.model_path.is_file() and run.config()["built"]  # else nothing can be compared
    return shlex.join([*words, *_flag("labels", labels), *_flag("after", run if there else None)])


def load_finished(run: Path) -> Result:
    """The run before, opened before hours are spent on the next one."""
    from crust.runs.result import load

    found = load(run)
    found.audit()
    return found


def compared(before: Result, now: Result, options: dict[str, Any]) -> str:
    """Whether training on corrected labels has made a better model, in a line; a worse one is not passed over.

    Both are asked for the test set; without one each for what it has held out, whose labels are the corrected ones.
    """
    import numpy as np

    from crust.runs.data import load_data, with_labels

    bundle = load_data(options)
    asked: list[tuple[Any, Any]]
    if bundle.test is not None:
        where, asked = "the test set", [(bundle.test, bundle.test.decode(bundle.test.labels))] * 2
    else:
        where = "the corrected labels that were held out"
        examples = with_labels(bundle, options, now.config["experiment"]["seed"])[0]
        held = [np.array(run.audit().query("is_held_out")["index"]) for run in (before, now)]
        same = len(before.audit()) == len(examples) and before.config["inputs"]["shape"] == list(examples.shape)
        if examples.ids is not None or not same or not all(map(len, held)):
            return f"whether this is better than {before.run_dir} cannot be said without a test set: give --test"
        asked = [(examples.subset(rows), examples.decode(examples.labels[rows])) for rows in held]
    old, new = (
        float((run.predict(some) == np.array(right)).mean())
        for run, (some, right) in zip((before, now), asked, strict=True)
    )
    line = f"on {where}: {percent(new)}, before the corrections {percent(old)}"
    if new >= old - WORSE:
        return line
    return f"{line}: keep the model in {before.run_dir}, or, where few wrong labels are left, train with --method erm"


def _settings_words(config: dict[str, Any], n: int, options: dict[str, Any]) -> list[str]:
    from crust import defaults
    from crust.methods import METHODS
    from crust.runs.recipe import FILED
    from crust.training.settings import TrainSettings, checked

    experiment = {name: value for name, value in config["experiment"].items() if name not in CARRIED_OUT}
    model = config["model"] if config["built"] else None
    words = _flag("model", model) + (_flag("method", config["method"]) if config["method"] != "crust" else [])
    words += _flag("validation", config["validation"]) if config["validation"] != 0.1 else []
    if options.get("augment") is not None:
        words.append("--augment" if options["augment"] else "--no-augment")
    inputs, given = config["inputs"], {"epochs": experiment["epochs"]}
    paper = options.get("data") in FILED
    usual = checked(TrainSettings, {}).model_dump(mode="json") | given
    usual |= defaults.choose(inputs["kind"], inputs["shape"], n, model=model, given=given, paper=paper).settings
    words += _flag("epochs", given["epochs"])
    words += _differing(experiment, usual)
    if config["method"] in METHODS:  # else one of the user's own, which the command line does not know
        words += _differing(config["settings"], METHODS[config["method"]].Settings().model_dump(mode="json"))
    return words


def _differing(values: dict[str, Any], usual: dict[str, Any]) -> list[str]:
    words: list[str] = []
    for name, value in values.items():
        if value == usual.get(name):
            continue
        if name == "max_passes":
            words += ["--budget", f"passes={value:g}"]
        elif name in FLAGS:
            words += _flag(name, value)
        else:
            words += ["--set", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    return words


def _flag(name: str, value: Any) -> list[str]:
    return [] if value is None else [f"--{name.replace('_', '-')}", str(value)]

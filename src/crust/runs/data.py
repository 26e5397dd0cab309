"""The data of a run: as its recipe or its specification names it, with the labels that it is trained on, and shown."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crust.errors import CrustError, InputError
from crust.runs.folder import RunFolder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from crust.data import Bundle, Examples
    from crust.noise import NoisyLabels
    from crust.report.previews import Looks


log = logging.getLogger("crust.cli")


def options_of(run: RunFolder, data: str | None = None, data_dir: str | None = None) -> tuple[dict[str, Any], int]:
    """What the run was trained on, as its recipe says, or as is given; and its seed."""
    options, settings = run.recipe() if run.trained_by == "recipe" else ({}, {})
    if data is not None:
        options["data"] = data
    if data_dir is not None:
        options["data_dir"] = data_dir
    if options.get("data") is None and run.trained_by is None:
        root = (run.config().get("inputs") or {}).get("root")  # the folder of a dataset of image files
        options |= {"data": root} if root is not None and Path(root).is_dir() else {}
    if options.get("data") is None and run.trained_by != "spec":
        raise InputError(
            f"{run} does not say what it was trained on, as runs of crust train do: name it with --data",
            code="unknown-data",
        )
    seed = settings.get("seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise InputError(f"{run.recipe_path} has the seed {seed!r:.100}: give a whole number", code="bad-recipe")
    return options, seed


def looks_of(
    run: RunFolder, table: Any, data: str | None = None, data_dir: str | None = None, *, apart: bool = False
) -> Looks:
    """How to show the examples of a run's audit; an `InputError` where the data is not there or is not the same.

    `apart` looks at a table in a process of its own, so that nothing stays of the memory that this takes.
    """
    from crust.data.load import NAMES

    options, seed = options_of(run, data, data_dir)
    path = Path(str(options.get("data")))
    if path.is_dir() and str(path) not in NAMES:
        return _looks_of_files(run, path, table)
    from crust.data import matrix_io
    from crust.report.previews import numbers_of, pictures_of, rows_of

    a_table = path.suffix.lower() in matrix_io.TABLES and path.exists()
    if a_table and apart:
        _check_apart(run, data, data_dir)
    else:
        examples = _training_examples(run, options, seed, data_dir)
    if a_table:
        from crust.data import table_io

        with matrix_io.reading(path):
            rows = table_io.read_table_file(path)
        first = options.get("text_column")
        if first is not None:
            rows = rows.select([first, *(name for name in rows.column_names if name != first)])
        return rows_of(rows, [options.get("label_column") or "label", ""])
    if examples.kind == "tokens":
        return rows_of({"text": examples.inputs.texts})
    return numbers_of(examples.inputs) if examples.kind == "features" else pictures_of(examples)


def _check_apart(run: RunFolder, data: str | None, data_dir: str | None) -> None:
    """Hold in a process of its own that a run was trained on this data."""
    told = json.dumps([str(run.path.resolve()), data, data_dir])
    ended = subprocess.run([sys.executable, "-c", APART], input=told, capture_output=True, text=True, check=False)
    try:
        code, message = json.loads(ended.stdout)
    except ValueError:
        raise InputError(f"the data of {run} cannot be opened again", code="unknown-data") from None
    if code is not None:
        raise InputError(message, code=code)


APART = """
import json, sys
from crust.errors import CrustError
from crust.runs.data import training_examples
from crust.runs.folder import RunFolder
run, *where = json.load(sys.stdin)
try:
    training_examples(RunFolder(run), *where)
    print(json.dumps([None, ""]))
except CrustError as error:
    print(json.dumps([error.code, str(error)]))
"""


def looks_or_reason(
    run: RunFolder, table: Any, data: str | None = None, data_dir: str | None = None, *, apart: bool = False
) -> tuple[Looks | None, str | None]:
    """The same, or why there are none; but what the user names on the command line must be right."""
    try:
        return looks_of(run, table, data, data_dir, apart=apart), None
    except CrustError as error:
        if data is not None or data_dir is not None:
            raise
        if "text" in table:  # its beginning, which the audit has kept
            from crust.report.previews import Rows

            kept = dict(zip(table["index"].tolist(), table["text"].tolist(), strict=True))
            return Rows(["text"], lambda index: [kept[index]]), None
        return None, str(error)


def _looks_of_files(run: RunFolder, root: Path, table: Any) -> Looks:
    """Images in class folders: the files themselves, larger than the network saw them."""
    from crust.data.image_folder import train_root
    from crust.report.previews import files_of

    if "id" not in table:
        raise InputError(
            f"the audit does not name the files of {root}: train again with crust train {root}", code="missing-ids"
        )
    base = train_root(root)
    position = dict(zip(table["index"].tolist(), table["id"].astype(str).tolist(), strict=True))
    found = files_of(base, position | _files_moved(run, base, position))
    if found.missing is not None:
        log.warning("%s", found.missing)
    return found


def _files_moved(run: RunFolder, base: Path, names: dict[int, str]) -> dict[int, str]:
    """Where files are that `crust apply --move` has moved since the audit."""
    from crust.corrections.move_image_files import done, read_moves

    try:
        moves = read_moves(run.moves_path)
    except InputError:  # none, or not ours: then nothing is known to be moved
        return {}
    return {one.index: one.new for one in done(base, moves) if names.get(one.index) == one.old}


def training_examples(run: RunFolder, data: str | None = None, data_dir: str | None = None) -> Examples:
    """What a run was trained on, with the labels it was given; an `InputError` where that is not there any more."""
    return _training_examples(run, *options_of(run, data, data_dir), data_dir)


def _training_examples(run: RunFolder, options: dict[str, Any], seed: int, data_dir: str | None) -> Examples:
    if options.get("data") is not None:
        examples = with_labels(load_data(options), options, seed)[0]
    else:
        examples = examples_of_spec(run.spec(), data_dir)[0]
    if examples.fingerprint() != run.config().get("data"):
        raise InputError(
            f"{options.get('data')} is not what the run in {run} was trained on: name it with --data", code="other-data"
        )
    return examples


def load_data(options: dict[str, Any]) -> Bundle:
    """The data that a recipe names."""
    from crust.data import load

    names = ("data_dir", "label_column", "text_column", "image_size", "skip_broken", "limit", "test")
    return load(options["data"], **{name: options[name] for name in names if options.get(name) is not None})


def with_labels(bundle: Bundle, options: dict[str, Any], seed: int) -> tuple[Examples, Any, NoisyLabels | None]:
    """The examples with the labels to train on, the true labels where they are known, and the noise that was made."""
    from crust.data import read_labels

    examples = bundle.train
    if options.get("noise") is not None:
        noise = _make_noise(bundle, str(options["noise"]), seed)
        return examples.with_labels(noise.labels), examples.labels, noise
    found = {}
    for name in ("labels", "true_labels"):
        if options.get(name) is not None:
            found[name] = read_labels(options[name], bundle.total, examples.classes, bundle.rows, examples.ids)
    if "labels" in found:
        examples = examples.with_labels(found["labels"])
    return examples, found.get("true_labels"), None


def _make_noise(bundle: Bundle, text: str, seed: int) -> NoisyLabels:
    from crust.noise import make_noisy_labels, parse_noise

    examples, features = bundle.train, None
    if parse_noise(text).name == "instance":
        if examples.kind == "dataset":
            raise InputError(
                "instance noise needs the examples in memory: use another noise, or a --limit", code="not-in-memory"
            )
        features = examples.inputs.counts() if examples.kind == "tokens" else examples.inputs.numpy()
        if features.dtype.kind == "u":
            features = features / 255.0
    return make_noisy_labels(
        examples.labels, text, len(examples.classes), seed, features=features, superclasses=bundle.superclasses
    )


def examples_of_spec(
    spec: dict[str, Any], data_dir: str | Path | None = None, human_labels: str | Path | None = None
) -> tuple[Examples, NDArray[np.int64] | None]:
    """The examples with the labels of an experiment's specification, and the true labels where they are known."""
    from crust.data import load

    bundle = load(spec["data"], data_dir=data_dir, limit=spec["limit"])
    given, truth = labels_of_spec(bundle, spec["labels"], spec["experiment"]["seed"], human_labels)
    return bundle.train.with_labels(given), truth


def labels_of_spec(
    bundle: Bundle, labels: str, seed: int, human_labels: str | Path | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """The labels to train on, and the true ones where they are known."""
    truth = bundle.train.labels
    if labels == "given":
        return truth, None
    if labels == "true":
        return truth, truth
    kind, _, name = labels.partition(":")
    if kind == "human":
        if human_labels is None:
            raise InputError(
                f"labels {labels} need people's labels: name their .npz with human_labels", code="missing-human-labels"
            )
        from crust.data import read_labels

        return read_labels(f"{human_labels}:{name}", bundle.total, bundle.train.classes, bundle.rows), truth
    from crust import noise

    realised = noise.make_noisy_labels(truth, labels, len(bundle.train.classes), seed, superclasses=bundle.superclasses)
    return realised.labels, truth

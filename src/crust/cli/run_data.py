"""The data of a run opened again, to show its examples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from crust.cli import recipe as recipes
from crust.errors import CrustError, InputError

if TYPE_CHECKING:
    from crust.audit.looks import Looks


def options_of(run: Path, data: str | None = None, data_dir: str | None = None) -> tuple[dict[str, Any], int]:
    """What the run was trained on, as its recipe says, or as is given; and its seed."""
    options: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    if (run / "recipe.yaml").is_file():
        options, settings = recipes.merge(recipes.read(run / "recipe.yaml"), {}, {})
    if data is not None:
        options["data"] = data
    if data_dir is not None:
        options["data_dir"] = data_dir
    if options.get("data") is None and not (run / "spec.json").is_file():
        raise InputError(f"{run} does not say what it was trained on, as runs of crust train do: name it with --data")
    return options, int(settings.get("seed", 0))


def looks_of(run: Path, table: Any, data: str | None = None, data_dir: str | None = None) -> Looks:
    """How to show the examples of a run's audit; an `InputError` where the data is not there or is not the same."""
    from crust.data.loading import NAMES

    options, seed = options_of(run, data, data_dir)
    path = Path(str(options.get("data")))
    if path.is_dir() and str(path) not in NAMES:
        return _files(path, table)
    examples = _examples(run, options, seed, data_dir)
    from crust.audit.looks import numbers_of, pictures_of, rows_of
    from crust.data import vectors

    if path.suffix.lower() in vectors.TABLES and path.exists():
        from crust.data import table_files

        with vectors.reading(path):
            rows = table_files.read(path)
        return rows_of(rows, [options.get("label_column") or "label", ""])
    return numbers_of(examples.inputs) if examples.kind == "features" else pictures_of(examples)


def looks_or_reason(
    run: Path, table: Any, data: str | None = None, data_dir: str | None = None
) -> tuple[Looks | None, str | None]:
    """The same, or why there are none; but what the user names on the command line must be right."""
    try:
        return looks_of(run, table, data, data_dir), None
    except CrustError as error:
        if data is not None or data_dir is not None:
            raise
        return None, str(error)


def looks_of_file(data: str, n: int) -> Looks:
    """The rows of a table, the texts of a file with one a line, or the images or features of a .npy file."""
    from crust.audit.looks import Pictures, Rows, as_image, numbers_of, rows_of
    from crust.data import table_files, vectors

    path = Path(data)
    found: Looks
    if path.suffix.lower() == ".txt":
        try:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            raise InputError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
        count, found = len(lines), Rows(["text"], lambda index: [lines[index]])
    elif path.suffix.lower() in vectors.TABLES:
        with vectors.reading(path):
            rows = table_files.read(path)
        count, found = rows.num_rows, rows_of(rows, [""])
    else:
        with vectors.reading(path):
            values = vectors.open_array(*vectors.split_spec(data))
        count = len(values)
        found = numbers_of(values) if values.ndim == 2 else Pictures(lambda index: as_image(values[index]))
    if count != n:
        raise InputError(f"{path.name} has {count:,} examples, but there are {n:,} labels: give the same ones")
    return found


def _files(root: Path, table: Any) -> Looks:
    """Images in class folders: the files themselves, larger than the network saw them."""
    from crust.audit.looks import files_of
    from crust.data.folders import train_root

    if "id" not in table:
        raise InputError(f"the audit does not name the files of {root}: train again with crust train {root}")
    base = train_root(root)
    position = dict(zip(table["index"].tolist(), table["id"].astype(str).tolist(), strict=True))
    gone = [name for name in position.values() if not (base / name).is_file()]
    if gone:
        raise InputError(
            f"{len(gone):,} of {len(position):,} images are no longer in {base}, such as {gone[0]}: "
            "move them back (crust audit RUN --move-back), or name their folder with --data"
        )
    return files_of(base, position)


def _examples(run: Path, options: dict[str, Any], seed: int, data_dir: str | None) -> Any:
    import json

    import yaml

    from crust.cli.training_data import load_data, with_labels

    if options.get("data") is not None:
        examples = with_labels(load_data(options), options, seed)[0]
    else:
        from crust.data import load
        from crust.experiments.running import labels_of

        spec = json.loads((run / "spec.json").read_text(encoding="utf-8"))
        bundle = load(spec["data"], data_dir=data_dir, limit=spec["limit"])
        examples = bundle.train.with_labels(labels_of(bundle, spec["labels"], spec["experiment"]["seed"], None)[0])
    expected = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8")).get("data")
    if examples.fingerprint() != expected:
        raise InputError(f"{options.get('data')} is not what the run in {run} was trained on: name it with --data")
    return examples

"""An audit from anywhere, opened to be looked at and acted on: a run, a table, features or probabilities in files."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crust._util.atomic_write import write_atomic
from crust._util.foreign_files import path_of
from crust._util.output_files import check_output
from crust._util.progress import progress_bar
from crust.audit.audit_tables import as_audit, suspects
from crust.errors import CrustError, InputError
from crust.report.previews import Looks
from crust.runs.data import looks_or_reason
from crust.runs.folder import RunFolder
from crust.runs.show_source import looks_of_shown, numbers_of_shown

if TYPE_CHECKING:
    import pandas as pd

    from crust.audit.noise_rate import NoiseRate
    from crust.review import Store

TABLES = (".csv", ".tsv", ".parquet")
PASSED = 20_000  # examples that are run through the network once more for the map; of more, probabilities are shown
TRUSTED = 2000  # examples that evidence is looked for among
NUMBERS = 50_000_000  # of what is shown, at most, to find out from them what is alike
PROBABLE = "averaged probabilities"

log = logging.getLogger("crust")


@dataclass
class AuditSource:
    """An audit, and where what belongs to it lies.

    Args:
        table: a row an example.
        classes: in the order of their numbers.
        name: what pages call it.
        words: how a command names it.
        run: the folder, where it is the audit of a run.
        stem: else the file, without its suffix, that its report, review and corrections lie beside.
        show: what to show of the examples, as the user has named it.
        data: where the data of a run lies now.
        data_dir: where named datasets are.
        labels: the file that the labels came from, where it is not a run's.
        vectors: what the map is made from, where it is not a run's; and what that is called.

    Example:
        >>> import pandas as pd
        >>> columns = {"given_label": ["a", "b"], "predicted_label": ["a", "a"], "label_quality": [0.9, 0.2]}
        >>> audit = open_audit(pd.DataFrame(columns), show=["one text", "another"])
        >>> audit.classes, audit.suspects().tolist(), audit.looks()[0].row(1)
        (['a', 'b'], [False, True], ['another'])
    """

    table: pd.DataFrame
    classes: list[Any]
    name: str = ""
    words: list[str] = field(default_factory=list)
    run: RunFolder | None = None
    stem: Path | None = None
    show: Any = None
    data: str | None = None
    data_dir: str | None = None
    labels: str | None = None
    vectors: tuple[NDArray[np.floating], str] | None = None
    path: Path | None = None  # of the table itself
    apart: bool = False  # the data of a run is opened apart, for a server that lives long
    _looks: tuple[Looks | None, str | None] | None = None
    _rate: NoiseRate | None = None

    # ------------------------------------------------------------ its files

    def _beside(self, usual: Path) -> Path | None:
        """Where a file goes: into the run's folder, or beside the file that the audit is of."""
        if self.run is not None:
            return usual
        return None if self.stem is None else self.stem.with_name(f"{self.stem.name}.{usual.name}")

    def _folder(self) -> RunFolder:
        return self.run if self.run is not None else RunFolder(Path() if self.stem is None else self.stem.parent)

    @property
    def report_path(self) -> Path | None:
        """Of the page."""
        return self._beside(self._folder().report_path)

    @property
    def review_path(self) -> Path | None:
        """Of the decisions."""
        return self._beside(self._folder().review_path)

    @property
    def map_path(self) -> Path | None:
        """Of the projection."""
        return self._beside(self._folder().map_path)

    @property
    def moves_path(self) -> Path | None:
        """Of the list of image files to move."""
        return self._beside(self._folder().moves_path)

    @property
    def usual_review_name(self) -> str:
        """Of the decisions of a table that is no file."""
        return self._folder().review_path.name

    def corrected_path(self, suffix: str) -> Path | None:
        """Of corrected labels."""
        return self._beside(self._folder().corrected_path(suffix))

    def command(self, name: str, *more: str) -> str:
        """`crust NAME` on this audit, as it would be typed."""
        return shlex.join(["crust", name, *self.words, *more])

    def verify_command(self) -> str | None:
        """The command that measures how many label issues are wrong; None where it was done, or cannot be."""
        asked = self.run is None or self.verified() is not None
        return None if asked else shlex.join(["crust", "verify", str(self.run)])

    def next_steps(self) -> list[str]:
        """What can be done with an audit that was seen, as it would be typed."""
        if not self.words:
            return []
        verify = self.verify_command()
        listed = self.command("audit", "--issues", "-o", "issues.csv")
        return [self.command("review"), *([] if verify is None else [verify]), listed]

    def corrections_words(self, path: Path) -> list[str]:
        """How `crust apply` is told of corrections: beside features or probabilities they are named."""
        return ["--corrections", str(path)] if self.words and self.words[0].startswith("--") else [str(path)]

    # ------------------------------------------------------------ what is known

    def verified(self) -> dict[str, Any] | None:
        """What `crust verify` has found, of a run."""
        return None if self.run is None else self.run.verified()

    def suspects(self) -> NDArray[np.bool_]:
        """Which labels are listed as wrong."""
        return suspects(self.table, self.verified())

    def noise_rate(self) -> NoiseRate:
        """How many labels are wrong, as it is shown of this audit everywhere."""
        from crust.audit.noise_rate import NoiseRate, noise_rate

        if self._rate is None:
            if self.run is None and self.table["predicted_prob"].isna().any():
                self._rate = NoiseRate(reason="the table does not say how probable its predictions are")
            else:
                self._rate = noise_rate(self.table, len(self.classes), self.verified())
        return self._rate

    def looks(self) -> tuple[Looks | None, str | None]:
        """How to show the examples, or why that cannot be; the data is opened once."""
        if self._looks is None:
            self._looks = self._find_looks()
        return self._looks

    def _find_looks(self) -> tuple[Looks | None, str | None]:
        if self.show is not None:
            return looks_of_shown(self.show, self.table), None
        if self.run is not None:
            return looks_or_reason(self.run, self.table, self.data, self.data_dir, apart=self.apart)
        if self.data is not None:
            return looks_of_shown(self.data, self.table), None
        if "text" in self.table:
            texts = dict(zip(self.table["index"].tolist(), self.table["text"].tolist(), strict=True))
            return looks_of_kept(texts), None
        return None, "they were not named: --show FILE, or show= in Python"

    def store(self, path: Path | None = None, *, new: bool = False) -> Store:
        """The database of the review; a new one where that is asked for."""
        from crust.review import Store, run_key

        place = self.review_path if path is None else path
        if place is None:
            raise InputError("the decisions do not know where to go: name a file with store=", code="no-output")
        if not new and not place.is_file():
            name = self.name if self.run is None else str(self.run)
            raise InputError(f"{name} has no review yet: begin one with {self.command('review')}", code="no-review")
        return Store(place, run_key(self.table, self.classes), self.table["index"].tolist(), len(self.classes))

    def with_evidence(self) -> pd.DataFrame:
        """The table; where no medoids stand in it, with the most similar of the examples that it agrees with."""
        from crust.audit.supporting_examples import nearest_medoids

        found = self._judged() if "medoids" not in self.table else None
        if found is None or not len(self.table):
            return self.table
        agreed = (self.table["given_label"] == self.table["predicted_label"]).to_numpy()
        good = np.flatnonzero(agreed & ~self.suspects())
        if len(good) < 2:
            return self.table
        order = np.argsort(-self.table["label_quality"].to_numpy(np.float64)[good], kind="stable")[: 4 * TRUSTED]
        trusted = np.sort(good[order][np.linspace(0, len(order) - 1, min(TRUSTED, len(order))).astype(np.int64)])
        near = nearest_medoids([found], trusted, np.ones(len(found), np.int64))[0]
        return self.table.assign(medoids=self.table["index"].to_numpy()[near].tolist())

    def probabilities(self) -> NDArray[np.floating] | None:
        """Of all classes, a row for each of the table's; None where there are none."""
        if self.vectors is not None:
            return self.vectors[0] if self.vectors[1] == PROBABLE else None
        found = self._probabilities()
        return None if found is None else found[self.table["index"].to_numpy()]

    def _vectors(self) -> tuple[NDArray[np.floating], str] | None:
        """What tells which examples are alike, where no run does: what was given, else the numbers that are shown."""
        if self.vectors is None and self.run is None and self.show is not None:
            found = numbers_of_shown(self.show)
            index = self.table["index"].to_numpy()
            if found is not None and found.size <= NUMBERS and len(found) > index.max() and np.isfinite(found).all():
                self.vectors = found[index].astype(np.float32), "the numbers that are shown"
        return self.vectors

    def _judged(self) -> NDArray[np.floating] | None:
        """A row an example that tells which are alike: all that is not negative, so that roots can be taken."""
        vectors = self._vectors()
        if vectors is not None:
            values = vectors[0]
            if vectors[1] == PROBABLE:
                return values
            centred = (values - values.mean(axis=0)) / np.maximum(values.std(axis=0), 1e-9)
            unit = centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-9)
            return np.square(np.concatenate([np.maximum(unit, 0), np.maximum(-unit, 0)], axis=1))
        found = self._probabilities()
        return None if found is None else np.nan_to_num(found[self.table["index"].to_numpy()])

    def _probabilities(self) -> NDArray[np.floating] | None:
        """Of a run, all of its training set."""
        if self.run is None or not self.run.probabilities_path.is_file():
            return None
        try:
            found = np.load(self.run.probabilities_path, allow_pickle=False)
        except (OSError, ValueError):
            return None
        return found if found.ndim == 2 and len(found) > self.table["index"].max() else None

    # ------------------------------------------------------------ the map

    def map(self, progress: bool = False) -> tuple[NDArray[np.float32], str] | None:
        """All examples in two dimensions, a row each in the order of the table, and from what; None where nothing is.

        It is computed once and kept beside the audit: from what the last layer of the network gets to see, where it can
        be asked, else from the averaged probabilities.
        """
        from crust.report.projection import project
        from crust.review import run_key

        place, key = self.map_path, run_key(self.table, self.classes)
        if place is not None and place.is_file():
            try:
                with np.load(place, allow_pickle=False) as kept:
                    if str(kept["key"]) == key and kept["xy"].shape == (len(self.table), 2):
                        return kept["xy"], str(kept["source"])
            except (OSError, ValueError, KeyError):
                pass  # broken, or not ours: made again
        found = self._to_project()
        if found is None:
            return None
        values, source = found
        if source == PROBABLE:
            values = np.sqrt(np.maximum(values, 0))
        with progress_bar("laying out the map", progress) as report:
            xy = project(values, report=report)
        if place is not None:
            try:
                write_atomic(place, partial(np.savez_compressed, xy=xy, key=np.array(key), source=np.array(source)))
            except CrustError as error:  # a folder that is not ours to write to: it is made again the next time
                log.debug("%s", error)
        return xy, source

    def _to_project(self) -> tuple[NDArray[np.floating], str] | None:
        vectors = self._vectors()
        if vectors is not None:
            return vectors
        if self.run is None:
            return None
        index = self.table["index"].to_numpy()
        if len(index) <= PASSED:
            try:
                return late_features(self.run, self.data, self.data_dir)[index], "features of the last layer"
            except (CrustError, OSError, KeyError, IndexError) as error:
                log.debug("no late features: %s", error)
        found = self._probabilities()
        return None if found is None else (found[index], PROBABLE)

    # ------------------------------------------------------------ the page

    def report(self, path: str | Path | None = None, *, progress: Callable[[int], None] | None = None) -> Path:
        """Write the page; to its usual place where none is named."""
        from crust.report.page import audit_page

        place = self.report_path if path is None else path_of(path, "the report")
        if place is None:
            raise InputError("the report does not know where to go: name a file", code="no-output")
        check_output(place, "the report", (".html", ".htm"))
        looks, reason = self.looks()
        text = audit_page(
            self.with_evidence(),
            self.classes,
            looks=looks,
            calibration=self.verified(),
            name=self.name,
            without=reason,
            progress=progress,
            verify=self.verify_command(),
            next_steps=self.next_steps(),
            points=self.map(progress is not None),
            rate=self.noise_rate(),
        )
        write_atomic(place, text.encode())
        return place


def looks_of_kept(texts: dict[int, str]) -> Looks:
    """The beginnings of texts that stand in the audit itself."""
    from crust.report.previews import Rows

    return Rows(["text"], lambda index: [texts[index]])


def open_audit(
    source: Any = None,
    *,
    probs: str | None = None,
    features: str | None = None,
    labels: str | None = None,
    show: Any = None,
    data: str | None = None,
    data_dir: str | None = None,
    progress: bool = False,
) -> AuditSource:
    """An audit, whatever it comes from.

    Args:
        source: the folder of a run, its `Result`, a table of label issues as a file (.csv, .parquet) or a DataFrame, of
            crust or of another tool; or None with files of probabilities or features.
        probs: out-of-sample probabilities, a column a class.
        features: features, such as embeddings.
        labels: the labels that belong to them.
        show: what is shown of the examples, see `crust.runs.show_source.looks_of_shown`.
        data: where the data of a run lies now.
        data_dir: where named datasets are.
        progress: show bars on stderr.

    Example:
        >>> open_audit("runs/nowhere")
        Traceback (most recent call last):
        ...
        crust.errors.InputError: there is no folder runs/nowhere: give the folder of a run, or ...
    """
    options: dict[str, Any] = {"show": show, "data": data, "data_dir": data_dir}
    words: list[str] = []
    for name, value in options.items():
        if isinstance(value, str | Path):
            words += [f"--{name.replace('_', '-')}", str(value)]
    files = [name for name, value in (("--probs", probs), ("--features", features), ("--labels", labels)) if value]
    if source is not None:
        if files:
            other = f"the run {source}" if Path(source).is_dir() else source
            raise InputError(f"{files[0]} and {other} are two audits: give one of them", code="options-exclude")
        return _opened(source, words, options)
    if not files:
        raise InputError(
            "there is nothing to audit: name the folder of a run or a table, or give --probs or --features",
            code="nothing-to-do",
        )
    if files == ["--labels"]:
        raise InputError(
            "--labels alone cannot be judged: give --probs or --features with them", code="options-missing"
        )
    table, classes, vectors = _from_files(probs, features, labels, progress)
    kind, path = ("--probs", probs) if probs is not None else ("--features", features)
    place = _file_of(str(path))
    return AuditSource(
        table, classes, place.name, [kind, str(path), "--labels", str(labels), *words], stem=place.with_suffix(""),
        labels=labels, vectors=vectors, **options,
    )  # fmt: skip


def _opened(source: Any, words: list[str], options: dict[str, Any]) -> AuditSource:
    if hasattr(source, "audit_rows"):  # a Result
        folder = None if source.run_dir is None else RunFolder(source.run_dir)
        if folder is not None and folder.audit_path.is_file():
            return _opened(folder, words, options)
        table = source.audit()
        index = table["index"].to_numpy()
        try:
            vectors = (source.probabilities()[index], PROBABLE)
        except InputError:
            vectors = None
        return AuditSource(table, list(source.classes), "", [], vectors=vectors, **options)
    if hasattr(source, "iloc"):
        table, classes = as_audit(source)
        return AuditSource(table, classes, "", [], **options)
    if not isinstance(source, str | Path | RunFolder):
        raise InputError(
            f"a {type(source).__name__} is no audit: give a run, its result, or a table of label issues",
            code="not-an-audit",
        )
    path = path_of(source.path if isinstance(source, RunFolder) else source, "the audit")
    if path.suffix.lower() in TABLES and path.is_file():
        owner = RunFolder(path.parent)
        if path == owner.audit_path and owner.config_path.is_file():
            path = owner.path
        else:
            table, classes = as_audit(_read(path), path.name)
            return AuditSource(table, classes, path.stem, [str(path), *words], stem=path.with_suffix(""), path=path,
                               **options)  # fmt: skip
    if not path.exists():
        raise InputError(
            f"there is no {'table' if path.suffix.lower() in TABLES else 'folder'} {path}: give the folder of a run, "
            "or a .csv or .parquet with label issues",
            code="missing-folder",
        )
    if path.is_file():
        raise InputError(
            f"{path} is no table of label issues: give a file ending in {', '.join(TABLES)}, or the folder of a run",
            code="file-type",
        )
    folder = RunFolder(path)
    table, classes = folder.audit()
    return AuditSource(
        table, classes, path.resolve().name, [str(path), *words], folder, path=folder.audit_path, **options
    )


def _read(path: Path) -> pd.DataFrame:
    """A table with its labels as they are written: 01 is not 1."""
    from crust.audit.audit_tables import NAMES
    from crust.data import matrix_io, table_io

    text = [name for ours in ("given_label", "predicted_label", "id") for name in NAMES[ours]]
    with matrix_io.reading(path):
        table = table_io.read_table_file(path, text).to_pandas()
    for name in ("medoids", "medoid_labels"):  # lists, which a CSV cannot hold
        if name in table and not all(hasattr(row, "__len__") and not isinstance(row, str) for row in table[name]):
            table = table.drop(columns=name)
    return table


def _file_of(spec: str) -> Path:
    """The file of `file.csv:column` or `file.npz:key`."""
    head, colon, _ = spec.rpartition(":")
    return Path(head) if colon and head and not Path(spec).exists() else Path(spec)


def _from_files(
    probs: str | None, features: str | None, labels: str | None, progress: bool
) -> tuple[pd.DataFrame, list[Any], tuple[NDArray[np.floating], str]]:
    """The table and the classes of an audit without training, and what the map is made from."""
    if labels is None:
        raise InputError(
            f"--{'probs' if probs is not None else 'features'} needs labels: give --labels FILE", code="options-missing"
        )
    if probs is not None and features is not None:
        raise InputError("--probs and --features are both given: give one of them", code="options-exclude")

    from crust.audit import find_label_issues
    from crust.audit.audit_tables import classes_of
    from crust.data.labels import label_values
    from crust.data.matrix_io import read_matrix

    values, where = label_values(labels)
    given = _read_probabilities(probs) if probs is not None else read_matrix(str(features))
    if len(values) != len(given):
        other = Path(str(probs or features)).name
        raise InputError(
            f"{where} holds {len(values)} labels, but {other} has {len(given)} rows: give one label a row",
            code="labels-length",
        )
    if probs is not None:
        table = find_label_issues(_as_column_names(values, labels, given), given)
    else:
        table = find_label_issues(values, features=given, progress=progress)
    return table, classes_of(table), (np.asarray(given, np.float64), PROBABLE if probs is not None else "features")


def _as_column_names(values: Any, labels: str, given: Any) -> Any:
    """The labels as text where only so they are the names of the columns: true and 01 are no numbers then."""
    from crust.data.labels import label_values

    names = {str(name) for name in getattr(given, "columns", ())}
    if not names or {str(value) for value in values.tolist()} <= names:
        return values
    texts, _ = label_values(labels, text=True)
    return texts if {str(text) for text in texts.tolist()} <= names else values


def _read_probabilities(spec: str) -> Any:
    """The matrix; of a table with its column names, which are those of the classes."""
    from crust.data import matrix_io, table_io

    matrix = matrix_io.read_matrix(spec)
    path = matrix_io.split_spec(spec)[0]
    if path.suffix.lower() not in matrix_io.TABLES:
        return matrix
    import pandas as pd

    with matrix_io.reading(path):
        table = table_io.read_table_file(path)
        names = [name for name in table.column_names if name and table_io.is_numeric(table.schema.field(name).type)]
    return pd.DataFrame(matrix, columns=names) if len(names) == matrix.shape[1] else matrix


def late_features(run: RunFolder, data: str | None = None, data_dir: str | None = None) -> NDArray[np.float32]:
    """What the last layer of a run's network gets to see of each training example, in one pass.

    An `InputError` where the data is not there, or where the network is one of the user's own.
    """
    import torch

    from crust._util.torch_modules import evaluate_batches, last_linear
    from crust.data import batches
    from crust.runs.data import training_examples
    from crust.runs.result import load

    model = load(run.path).model
    reading = logging.getLogger("crust.data")
    before = reading.level
    reading.setLevel(logging.ERROR)  # what it has to say of the data was said before
    try:
        examples = training_examples(run, data, data_dir)
    finally:
        reading.setLevel(before)
    sample = next(batches(examples, np.arange(min(2, len(examples))), 2))[0]
    _, layer = last_linear(model, sample)
    found: list[NDArray[np.float32]] = []

    def keep(_module: Any, inputs: tuple[torch.Tensor, ...]) -> None:
        found.append(inputs[0].detach().float().flatten(1).cpu().numpy())

    handle = layer.register_forward_pre_hook(keep)
    try:
        evaluate_batches(model, batches(examples, None, 256), lambda x, index, logits: None)
    finally:
        handle.remove()
    return np.concatenate(found)

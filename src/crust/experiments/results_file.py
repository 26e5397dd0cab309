"""Results: one line of JSON a run, in files that can be concatenated, merged and read by eye."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Mapping
from io import RawIOBase
from pathlib import Path
from typing import Annotated, Any

from filelock import FileLock
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from crust._util.atomic_write import remove_drafts, write_atomic
from crust._util.foreign_files import parse_json, read_file
from crust.errors import InputError
from crust.experiments.specs import same_spec, with_present_names

BEGIN = '{"key":'  # of every line
log = logging.getLogger("crust")
_warned: set[tuple[Path, int]] = set()
Number = Annotated[float, Field(allow_inf_nan=False)]
KINDS = {"string": "text", "dict": "an object", "model": "an object", "int": "a number", "float": "a number"}
KINDS["bool"] = "true or false"
NULLABLE = ("accuracy.", "spec.limit", "audit")  # how the names of those begin that may be null


class _Checked(BaseModel):
    """Whoever reads a line may rely on these fields; it may have more."""

    model_config = ConfigDict(strict=True)


class _ExperimentFields(_Checked):
    epochs: int
    seed: int


class _SpecFields(_Checked):
    data: str
    limit: int | None
    labels: str
    model: str
    augment: bool
    validation: Number
    method: str
    experiment: _ExperimentFields
    settings: dict[str, Any]


class _CostFields(_Checked):
    forward: Number
    backward: Number
    seconds: dict[str, Number]


class ResultLine(_Checked):
    """What a result line must have."""

    key: str
    spec: _SpecFields
    accuracy: dict[str, Number | None]
    cost: _CostFields = Field(default_factory=lambda: _CostFields(forward=0, backward=0, seconds={}))
    curves: dict[str, Any] = {}
    facts: dict[str, Any] = {}
    tests: dict[str, Any] = {}
    audit: dict[str, Any] | None = None


def schema_error(line: Any) -> str | None:
    """What is wrong with a line, in a few words; None where it is a result.

    Example:
        >>> schema_error({"key": "x"}), schema_error([1])
        ('it has no spec', 'it is no object')
    """
    try:
        ResultLine.model_validate(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    else:
        return None
    name, kind = ".".join(map(str, first["loc"])), first["type"]
    if not name:
        return "it is no object"
    if kind == "missing":
        return f"it has no {name}"
    if kind == "finite_number":
        return f"its {name} is {first['input']}, which is no number"
    null = " or null" if name.startswith(NULLABLE) else ""
    return f"its {name} is not {KINDS.get(kind.split('_')[0], 'what it should be')}{null}"


def read_results(path: str | Path, *, named: bool = False) -> list[dict[str, Any]]:
    """All lines of a file, or of all .jsonl files of a folder; the last one of a key counts.

    A line that was cut off is passed over with a warning, once, and costs no other line.

    Args:
        path: of the file, or of the folder.
        named: somebody says that the file holds results: one that has text and none of them is refused.

    Example:
        >>> import tempfile
        >>> from crust.experiments import make
        >>> folder = tempfile.mkdtemp()
        >>> for accuracy in (0.1, 0.2):
        ...     line = {"key": "x", "spec": make("erm", "true"), "accuracy": {"last": accuracy}}
        ...     append(Path(folder) / "a.jsonl", line)
        >>> [line["accuracy"] for line in read_results(folder)]
        [{'last': 0.2}]
    """
    place = Path(path)
    files = sorted(place.glob("*.jsonl")) if place.is_dir() else [place] if place.exists() else []
    found: dict[str, dict[str, Any]] = {}
    for file in files:
        cut: list[int] = []
        before = len(found)
        for number, text in enumerate(_file_text(file).split("\n"), 1):
            if not text.strip():
                continue
            some, whole = _parse(text, f"line {number} of {file}")
            found |= {line["key"]: with_present_names(line) for line in some}
            if not whole:
                cut.append(number)
        if named and file == place and cut and len(found) == before:
            raise InputError(
                f"{file} holds no results: name a .jsonl file of them, or a folder of such files", code="no-results"
            )
        _warn(file, cut)
    return list(found.values())


def _file_text(file: Path) -> str:
    try:
        return read_file(file).decode("utf-8", "replace")
    except OSError as error:
        raise InputError(
            f"cannot read the results {file}: {(error.strerror or str(error)).lower()}", code="cannot-read"
        ) from None


def _parse(text: str, where: str) -> tuple[list[dict[str, Any]], bool]:
    """The results of a line, and whether nothing was cut off."""
    try:
        found, whole = [parse_json(text)], True
    except ValueError:
        found, whole = _whole_objects(text)
    for line in found:
        wrong = schema_error(line)
        if wrong is not None:
            raise InputError(f"{where} is no result, {wrong}: take it out, or restore the file", code="bad-result")
    return found, whole


def _whole_objects(text: str) -> tuple[list[Any], bool]:
    """What is whole in a line that is not: what was written behind a cut, or files put together without a line end."""
    found: list[Any] = []
    whole, end = True, 0
    while end < len(text):
        start = text.find(BEGIN, end)
        whole = whole and not text[end : start if start >= 0 else None].strip()
        if start < 0:
            break
        try:
            one, end = json.JSONDecoder().raw_decode(text, start)
            found.append(one)
        except (ValueError, RecursionError):
            whole, end = False, start + 1
    return found, whole


def _warn(file: Path, cut: Iterable[int]) -> None:
    """Files are read again for every run, and one word about a line is enough."""
    for number in cut:
        if (file.absolute(), number) not in _warned:
            _warned.add((file.absolute(), number))
            log.warning("line %d of %s was cut off and is passed over", number, file)


def find(lines: Iterable[dict[str, Any]], spec: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a specification, or None.

    Example:
        >>> from crust.experiments import make
        >>> lines = [{"key": "x", "spec": make("erm", "true")}]
        >>> find(lines, make("erm", "true"))["key"], find(lines, make("erm", "true", seed=1))
        ('x', None)
    """
    return next((line for line in lines if same_spec(line["spec"], spec)), None)


def append(path: str | Path, line: dict[str, Any]) -> None:
    """Add a line, also where several processes write the same file, or somebody adds lines to it by other means.

    What is there is never written again: a process that is killed here leaves one line that is cut off, at worst.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "results.jsonl"
        >>> append(file, {"key": "x"})
        >>> file.read_text()
        '{"key": "x"}\\n'
    """
    file, text = Path(path), json.dumps(line).encode() + b"\n"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(file.with_name(f".{file.name}.lock"))
        with lock.acquire(poll_interval=0.01), file.open("ab+", buffering=0) as there:
            text = text if _ends(there) else b"\n" + text
            while text:  # once, unless the disk is full
                text = text[there.write(text) :]
            os.fsync(there.fileno())
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(
            f"{file} cannot be added to ({reason}): see to that and start again, what is finished is kept",
            code="cannot-write",
        ) from None


def write_pages(folder: str | Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write what follows from results, one process at a time, without what one that was killed has left.

    Example:
        >>> import tempfile
        >>> [path.name for path in write_pages(tempfile.mkdtemp(), {"grid.md": b"# Grid"})]
        ['grid.md']
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    with FileLock(place / ".pages.lock"):
        for name, content in files.items():
            remove_drafts(place / name)
            write_atomic(place / name, content)
    return [place / name for name in files]


def _ends(file: RawIOBase) -> bool:
    """Whether the last line is whole; a new one begins behind it."""
    size = file.seek(0, os.SEEK_END)
    if size == 0:
        return True
    file.seek(size - 1)
    return file.read(1) == b"\n"

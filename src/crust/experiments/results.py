"""Results: one line of JSON a run, in files that can be concatenated, merged and read by eye."""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from crust.errors import InputError
from crust.experiments.specs import same
from crust.files import write_whole

BEGIN = '{"key":'  # of every line
log = logging.getLogger("crust")


def read(path: str | Path) -> list[dict[str, Any]]:
    """All lines of a file, or of all .jsonl files of a folder; the last one of a key counts.

    A line that was cut off is passed over with a warning, and costs no other line.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> for accuracy in (0.1, 0.2):
        ...     append(Path(folder) / "a.jsonl", {"key": "x", "accuracy": accuracy})
        >>> read(folder)
        [{'key': 'x', 'accuracy': 0.2}]
    """
    place = Path(path)
    files = sorted(place.glob("*.jsonl")) if place.is_dir() else [place] if place.exists() else []
    found: dict[str, dict[str, Any]] = {}
    for file in files:
        for number, text in enumerate(_text(file).split("\n"), 1):
            if not text.strip():
                continue
            line = _parse(text, f"line {number} of {file}")
            if line is not None:
                found[line["key"]] = line
    return list(found.values())


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"cannot read the results {file}: {(error.strerror or str(error)).lower()}") from None


def _parse(text: str, where: str) -> dict[str, Any] | None:
    """A result; None where it was cut off. What was written right behind the cut is found again."""
    try:
        line = json.loads(text)
    except ValueError:
        start = text.find(BEGIN, 1)
        while start >= 0:
            with contextlib.suppress(ValueError):
                line = json.loads(text[start:])
                break
            start = text.find(BEGIN, start + 1)
        log.warning("%s was cut off and is passed over", where)
        if start < 0:
            return None
    if not isinstance(line, dict) or not isinstance(line.get("key"), str):
        raise InputError(f"{where} is no result: take it out, or restore the file") from None
    return line


def find(lines: Iterable[dict[str, Any]], spec: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a specification, or None.

    Example:
        >>> from crust.experiments import make
        >>> lines = [{"key": "x", "spec": make("erm", "true")}]
        >>> find(lines, make("erm", "true"))["key"], find(lines, make("erm", "true", seed=1))
        ('x', None)
    """
    return next((line for line in lines if same(line["spec"], spec)), None)


def append(path: str | Path, line: dict[str, Any]) -> None:
    """Add a line, whole or not at all, also where several processes write the same file.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "results.jsonl"
        >>> append(file, {"key": "x"})
        >>> file.read_text()
        '{"key": "x"}\\n'
    """
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.with_name(f".{file.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = file.read_bytes() if file.exists() else b""
        if before and not before.endswith(b"\n"):
            before += b"\n"
        write_whole(file, before + json.dumps(line).encode() + b"\n")

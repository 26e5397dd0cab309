"""Documents and files that anybody may give: one rule each, and nothing is waited for. It is light to import."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

from crust.errors import InputError

LONGEST = 200  # characters of foreign text that a message repeats


def parse_yaml(text: str | bytes) -> Any:
    """A YAML document, or a ValueError in one line: nesting, dates and integers can break the parser too."""
    import yaml

    try:
        return yaml.safe_load(text.decode() if isinstance(text, bytes) else text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" in line {mark.line + 1}"
        raise ValueError(f"{getattr(error, 'problem', None) or 'it cannot be read'}{where}") from None
    except (RecursionError, OverflowError):
        raise ValueError("it is nested too deeply") from None


def parse_json(text: str | bytes) -> Any:
    """A JSON document, or a ValueError."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def path_of(value: Any, what: str = "the path") -> Path:
    """A path that the system can be asked for.

    Example:
        >>> path_of("a.csv").name
        'a.csv'
        >>> path_of(7)
        Traceback (most recent call last):
        ...
        crust.errors.InputError: the path is 7: give the name of a file or a folder
    """
    name = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    if not isinstance(name, str) or not name or "\0" in name:
        raise InputError(f"{what} is {value!r:.{LONGEST}}: give the name of a file or a folder", code="bad-path")
    path = Path(name)
    try:
        os.fsencode(path)
        path.stat()
    except (FileNotFoundError, NotADirectoryError):  # whoever reads it says so
        pass
    except (OSError, ValueError) as error:  # too long, in a loop of links, behind a folder that is closed
        told = "it is no text" if isinstance(error, UnicodeError) else str(error)
        reason = (getattr(error, "strerror", None) or told).lower()
        raise InputError(f"{what} {path!s:.{LONGEST}} cannot be used: {reason}", code="bad-path") from None
    return path


def read_file(path: Path) -> bytes:
    """The content of a small file; pipes and devices are an OSError, for they would be waited for."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is no file")
    return path.read_bytes()


def check_regular(path: Path) -> None:
    """Refuse pipes and devices, which might never end, and would be waited for."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputError(f"{path} is a pipe or a device: write its content to a file first", code="not-a-file")

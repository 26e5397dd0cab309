"""One small tree of errors, and the helpers that raise them.

Every error a user can cause is a `CrustError` whose message is one sentence: what is wrong, where, what to do.
"""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Iterable
from types import ModuleType

LONGEST = 600  # characters of a message


class CrustError(Exception):
    """The root of all errors that crust raises on purpose.

    Args:
        message: one sentence: what is wrong, where, what to do.
        code: what is wrong, for programs: it stays the same where the sentence is put in better words.

    Example:
        >>> CrustError("the disk is full: free some room", code="disk-full").code
        'disk-full'
    """

    code = "error"

    def __init__(self, message: str = "", *, code: str | None = None):
        super().__init__(one_line(message))
        if code is not None:
            self.code = code


class InputError(CrustError, ValueError):
    """Wrong input: the message says what is wrong, where, and what to do.

    Example:
        >>> raise InputError("k is 0: give a count of at least 1, or a share above 0.0")
        Traceback (most recent call last):
        ...
        crust.errors.InputError: k is 0: give a count of at least 1, or a share above 0.0
    """


class MissingPackage(CrustError, ImportError):
    """An optional package is not installed: the message has the command that installs it.

    Example:
        >>> issubclass(MissingPackage, ImportError), MissingPackage("ray is not installed").code
        (True, 'missing-package')
    """

    code = "missing-package"

    def __init__(self, message: str = "", *, code: str | None = None, name: str | None = None):
        super().__init__(message, code=code)
        self.name = name


def one_line(text: str) -> str:
    """A message in one line that any terminal can show, whatever names from data are in it; long ones lose the middle.

    Example:
        >>> one_line("no class 'a\\nb\\x1b[2J'"), len(one_line("a" * 10_000))
        ("no class 'a\\\\nb\\\\x1b[2J'", 603)
    """
    if not text.isprintable():
        text = "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"


def require(package: str, extra: str) -> ModuleType:
    """Import an optional package, or say exactly how to install it.

    Args:
        package: the module to import, such as `"ray"`.
        extra: the extra of `crust-learn` that brings it.

    Returns:
        The imported module.

    Example:
        >>> require("json", extra="ray").dumps([1])
        '[1]'
        >>> require("no_such_package", extra="ray")
        Traceback (most recent call last):
        ...
        crust.errors.MissingPackage: no_such_package is not installed: run pip install 'crust-learn[ray]'
    """
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        # A package that is there but lacks a dependency of its own needs another message than ours.
        if error.name is None or error.name.split(".")[0] != package.split(".")[0]:
            raise
        raise MissingPackage(
            f"{package} is not installed: run pip install 'crust-learn[{extra}]'", name=package
        ) from None


def choices(value: object, valid: Iterable[str], what: str) -> str:
    """Return `value` where it is one of `valid`; else raise, with the valid ones and the nearest.

    Args:
        value: what the user gave.
        valid: the accepted names, in the order they are shown.
        what: what is being chosen, such as `"algorithm"`.

    Returns:
        The value, unchanged.

    Example:
        >>> choices("lazy", ["greedy", "lazy"], "algorithm")
        'lazy'
        >>> choices("gredy", ["greedy", "lazy"], "algorithm")
        Traceback (most recent call last):
        ...
        crust.errors.InputError: unknown algorithm 'gredy': use one of greedy, lazy; did you mean 'greedy'?
    """
    names = list(valid)
    if isinstance(value, str) and value in names:
        return value
    nearest = difflib.get_close_matches(str(value).lower(), names, n=1, cutoff=0.5)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    kind = re.split(" of | in ", what)[0].strip().replace(" ", "-")
    shown = ", ".join(names[:20]) + (f", … ({len(names)} in all)" if len(names) > 20 else "")
    raise InputError(f"unknown {what} {value!r}: use one of {shown}{hint}", code=f"unknown-{kind}")

"""What became of a piece of work: done, or refused in one clear sentence. Anything else is an AssertionError."""

from __future__ import annotations

import re
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from crust.errors import CrustError

SECONDS = 60  # in which even a busy machine answers: what takes longer waits for something
LONGEST = 700  # characters of a sentence
# Words of other people's code, which tell a user nothing.
INTERNAL = re.compile(
    r"Traceback|allow_pickle|<class |object at 0x|numpy\.|dtype\('|torch\.(?!bfloat16|optim)[a-z]|Arrow[A-Z]|Errno|"
    r"size of tensor|\w+Error:|pandas\.|DataLoader worker"
)


class TooLong(BaseException):
    """The work has not ended in time."""


@contextmanager
def in_time(seconds: int = SECONDS) -> Iterator[None]:
    """The block is broken off after so many seconds."""

    def ring(*_: object) -> None:
        raise TooLong(f"not done after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def check_sentence(text: str, theirs: bool = False) -> None:
    """One line that says what is wrong, without words of other people's code, but where it is theirs by right."""
    assert text.strip(), "nothing is said"
    assert "\n" not in text.strip(), f"several lines: {text}"
    assert len(text) <= LONGEST, f"{len(text)} characters: {text[:300]}…"
    assert theirs or not INTERNAL.search(text), f"{INTERNAL.search(text)[0]!r} in: {text}"
    text.encode()  # it can be written


def outcome(work: Callable[[], object]) -> str:
    """The code of the error by which a call from Python was refused, or `done`; no warning leaks from it.

    Warnings are errors in tests: one that leaks is raised out of here.
    """
    refusal: CrustError | None = None
    try:
        with in_time(), warnings.catch_warnings():
            warnings.simplefilter("error")
            work()
    except CrustError as error:
        refusal = error
    if refusal is None:
        return "done"
    check_sentence(str(refusal), theirs=refusal.code in ("sklearn-check", "cannot-read"))
    assert refusal.code not in ("error", None), f"no code: {refusal}"
    return refusal.code


def said_of(words: list[str], capsys) -> tuple[str, str]:
    """`done`, or `refused`, and what a command has said on stderr; its exit code fits that."""
    from crust.cli import main

    capsys.readouterr()
    code: object = None
    with in_time(), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            main(words)
        except SystemExit as end:
            code = end.code
    shown = capsys.readouterr().err
    if code == 0:
        assert "Traceback" not in shown, shown
        assert "Warning" not in shown, shown
        return "done", shown
    assert code == 2, f"exit code {code}: {shown}"
    lines = [line for line in shown.splitlines() if line.strip()]
    assert lines[-1:], "nothing is said"
    check_sentence(lines[-1])
    assert len(lines) == 1, shown
    return "refused", shown

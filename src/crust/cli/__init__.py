"""The command `crust`: parse, call the library, print. Errors become one line, never a traceback."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from typing import NoReturn

from crust.errors import CrustError, one_line

BUG = 70  # EX_SOFTWARE of sysexits.h
REPORT = "report it with that file and what you did, as an issue of the project"
# What to do when memory is used up, by command.
MEMORY = {
    "select": "give a smaller --memory-limit, or use --algorithm greedi",
    "train": "give a smaller --batch-size, --image-size or --limit",
}


def main(args: list[str] | None = None) -> NoReturn:
    """Run the command line and exit: 0 done, 2 wrong input, 70 an error in crust, 130 stopped by Ctrl-C.

    Args:
        args: the words after `crust`; None takes those of this process.

    Example:
        >>> main(["--version"])
        Traceback (most recent call last):
        ...
        SystemExit: 0
    """
    from crust._util.malloc import keep_freed
    from crust.cli import signals

    words = sys.argv[1:] if args is None else args
    ends = words.index("--") if "--" in words else len(words)
    debug = "--debug" in words[:ends]
    words = [word for word in words[:ends] if word != "--debug"] + words[ends:]
    if args is None:  # the process is ours
        keep_freed()
        signals.listen()
    try:
        code = _run(words)
    except (Exception, KeyboardInterrupt) as error:
        signals.be_deaf()
        if debug:
            traceback.print_exc()
        if isinstance(error, BrokenPipeError):  # whoever reads what we print has gone, as in `crust methods | head`
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(0)
        _fail(*_sentence(error, words))
    sys.exit(code if isinstance(code, int) else 0)


def _run(words: list[str]) -> object:
    from crust.cli.app import app

    code = app(args=words or ["--help"], prog_name="crust", standalone_mode=False)
    if code == 130:
        raise KeyboardInterrupt
    return code


def _sentence(error: BaseException, words: list[str]) -> tuple[str, int]:
    """What is said of an error, and the exit code."""
    from crust.cli import signals
    from crust.cli.formatting import StoppedByUser

    if isinstance(error, StoppedByUser):
        return str(error), signals.exit_code()
    if isinstance(error, KeyboardInterrupt):
        return "stopped, nothing more was written", signals.exit_code()
    if isinstance(error, CrustError):
        return str(error), 2
    if is_out_of_memory(error):
        hint = MEMORY.get(words[0] if words else "", "take less data, or a machine with more")
        return f"out of memory: {hint}", 2
    if isinstance(error, OSError) and error.filename is not None:  # the system's word on a file, not a fault of ours
        return f"cannot use {error.filename}: {(error.strerror or str(error)).lower()}", 2
    # Wrong options. Newer versions of typer bring a click of their own, so the class is known by its method.
    if hasattr(error, "format_message"):
        from crust.cli.near_misses import wrong_option

        return wrong_option(error), 2
    kind = f"{type(error).__name__}{': ' * bool(str(error))}{' '.join(str(error).split())[:200]}"
    return f"an error in crust, not in what you gave ({kind}); {_kept_traceback(words)}", BUG


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory is used up; torch says so in words alone.

    Example:
        >>> is_out_of_memory(RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")), is_out_of_memory(OSError())
        (True, False)
    """
    words = ("out of memory", "not enough memory", "can't allocate memory", "std::bad_alloc")
    told = isinstance(error, RuntimeError) and any(each in str(error).lower() for each in words)
    return told or isinstance(error, MemoryError)


def _kept_traceback(words: list[str]) -> str:
    """Leave the traceback in a file for its owner alone, and say where."""
    import platform
    import shlex
    import tempfile

    from crust import __version__

    about = f"crust {__version__}, Python {platform.python_version()}, {platform.platform()}"
    text = f"{shlex.join(['crust', *words])}\n{about}\n\n{traceback.format_exc()}"
    try:
        number, path = tempfile.mkstemp(prefix="crust-error-", suffix=".txt")
        with os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError:  # no room for it anywhere
        return "--debug shows the traceback"
    return f"the traceback is in {path} (--debug shows it): {REPORT}"


def _fail(message: str, code: int) -> NoReturn:
    with contextlib.suppress(OSError):  # the terminal may be closed
        sys.stderr.write(f"crust: {one_line(message)}\n")
    sys.exit(code)

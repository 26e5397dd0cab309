"""The command `crust`: parse, call the library, print. Errors become one line, never a traceback."""

from __future__ import annotations

import sys
from typing import NoReturn

from crust.errors import CrustError


def main(args: list[str] | None = None) -> NoReturn:
    """Run the command line and exit: 0 done, 2 wrong input, 130 stopped by Ctrl-C.

    Args:
        args: the words after `crust`; None takes those of this process.

    Example:
        >>> main(["--version"])
        Traceback (most recent call last):
        ...
        SystemExit: 0
    """
    from crust._util.malloc import keep_freed
    from crust.cli.app import app
    from crust.cli.formatting import StoppedByUser

    words = sys.argv[1:] if args is None else args
    if args is None:
        keep_freed()  # the process is ours
    try:
        code = app(args=words or ["--help"], prog_name="crust", standalone_mode=False)
    except CrustError as error:
        _fail(str(error), 2)
    except StoppedByUser as stopped:
        _fail(str(stopped), 130)
    except KeyboardInterrupt:
        code = 130
    except MemoryError:
        _fail("out of memory: give a smaller --memory-limit, or use --algorithm greedi", 2)
    except Exception as error:
        # Wrong options. Newer versions of typer bring a click of their own, so the class is known by its method.
        if not hasattr(error, "format_message"):
            raise
        from crust.cli.near_misses import wrong_option

        _fail(wrong_option(error), 2)
    if code == 130:
        _fail("stopped, nothing more was written", 130)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int) -> NoReturn:
    sys.stderr.write(f"crust: {message}\n")
    sys.exit(code)

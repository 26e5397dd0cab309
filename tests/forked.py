"""Processes of their own without the seconds that importing costs: forked from a server that has imported everything.

They begin with no state but the modules. What must hold from a cold start (lazy imports, the command itself) is tested
with `python -m crust`: in tests/test_public.py, in tests/cli, and in the slow tests for every command of the documents.
"""

import io
import os
import sys
import tempfile
import traceback
from multiprocessing import get_context
from pathlib import Path
from subprocess import CompletedProcess

CONTEXT = get_context("forkserver")
CONTEXT.set_forkserver_preload(
    ["crust.cli.app", "crust.fitting", "crust.verification", "crust.report.page", "crust.review.server",
     "crust.theory.diagnose", "crust.experiments", "crust.experiments.paper", "crust.sklearn", "accelerate.state",
     "sklearn.metrics", "sklearn.datasets", "matplotlib.figure", "pyarrow.dataset", "torch._dynamo", "rich.console",
     "tests.training.common"]
)  # fmt: skip


def run_crust(words: list[str]) -> CompletedProcess:
    """`crust WORDS` in the present folder, as `subprocess.run` with `capture_output` and `text` has it."""
    return _run(_main, words)


def run_script(script: str) -> CompletedProcess:
    """`python -c SCRIPT` in the present folder."""
    return _run(_script, script)


def _run(target, given) -> CompletedProcess:
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        process = CONTEXT.Process(target=_child, args=(target, given, Path.cwd(), dict(os.environ), out, err))
        process.start()
        process.join()
        texts = [path.read_text(encoding="utf-8") if path.exists() else "" for path in (out, err)]
    return CompletedProcess(given, process.exitcode, *texts)


def _child(target, given, folder, environment, out, err) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for stream, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream)
    sys.stdin, sys.stdout, sys.stderr = io.StringIO(), open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    try:
        target(given)
    except SystemExit:
        raise
    except BaseException:
        traceback.print_exc()
        sys.exit(1)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _main(words: list[str]) -> None:
    from crust._util.malloc import keep_freed
    from crust.cli import main

    keep_freed()
    sys.argv = ["crust", *words]
    main(words)


def _script(script: str) -> None:
    exec(compile(script, "<script>", "exec"), {"__name__": "__main__"})

"""What the README shows below its commands: run anew, on the data of docs/quickstart/tables.md.

python tools/readme_outputs.py

A block after `<!-- shown: N lines -->` has commands and, below each, at most N lines of what it prints.
"""

import contextlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"(<!-- shown: (\d+) lines -->\n<!-- not run -->\n```console\n)(.*?)(```)", re.DOTALL)


def shown(command: str, most: int) -> list[str]:
    """The first lines of what a command prints, without blank ones."""
    words = [sys.executable, "-m", *shlex.split(command)]
    here = {**os.environ, "COLUMNS": "92", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(words, env=here, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    lines = [line.rstrip() for line in done.stdout.splitlines() if line.strip()]
    return lines if len(lines) <= most else [*lines[:most], "…"]


def renewed(match: re.Match[str]) -> str:
    """A block with what its commands print today."""
    start, most, inside, end = match.groups()
    commands = [line[2:] for line in inside.splitlines() if line.startswith("$ crust ")]
    parts = ["\n".join([f"$ {command}", *shown(command, int(most))]) for command in commands]
    return start + "\n\n".join(parts) + "\n" + end


def todays(text: str) -> str:
    """The README with what its commands print today."""
    quickstart = (ROOT / "docs" / "quickstart" / "tables.md").read_text(encoding="utf-8")
    data = re.search(r"```python\n(.*?)```", quickstart, re.DOTALL)
    assert data is not None
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        exec(data[1], {})
        return BLOCK.sub(renewed, text)


def main() -> None:
    page = ROOT / "README.md"
    page.write_text(todays(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()

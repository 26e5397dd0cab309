"""What the documents show works: Python blocks and `crust ...` lines are run, in order, in a folder of their own.

A block is left out with the comment <!-- not run --> on a line before it.
"""

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from tests.forked import run_crust

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted(path for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
SHELL = ("console", "bash", "sh", "shell")


class Block(NamedTuple):
    language: str
    code: str
    line: int


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a document that are to be run."""
    found = []
    for match in re.finditer(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", text, re.MULTILINE | re.DOTALL):
        before = text[: match.start()].rstrip().splitlines()
        if before and before[-1].strip() == "<!-- not run -->":
            continue
        code = re.sub(rf"^{match[1]}", "", match[3], flags=re.MULTILINE)
        found.append(Block(match[2], code, text[: match.start()].count("\n") + 2))
    return found


def crust_lines(code: str) -> list[str]:
    """The lines of a shell block that call crust; a line that ends in a backslash goes on."""
    lines = re.sub(r"\s*\\\n\s*", " ", code).splitlines()
    return [line for line in (re.sub(r"^\$ ", "", line.strip()) for line in lines) if line.startswith("crust ")]


def run_python(block: Block, names: dict, where: str) -> None:
    if ">>>" in block.code:
        flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
        test = doctest.DocTestParser().get_doctest(block.code, names, where, where, block.line)
        test.globs = names  # a later block may use what this one made
        shown = []
        doctest.DocTestRunner(optionflags=flags).run(test, out=shown.append, clear_globs=False)
        assert not shown, "".join(shown)
    else:
        exec(compile("\n" * (block.line - 1) + block.code, where, "exec"), names)


def run_cold(words: list[str]) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "crust", *words], capture_output=True, text=True)


def commands(document: Path) -> list[str]:
    some = [block.code for block in blocks(document.read_text(encoding="utf-8")) if block.language in SHELL]
    return [line for code in some for line in crust_lines(code)]


WAYS = [pytest.param(document, run_crust, id=str(document.relative_to(ROOT))) for document in DOCUMENTS]
WAYS += [
    pytest.param(document, run_cold, id=f"{document.relative_to(ROOT)}, from a cold start", marks=pytest.mark.slow)
    for document in DOCUMENTS
    if commands(document)
]


@pytest.mark.parametrize(("document", "run"), WAYS)
def test_documents_work(document, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.save("features.npy", rng.normal(size=(500, 8)).astype(np.float32))  # the files that examples read
    np.save("labels.npy", rng.integers(5, size=500))
    names = {"__name__": "__main__"}
    for block in blocks(document.read_text(encoding="utf-8")):
        if block.language in ("python", "py", "pycon"):
            run_python(block, names, f"{document.name}:{block.line}")
        elif block.language in SHELL:
            for line in crust_lines(block.code):
                done = run(shlex.split(line, comments=True)[1:])
                assert done.returncode == 0, f"{document.name}:{block.line}: {line}\n{done.stderr}"


def test_what_the_readme_does_not_run_is_run_elsewhere():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = {line for block in re.findall(r"```console\n(.*?)```", readme, re.DOTALL) for line in crust_lines(block)}
    texts = [path.read_text(encoding="utf-8") for path in DOCUMENTS]
    run = {
        re.sub(r" --epochs \d+", "", line) for text in texts for one in blocks(text) for line in crust_lines(one.code)
    }
    by_hand = {"crust review runs/photos", "crust apply runs/photos --move"}  # somebody must decide; see tests/browser
    assert not shown - run - by_hand


def test_blocks_are_found():
    text = "a\n```python\nx = 1\n```\n<!-- not run -->\n```python\n1 / 0\n```\n"
    text += "- b\n  ```console\n  $ crust --help\n  ```\n"
    assert blocks(text) == [Block("python", "x = 1\n", 3), Block("console", "$ crust --help\n", 11)]
    assert crust_lines("$ crust a \\\n    b\nmake demo\ncrust c\n") == ["crust a b", "crust c"]


def test_a_wrong_block_is_noticed():
    with pytest.raises(AssertionError, match="Got"):
        run_python(Block("python", ">>> 1 + 1\n3\n", 1), {}, "here")
    with pytest.raises(ZeroDivisionError):
        run_python(Block("python", "1 / 0\n", 1), {}, "here")
    names = {}
    run_python(Block("python", ">>> a = 1\n", 1), names, "here")
    run_python(Block("python", "b = a + 1\n", 1), names, "here")
    assert names["b"] == 2

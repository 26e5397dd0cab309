"""For all tests of the command line."""

import json
import re
from pathlib import Path

import pytest

from crust.cli import main
from crust.review import Change, Store, run_key
from crust.runs.folder import RunFolder

FAST = "--model mlp --method erm --epochs 1 --batch-size 32 -q"


def call(words):
    """The exit code of `crust WORDS`; words with spaces in them are given as a list."""
    with pytest.raises(SystemExit) as caught:
        main(words.split() if isinstance(words, str) else words)
    return caught.value.code


def decided(run, **changes):
    """A review in which some labels were changed: by index, to the class of a name."""
    table, classes = RunFolder(run).audit()
    store = Store(f"{run}/review.sqlite", run_key(table, classes))
    names = [str(name) for name in classes]
    wanted = [Change(int(key[1:]), 0, "relabel", names.index(value)) for key, value in changes.items()]
    store.decide(wanted, who="first")
    store.close()


def packed(path):
    text = Path(path).read_text(encoding="utf-8")
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])


def said(capsys, words, pattern):
    """Exit code 2 and one line, which says this."""
    assert call(words) == 2
    shown = capsys.readouterr().err
    assert len(shown.splitlines()) == 1, shown
    assert re.search(pattern, shown), shown

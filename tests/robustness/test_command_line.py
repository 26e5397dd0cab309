"""Files and words of the command line as nobody should give them: done, or one sentence and exit code 2.

What trains a network to the end is slow; what is refused is quick.
"""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.cli.common import call
from tests.robustness import odd_files, odd_words
from tests.robustness.odd_files import text
from tests.robustness.odd_values import DONE, X, Y
from tests.robustness.outcomes import said_of

TRAIN = odd_words.TRAIN

# Door: the files, how each is named, the command, and what is another way there (None: not asked).
UNLABELLED = dict.fromkeys(("one row", "one class", "no label column", "an empty label", "a blank label"), DONE)
GROUPS = {"indexed.csv": False}
DOORS = {
    "train a CSV": (odd_files.CSV, "{i}.csv", "train {file} {train} -o r{i}", {}),
    "train Parquet": (odd_files.PARQUET, "{i}.parquet", "train {file} {train} -o r{i}", {}),
    "train npz": (odd_files.NPZ, "{i}.npz", "train {file} {train} -o r{i}", {}),
    "select": (odd_files.VECTORS, "{name}", "select {file} -k 2 -q", {}),
    "audit --features": (
        odd_files.VECTORS,
        "{name}",
        "audit --features {file} --labels ../y.npy -q",
        {"right.csv": False, "longdouble.npy": True},
    ),
    "train --labels": (odd_files.LABEL_FILES, "{name}", "train ../d.npz --labels {file} {train} -o r{i}", {}),
    "train --true-labels": (odd_files.LABEL_FILES, "{name}", "train ../d.npz --true-labels {file} {train} -o r{i}", {}),
    "audit --labels": (odd_files.LABEL_FILES, "{name}", "audit --features ../x.npy --labels {file} -q", GROUPS),
    "select --groups": (odd_files.LABEL_FILES, "{name}", "select ../x.npy -k 3 --groups {file} -q", GROUPS),
    "train --recipe": (odd_files.RECIPES, "{i}.yaml", "train ../d.npz --recipe {file} -q -o r{i}", {}),
    "reproduce --grid": (
        {name: (text(one), False) for name, one in odd_files.GRIDS.items()},
        "{i}.yaml",
        "reproduce --grid {file} -o g{i} -q --dry-run",
        {},
    ),
    "reproduce --results": (
        {name: (text(one), name == "empty") for name, one in odd_files.RESULT_LINES.items()},
        "{i}.jsonl",
        "reproduce table1 --scale smoke --results {file} -o g{i} -q --dry-run",
        {},
    ),
    "apply": (
        {name: (text(one), right) for name, (one, right) in odd_files.CORRECTIONS.items()},
        "{i}.csv",
        "apply ../first {file} -o c{i}.csv -q",
        {},
    ),
}


def cases():
    for door, (files, pattern, command, others) in DOORS.items():
        for i, (name, (make, usual)) in enumerate(files.items()):
            right = others.get(name, usual)
            file = pattern.format(i=i, name=name)
            slow = [pytest.mark.slow] if right and "train" in command else []
            words = command.format(file=file, i=i, train=TRAIN)
            yield pytest.param(door, file, make, words, right, id=f"{door}: {name}", marks=slow)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where all cases are, with a run and what goes with it."""
    root = tmp_path_factory.mktemp("files")
    before = Path.cwd()
    os.chdir(root)
    text(odd_files.rows())(Path("right.csv"))
    np.save("x.npy", X)
    np.save("y.npy", Y)
    odd_files.right_npz(Path("d.npz"))
    assert call(f"train right.csv {TRAIN} -o first") == 0
    yield root
    os.chdir(before)
    assert not [*root.rglob("unpickled"), *root.rglob("evil")], "code has run"


@pytest.mark.parametrize(("door", "file", "make", "words", "right"), [*cases()])
def test_files(door, file, make, words, right, folder, capsys, monkeypatch):
    place = folder / door.replace(" ", "-")
    place.mkdir(exist_ok=True)
    monkeypatch.chdir(place)
    make(Path(file))
    got, said = said_of(words.split(), capsys)
    assert (got == "done") == right, said


@pytest.fixture(scope="module")
def words_folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("words")
    before = Path.cwd()
    odd_words.made(root)
    assert call(f"train right.csv {TRAIN} -o run") == 0
    yield root
    os.chdir(before)
    for name in ("unreadable", "unwritable"):
        Path(root, name).chmod(0o700)


def word_cases():
    for word in odd_words.listed(odd_words.TRAIN_WORDS):
        where = "" if "-o " in word else "-o never"
        yield pytest.param(f"train right.csv {TRAIN} {where} {word}", False, id=f"train {word}")
    for word in odd_words.listed(odd_words.DATA_WORDS):
        yield pytest.param(f"train {word} {TRAIN} -o never", False, id=f"train {word}")
    for command, more in odd_words.RUN_COMMANDS.items():
        for word in odd_words.listed(odd_words.RUN_WORDS):
            yield pytest.param(f"{command} {word} {more} -q", False, id=f"{command} {word}")
    for word in odd_words.listed(odd_words.OTHER_WORDS):
        quiet = " -q" if word.startswith(("select ", "theory ", "reproduce ")) else ""
        yield pytest.param(word.replace("{digits}", "9" * 5000) + quiet, word in odd_words.RIGHT, id=word)


@pytest.mark.slow
@pytest.mark.parametrize(("words", "right"), [*word_cases()])
def test_words(words, right, words_folder, capsys, monkeypatch):
    monkeypatch.chdir(words_folder)
    monkeypatch.setenv("CRUST_DATA", "nowhere")
    try:
        got, said = said_of(words.split(), capsys)
        assert got == "done" or not Path("never/audit.parquet").exists()
    finally:
        shutil.rmtree("never", ignore_errors=True)
    if os.geteuid() or ("unreadable" not in words and "unwritable" not in words):  # root may read and write all
        assert (got == "done") == right, said

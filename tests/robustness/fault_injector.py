"""Kills commands at every call that changes a file, goes on, and compares: `python fault_injector.py SCENARIO FOLDER`.

Each command runs in a child that is forked from this process, in which everything is imported already, with
kill_at.so (see kill_at.c) loaded before libc. A child is killed before its n-th call, for every n that there is.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

KILLED = -9
SMALL = "--model mlp --method erm --limit 60 --batch-size 32 --set audit_every=1 -q"


class Injector:
    """Runs work in a child; `below` is the folder whose files are looked at."""

    def __init__(self, below: Path):
        self.below = below
        self.shim = ctypes.CDLL(os.environ["LD_PRELOAD"])

    def empty(self) -> None:
        """Begin anew."""
        shutil.rmtree(self.below, ignore_errors=True)
        self.below.mkdir()

    def __call__(self, work: Callable[[], object], at: int = -1) -> tuple[int, str, int]:
        """The exit code, what was said on stderr, and the number of calls; killed before call number `at`."""
        told, tell = os.pipe()
        errors = self.below.parent / "stderr.txt"
        child = os.fork()
        if child == 0:
            with errors.open("w", encoding="utf-8") as stream, Path(os.devnull).open("w") as nowhere:
                sys.stderr, sys.stdout = stream, nowhere
                self.shim.arm(ctypes.c_long(at), str(self.below).encode())
                try:
                    code = work()
                except SystemExit as end:
                    code = end.code
                stream.flush()
                os.write(tell, str(self.shim.calls()).encode())
                os._exit(code if isinstance(code, int) else 0)
        os.close(tell)
        calls = os.read(told, 99)
        os.close(told)
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status), errors.read_text(encoding="utf-8"), int(calls or -1)

    def everywhere(self, work: Callable[[], object], prepare: Callable[[], object]) -> Iterator[int]:
        """After each kill, its number; ends with the first that is not reached."""
        for at in range(100_000):
            prepare()
            code, said, _ = self(work, at)
            if code != KILLED:
                assert code == 0, (at, said)
                assert at, "nothing was written below the folder"
                return
            yield at


def command_of(words: str) -> Callable[[], object]:
    from crust.cli import main

    return lambda: main(words.split())


def is_sentence(code: int, said: str, part: str) -> bool:
    return code == 2 and part in said and said.count("\n") == 1


def content(folder: Path) -> dict[str, object]:
    """What two runs must have in common: all but seconds. Nothing half written is among it."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        assert not name.endswith((".tmp", ".part")), name
        if name.endswith("history.jsonl"):
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            found[name] = [{k: v for k, v in line.items() if k != "seconds"} for line in lines]
        elif path.is_file() and "checkpoint" in name:
            found[name] = path.name  # seconds are in there, and so is their sum
        elif path.is_file():
            found[name] = path.read_bytes()
    return found


def train(folder: Path, epochs: int) -> int:
    """`--resume` goes on and ends with the same bytes, and so does the command that was typed; else a sentence."""
    below = folder / "runs"
    inject = Injector(below)
    command = f"train digits {SMALL} --noise symmetric:0.3 --epochs {epochs} -o {below}/a"

    inject.empty()
    assert inject(command_of(command))[0] == 0
    whole, kills = content(below / "a"), 0
    for at in inject.everywhere(command_of(command), inject.empty):
        kills += 1
        copy = folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(below, copy)
        code, said, _ = inject(command_of(f"train --resume -q -o {below}/a"))
        if code:  # nothing was saved yet, not even what was asked for
            assert is_sentence(code, said, "no run in"), (at, said)
            code, said, _ = inject(command_of(f"{command} --resume"))
        assert code == 0, (at, said)
        assert content(below / "a") == whole, at
        shutil.rmtree(below)
        copy.rename(below)
        code, said, _ = inject(command_of(command))
        if code:
            assert is_sentence(code, said, "holds a run already"), (at, said)
        else:
            assert content(below / "a") == whole, at
    return kills


def twice(folder: Path) -> int:
    """Kills of a run that goes on after a kill: every pair of the first, a middle and the last third."""
    below = folder / "runs"
    inject = Injector(below)
    command = f"train digits {SMALL} --epochs 2 -o {below}/a"
    below.mkdir()
    _, _, calls = inject(command_of(command))
    whole, kills = content(below / "a"), 0
    for first in range(calls // 3, calls, max(1, calls // 6)):
        for second in range(0, calls, max(1, calls // 8)):
            shutil.rmtree(below)
            below.mkdir()
            assert inject(command_of(command), first)[0] == KILLED
            inject(command_of(f"{command} --resume"), second)
            code, said, _ = inject(command_of(f"{command} --resume"))
            assert code == 0, (first, second, said)
            assert content(below / "a") == whole, (first, second)
            kills += 2
    return kills


def apply_table(folder: Path) -> int:
    """The corrected table is there whole or not at all; the same command ends with the same bytes."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    x = rng.normal(size=(60, 2)) + y[:, None]
    rows = "\n".join(f"{a:.4f},{b:.4f},{'cat' if c else 'dog'}" for (a, b), c in zip(x, y, strict=True))
    (folder / "t.csv").write_text(f"a,b,label\n{rows}\n")
    below, made = folder / "runs", folder / "made"
    inject = Injector(below)
    assert inject(command_of(f"train {folder}/t.csv {SMALL} --epochs 1 -o {made}/a"))[0] == 0
    (folder / "mine.csv").write_text("index,corrected\n0,cat\n1,dog\n4,cat\n")
    command = f"apply {below}/a {folder}/mine.csv -q"

    def fresh() -> None:
        shutil.rmtree(below, ignore_errors=True)
        shutil.copytree(made, below)

    fresh()
    assert inject(command_of(command))[0] == 0
    whole, kills = content(below), 0
    for at in inject.everywhere(command_of(command), fresh):
        kills += 1
        half = below / "a/corrected.csv"
        assert not half.exists() or half.read_bytes() == whole["a/corrected.csv"], at
        code, said, _ = inject(command_of(command))
        assert code == 0, (at, said)
        assert content(below) == whole, at
    return kills


def apply_moves(folder: Path) -> int:
    """No image is lost or doubled by moves that are killed; the same command ends them, and `--move-back` undoes."""
    from PIL import Image

    rng = np.random.default_rng(0)
    made, below = folder / "made", folder / "work"
    for label, name in enumerate(("cat", "dog")):
        (made / "images" / name).mkdir(parents=True)
        for i in range(12):
            pixels = rng.integers(0, 100, (8, 8, 3), dtype=np.uint8) + np.uint8(120 * label)
            Image.fromarray(pixels).save(made / "images" / name / f"{name}{i}.png")
    below.mkdir()
    inject = Injector(below)
    shutil.copytree(made / "images", below / "images")
    assert inject(command_of(f"train {below}/images {SMALL} --epochs 1 -o {below}/a"))[0] == 0
    shutil.copytree(below / "a", made / "a")
    (folder / "mine.csv").write_text("id,corrected\ncat/cat0.png,dog\ncat/cat3.png,dog\ndog/dog5.png,cat\n")
    command = f"apply {below}/a {folder}/mine.csv --move -q"

    def fresh() -> None:
        shutil.rmtree(below, ignore_errors=True)
        shutil.copytree(made, below)

    def images() -> dict[str, object]:
        return content(below / "images")

    fresh()
    before = images()
    assert inject(command_of(command))[0] == 0
    whole, kills = content(below), 0
    for at in inject.everywhere(command_of(command), fresh):
        kills += 1
        assert set(images().values()) == set(before.values()), at
        code, said, _ = inject(command_of(command))
        assert code == 0, (at, said)
        assert content(below) == whole, at
    for at in inject.everywhere(
        command_of(f"apply {below}/a --move-back -q"), lambda: (fresh(), inject(command_of(command)))
    ):
        kills += 1
        code, said, _ = inject(command_of(f"apply {below}/a --move-back -q"))
        assert code == 0, (at, said)
        assert images() == before, at
    return kills


def review(folder: Path) -> int:
    """What was confirmed is there after a kill, nothing else is half there, and the next decision is taken."""
    from crust.review import Change, Store

    below = folder / "db"
    inject = Injector(below)
    confirmed = folder / "confirmed.txt"
    n = 4

    def work() -> None:
        store = Store(below / "review.sqlite", "k", range(n), 3)
        with confirmed.open("a") as said:
            for i in range(n):
                saved, _, _ = store.decide([Change(i, 0, "relabel", 1)], who="first")
                said.write(f"{saved[0].example}\n")
                said.flush()
        store.close()

    def empty() -> None:
        inject.empty()
        confirmed.write_text("")

    kills = 0
    for at in inject.everywhere(work, empty):
        kills += 1
        store = Store(below / "review.sqlite", "k", range(n), 3)
        there = [one.example for one in store.decisions()]
        told = [int(line) for line in confirmed.read_text().split()]
        assert there in (told, [*told, len(told)]), (at, told, there)
        assert store.decide([Change(n - 1, 0 if len(there) < n else 1, "keep")], who="second")[0], at
        store.close()
    return kills


def reproduce(folder: Path) -> int:
    """A grid that is killed goes on with the same command to the same results, each once."""
    from crust.experiments import read_results

    (folder / "grid.yaml").write_text(
        "scale: smoke\ndata: digits\nlabels: symmetric:0.2\nmodel: mlp\nmethod: erm\nepochs: 1\nlimit: 60\n"
    )
    below = folder / "out"
    inject = Injector(below)
    command = f"reproduce --grid {folder}/grid.yaml -o {below} -q"

    def results() -> list[object]:
        lines = read_results(below / "results.jsonl")  # passes over a line that was cut off
        return [(line["key"], line["accuracy"]) for line in lines]

    inject.empty()
    code, said, _ = inject(command_of(command))
    assert code == 0, said
    whole, kills = results(), 0
    for at in inject.everywhere(command_of(command), inject.empty):
        kills += 1
        code, said, _ = inject(command_of(command))
        assert code == 0, (at, said)
        assert results() == whole, at
        assert not (left := [*below.rglob("*.tmp"), *below.rglob("*.part")]), (at, left)
    return kills


SCENARIOS: dict[str, Callable[[Path], int]] = {
    "train-1": lambda folder: train(folder, 1),
    "train-3": lambda folder: train(folder, 3),
    "train-twice": twice,
    "apply-table": apply_table,
    "apply-moves": apply_moves,
    "review": review,
    "reproduce": reproduce,
}


if __name__ == "__main__":
    import accelerate  # noqa: F401
    import pyarrow.csv
    import pyarrow.parquet  # noqa: F401
    import sklearn.datasets  # noqa: F401
    import torch
    import torchvision.transforms.v2  # noqa: F401

    import crust.cli.app
    import crust.experiments
    import crust.fitting
    import crust.methods
    import crust.verification  # noqa: F401

    torch.set_num_threads(1)
    print(SCENARIOS[sys.argv[1]](Path(sys.argv[2])))

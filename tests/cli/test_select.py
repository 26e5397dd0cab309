"""`crust select`: what it writes and prints, and one sentence with exit code 2 for everything that is wrong."""

import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from safetensors.numpy import save_file

import crust
from crust.cli import main

RNG = np.random.default_rng(3)
POINTS = RNG.normal(size=(60, 4)).astype(np.float32)
LABELS = RNG.integers(3, size=60)


def write_inputs(folder):
    """Good and bad files, under names that say what they are."""
    np.save(folder / "f.npy", POINTS)
    np.save(folder / "g.npy", LABELS)
    np.save(folder / "names.npy", np.array(["[red]cat", "dog", "eel"])[LABELS])
    np.savez(folder / "f.npz", train=POINTS, other=LABELS)
    save_file({"train": POINTS}, folder / "f.safetensors")
    columns = {f"x{i}": POINTS[:, i] for i in range(4)} | {"label": LABELS, "note": ["text"] * 60}
    pa.parquet.write_table(pa.table(columns), folder / "f.parquet")
    rows = [",".join([*(repr(float(v)) for v in row), str(label)]) for row, label in zip(POINTS, LABELS, strict=True)]
    (folder / "f.csv").write_text("\n".join(["x0,x1,x2,x3,label", *rows]))

    np.save(folder / "flat.npy", POINTS[0])
    np.save(folder / "cube.npy", POINTS.reshape(60, 2, 2))
    np.save(folder / "empty.npy", POINTS[:0])
    for name, value in [("nan", np.nan), ("inf", np.inf)]:
        bad = POINTS.copy()
        bad[[3, 7, 8, 20, 21, 40, 41], 1] = value
        np.save(folder / f"{name}.npy", bad)
    np.save(folder / "short.npy", LABELS[:-1])
    np.save(folder / "rectangle.npy", np.ones((3, 4)))
    np.save(folder / "crooked.npy", np.array([[0.0, 1, 2], [1, 0, 3], [2, 4, 0]]))
    np.save(folder / "negative.npy", np.array([[0.0, -1], [-1, 0]]))
    (folder / "cut.npy").write_bytes((folder / "f.npy").read_bytes()[:500])
    (folder / "cut.parquet").write_bytes((folder / "f.parquet").read_bytes()[:500])
    (folder / "zero.csv").touch()
    (folder / "f.txt").write_text("1 2")
    (folder / "dir.parquet").mkdir()
    for name, arrays in {
        "shards": {"part-0": POINTS[:25], "part-1": POINTS[25:40].astype(np.float64), "part-2": POINTS[40:]},
        "uneven": {"a": POINTS, "b": POINTS[:, :3]},
        "hollow": {"a": bad},
    }.items():
        (folder / name).mkdir()
        for file, array in arrays.items():
            np.save(folder / name / f"{file}.npy", array)
    (folder / "shards" / "notes.txt").write_text("no shard")
    (folder / "damaged").mkdir()
    (folder / "damaged" / "a.npy").write_bytes((folder / "f.npy").read_bytes()[:500])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    write_inputs(folder)
    return folder


@pytest.fixture
def inputs(made, tmp_path, monkeypatch):
    """A fresh folder with the files in it, as the current one."""
    folder = tmp_path / "here"
    shutil.copytree(made, folder)
    monkeypatch.chdir(folder)
    return folder


def run(words: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(["select", *words.split()])
    return caught.value.code


WRONG = {
    "flat.npy -k 1": r"flat.npy has shape \(4,\).*two-dimensional",
    "cube.npy -k 1": r"two-dimensional",
    "empty.npy -k 1": r"empty",
    "nan.npy -k 1": r"3, 7, 8, 20, 21\b(?!, 40)",
    "inf.npy -k 1": r"3, 7, 8, 20, 21\b(?!, 40)",
    "f.npy -k 0": r"\b0\b.*at least|1 to 60",
    "f.npy -k -3": r"-3",
    "f.npy -k 61": r"61.*60",
    "f.npy -k 1.01": r"1\.01.*share > 1",
    "f.npy -k 0.0": r"share",
    "f.npy -k -0.5": r"share",
    "f.npy -k ten": r"ten is not a number",
    "f.npy -k 10%": r"10% is not a number",
    "f.npy -k 1e2": r"1e2 is not a number",
    "f.npy -k nan": r"nan is not a number",
    "f.npy -k 2 --groups short.npy": r"59.*60",
    "f.npy -k 2 --groups short.npy --dry-run": r"59.*60",
    "f.npy -k 2 --groups f.npy": r"f.npy has shape \(60, 4\)",
    "f.npy -k 2 --groups nowhere.npy": r"there is no file nowhere.npy",
    "rectangle.npy -k 1 --metric precomputed": r"square",
    "crooked.npy -k 1 --metric precomputed": r"symmetric",
    "negative.npy -k 1 --metric precomputed": r"negative",
    "f.npy -k 1 --algorithm gredy": r"unknown algorithm 'gredy': use one of greedy, .*; did you mean 'greedy'\?$",
    "f.npy -k 1 --metric euclid": r"unknown metric 'euclid': use one of euclidean, .*; did you mean 'euclidean'\?$",
    "f.npy -k 1 --algorithm gredy --dry-run": r"did you mean 'greedy'\?$",
    "f.npy -k 1 --device cuda:99": r"cuda:99",
    "f.npy -k 1 --device gpu": r"gpu",
    "f.npy -k 1 --memory-limit 10B": r"memory",
    "f.npy -k 1 --memory-limit lots": r"memory_limit is 'lots'",
    "f.npy -k 1 --memory-limit -1GB": r"memory_limit is '-1GB'",
    "f.npy -k 1 --threads 0": r"threads",
    "f.npy -k 1 --min-per-group -1": r"min_per_group|min-per-group",
    "f.npy -k 1 --algorithm stochastic --epsilon 0": r"epsilon",
    "f.npy -k 1 --algorithm greedi --engine lokal": r"lokal.*local",
    "f.npy -k 1 --algorithm lazy --engine local": r"'lazy' has no engines: use 'greedi'",
    "f.npy -k 1 --address 127.0.0.1:1": r"add --engine ray",
    "f.npy -k 1 --engine ray --address 127.0.0.1:1": r"there is no Ray cluster at 127.0.0.1:1 .*ray start --head",
    "shards -k 1 --algorithm greedy": r"'greedy' needs all points at once: use algorithm 'greedi'",
    "shards -k 61": r"61.*60",
    "shards -k 1 --columns a": r"shards is a folder of arrays without columns",
    "shards -k 1 --plot p.png": r"--plot needs all vectors at once",
    "shards -k 1 --groups short.npy": r"59.*60",
    "dir.parquet -k 1": r"dir.parquet has no .npy files: give a folder of files such as part-0.npy",
    "uneven -k 1": r"b.npy has 3 columns, but a.npy has 4",
    "damaged -k 1": r"cannot read .*a.npy: truncated, empty or no .npy file",
    "hollow -k 1": r"a.npy has 7 rows with NaN or infinite values \(first: 3, 7, 8, 20, 21\)",
    "f.npy -k 2 --algorithm sieve --epsilon -1": r"epsilon",
    "cut.npy -k 1": r"cannot read cut.npy: truncated",
    "cut.parquet -k 1": r"cannot read cut.parquet: truncated",
    "zero.csv -k 1": r"zero.csv is an empty file",
    "f.txt -k 1": r"cannot read f.txt",
    "nowhere.npy -k 1": r"there is no file nowhere.npy",
    "f.npz -k 1": r"f.npz:train",
    "f.npz:tran -k 1": r"did you mean 'train'",
    "f.parquet -k 1 --columns x0,x9": r"unknown column of f.parquet 'x9'",
    "f.parquet -k 1 --columns note": r"not numeric",
    "f.parquet -k 1 --group-column lable": r"did you mean 'label'",
    "f.npy -k 1 --columns a": r"has no columns",
    "f.npy -k 1 -o nowhere/c.parquet": r"no folder nowhere",
    "f.npy -k 1 -o c.csv": r"must end in .parquet",
    "f.npy -k 1 -o dir.parquet": r"is a folder",
    "f.parquet -k 1 -o f.parquet": r"would overwrite",
    "f.npy -k 1 --plot nowhere/c.png": r"no folder nowhere",
    "f.npy -k 1 --plot c.jpeg2": r"must end in .png or",
    "f.npy": r"missing option.*-k",
    "-k 1": r"missing argument",
    "f.npy -k 1 --algoritm lazy": r"no such option.*--algoritm",
    "f.npy -k 1 --threads two": r"invalid value for '--threads'",
    "f.npy -k 1 more.npy": r"more.npy",
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_input_is_one_sentence(inputs, capsys, words):
    before = sorted(inputs.rglob("*"))
    output = "" if "-o " in words or words == "-k 1" else " -o out.parquet"
    assert run(words + output) == 2
    shown = capsys.readouterr()
    lines = shown.err.splitlines()
    assert lines[-1].startswith("crust: ")
    # which columns of a table were read, and how much lies in a folder
    assert all("left out:" in line or line == "60 points of 4 dimensions in 1 file" for line in lines[:-1])
    assert re.search(WRONG[words], lines[-1]), lines[-1]
    assert shown.out == ""
    assert sorted(inputs.rglob("*")) == before


def test_output_is_checked_before_the_work(inputs, monkeypatch):
    monkeypatch.setattr(crust, "select", lambda *_, **__: pytest.fail("the work was started"))
    assert run("f.npy -k 1 -o nowhere/c.parquet") == 2
    assert run("f.npy -k 1 --plot nowhere/c.png") == 2


@pytest.mark.parametrize(
    "source", ["f.npy", "f.npz:train", "f.safetensors", "f.parquet --columns x0,x1,x2,x3", "f.csv --group-column label"]
)
def test_every_format_gives_the_same(inputs, source):
    groups = "" if "group-column" in source else " --groups g.npy"
    assert run(f"{source} -k 0.2 -o out.parquet{groups}") == 0
    assert_same(crust.Coreset.load("out.parquet"), crust.select(POINTS, 12, groups=LABELS))


def test_group_column_beside_the_vectors_is_no_vector(inputs):
    assert run("f.parquet -k 12 -o a.parquet --group-column label") == 0
    assert run("f.npy -k 12 -o b.parquet --groups f.parquet --group-column label") == 0
    a, b = crust.Coreset.load("a.parquet"), crust.Coreset.load("b.parquet")
    assert_same(a, b)


@pytest.mark.parametrize(("k", "expected"), [("1", 1), ("1.0", 60), ("60", 60), (".1", 6), ("+5", 5), ("0.001", 1)])
def test_a_decimal_point_makes_a_share(inputs, k, expected):
    assert run(f"f.npy -k {k} -o out.parquet --quiet") == 0
    assert len(crust.Coreset.load("out.parquet").indices) == expected


@pytest.mark.parametrize("algorithm", ["greedy", "lazy", "stochastic", "sieve", "greedi", "central", "random"])
def test_options_reach_the_library(inputs, algorithm):
    words = f"f.npy -k 6 --algorithm {algorithm} --metric sqeuclidean --seed 5 --epsilon 0.2 --threads 1"
    assert run(f"{words} -q -o out.parquet") == 0
    expected = crust.select(
        POINTS, 6, algorithm=algorithm, metric="sqeuclidean", seed=5, epsilon=0.2, threads=1
    )  # fmt: skip
    assert_same(crust.Coreset.load("out.parquet"), expected)


def test_a_folder_is_one_table_in_pieces(inputs, capsys):
    assert run("shards -k 6 --groups g.npy -o out.parquet") == 0
    assert "6 of 60 points selected" in capsys.readouterr().out
    found = crust.Coreset.load("out.parquet")
    assert_same(found, crust.select("shards", 6, groups=LABELS, algorithm="greedi"))
    assert found.info["files"] == [[str(inputs / "shards" / f"part-{i}.npy"), n] for i, n in enumerate((25, 15, 20))]
    near = np.linalg.norm(POINTS - POINTS[found.indices[found.assignment]], axis=1)
    np.testing.assert_allclose(found.distances, near, rtol=1e-5)
    assert run("shards -k 6 --dry-run") == 0


def test_all_options_are_handed_on(inputs, monkeypatch):
    seen = {}

    def fake(features, k, **options):
        seen.update(options, k=k)
        raise crust.InputError("enough")

    monkeypatch.setattr(crust, "select", fake)
    words = "--algorithm lazy --metric cosine --min-per-group 3 --epsilon 0.3 --device cpu --threads 2"
    assert run(f"f.npy -k 0.5 {words} --memory-limit 1MB --engine local --seed 9 --quiet") == 2
    assert seen == {
        "k": 0.5, "groups": None, "algorithm": "lazy", "metric": "cosine", "min_per_group": 3, "epsilon": 0.3,
        "device": "cpu", "threads": 2, "memory_limit": 10**6, "engine": "local", "seed": 9, "progress": False,
    }  # fmt: skip


def test_the_table(inputs, capsys):
    assert run("f.npy -k 6 --groups names.npy -o out.parquet") == 0
    shown = capsys.readouterr().out
    coreset = crust.Coreset.load("out.parquet")
    sizes = np.bincount(LABELS)
    for name, size in zip(["[red]cat", "dog", "eel"], sizes, strict=True):
        mine = coreset.groups == name
        inside = mine[coreset.assignment]
        mean = coreset.distances[inside].astype(float).mean()
        row = rf"{re.escape(name)} +{size} +{mine.sum()} +{re.escape(f'{mean:.4g}')} +{coreset.weights[mine].max()}"
        assert re.search(row, shown)
    assert re.search(r"all +60 +6 ", shown)
    assert "6 of 60 points selected" in shown
    assert "coreset: out.parquet" in shown


def test_the_table_is_cut(inputs, capsys):
    np.save("many.npy", np.arange(60) % 25)
    assert run("f.npy -k 25 --groups many.npy") == 0
    shown = capsys.readouterr().out
    assert "… and 5 more groups" in shown
    assert "next: the same command with -o coreset.parquet" in shown


def test_quiet_prints_nothing(inputs, capsys):
    assert run("f.npy -k 6 -o out.parquet -q") == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("groups", ["", " --groups g.npy"])
def test_dry_run_says_what_it_would_cost(inputs, capsys, groups):
    before = sorted(inputs.iterdir())
    assert run(f"f.npy -k 0.1 -o out.parquet --plot out.png --dry-run{groups}") == 0
    shown = capsys.readouterr().out
    assert re.search(r"\d", shown)
    assert sorted(inputs.iterdir()) == before


@pytest.mark.parametrize("words", ["f.npy -k 6", "f.npy -k 6 --groups g.npy", "f.npy -k 60", "f.npy -k 1"])
def test_plot(inputs, words, capsys):
    before = set(inputs.iterdir())
    assert run(f"{words} --plot out.png") == 0
    assert (inputs / "out.png").read_bytes().startswith(b"\x89PNG")
    assert set(inputs.iterdir()) - before == {inputs / "out.png"}
    assert "picture: out.png" in capsys.readouterr().out


def test_ctrl_c_in_the_library(inputs, monkeypatch, capsys):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(crust, "select", stop)
    before = sorted(inputs.iterdir())
    assert run("f.npy -k 6 -o out.parquet") == 130
    assert capsys.readouterr().err.splitlines()[-1] == "crust: stopped, nothing more was written"
    assert sorted(inputs.iterdir()) == before


def test_ctrl_c_for_real(tmp_path):
    np.save(tmp_path / "big.npy", RNG.normal(size=(200_000, 8)).astype(np.float32))
    words = [sys.executable, "-m", "crust", "select", "big.npy", "-k", "0.5", "-o", "out.parquet"]
    with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        first = process.stderr.readline()  # the estimate, logged when the work begins
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(timeout=60) == 130, first + rest
    assert rest.splitlines()[-1].startswith("crust: stopped")
    assert "Traceback" not in rest
    assert [path.name for path in tmp_path.iterdir()] == ["big.npy"]


def test_a_closed_pipe_is_no_traceback(inputs):
    words = [sys.executable, "-m", "crust", "select", "--help"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        assert "Traceback" not in process.stderr.read()


def assert_same(a, b):
    for name in ("indices", "weights", "assignment", "gains", "distances"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert a.objective == b.objective

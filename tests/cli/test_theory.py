"""`crust theory`: on a run of `crust train` and on one of an experiment."""

import json

import numpy as np
import pytest
from results import theory_page
from tests.refusals import refused

from crust.cli import main
from crust.cli.theory import parse_cut, parse_epochs
from crust.errors import InputError
from crust.experiments import make
from crust.experiments.run_spec import train_spec
from crust.runs.checkpoints import Reopened, reopen

SMALL = "digits --limit 120 --model mlp --noise symmetric:0.4 --epochs 3 --batch-size 32 --learning-rate 0.05"
QUICK = "--points 12 --repeats 2 --steps 3"


def call(line: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(line.split())
    return end.value.code


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("theory") / "run"
    assert call(f"train {SMALL} --method crust-paper --keep-every 1 -q -o {folder}") == 0
    return folder


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    folder = tmp_path_factory.mktemp("theory") / "spec"
    spec = {**make("crust", "symmetric:0.4", scale="smoke", epochs=2, fraction=0.5), "limit": 120}
    train_spec(spec, folder, keep_every=1)
    return folder


def test_tables_and_plots_of_a_run(trained, tmp_path, capsys):
    assert call(f"theory {trained} --epochs 0,2 {QUICK} -o {tmp_path}/out") == 0
    said = capsys.readouterr()
    assert "Labels in the information space" in said.out
    assert "Theorem 1" in said.out
    assert "epoch 2: the theorem" in said.err
    page = (tmp_path / "out" / "theory.html").read_text()
    assert page.count("data:image/png") == 3
    assert "<script" not in page
    assert "http:" not in page
    assert (tmp_path / "out" / "theory.png").read_bytes().startswith(b"\x89PNG")
    summary = json.loads((tmp_path / "out" / "theory.json").read_text())
    assert [moment["epoch"] for moment in summary["moments"]] == [0, 2]
    assert summary["moments"][0]["quality"]["members"] == 6
    assert summary["moments"][0]["sets"]["all"]["examples"] == 12
    assert len(summary["sizes"]) == 6
    assert summary["guarantee"]["outcome"]["steps"] <= 3
    assert not (trained / "theory.html").exists()


def test_the_choice_is_the_methods_own(trained):
    """With all examples, the next coreset of the method is the one that the run itself has trained on."""
    from crust.training import checkpoint

    run = reopen(trained)
    everyone = np.arange(len(run.examples))
    chosen = run.choice(2, everyone)
    trained_on = checkpoint.read(trained / "checkpoint" / "000003")["method"]["coreset"]
    assert chosen.indices.tolist() == sorted(trained_on["indices"].tolist())
    order = np.argsort(trained_on["indices"])
    np.testing.assert_allclose(chosen.weights, trained_on["weights"][order], rtol=1e-5)
    assert chosen.weights.sum() == pytest.approx(len(run.examples))


def test_the_memory_of_crust_goes_into_its_choice(experiment):
    from crust.training import checkpoint

    run = reopen(experiment)
    chosen = run.choice(1, np.arange(len(run.examples)))
    trained_on = checkpoint.read(experiment / "checkpoint" / "000002")["method"]["coreset"]["indices"]
    assert chosen.indices.tolist() == sorted(trained_on.tolist())
    part = run.sample(20)
    assert part.tolist() == run.sample(20).tolist()
    many, few = run.choice(2, part), run.choice(2, part, 0.2)
    assert len(few.indices) < len(many.indices) < 20
    assert many.weights.sum() == pytest.approx(20)


def test_checkpoints_that_a_running_training_removes(experiment, tmp_path):
    import shutil

    copied = shutil.copytree(experiment, tmp_path / "run")
    run = reopen(copied)
    assert run.hold() == [0, 1, 2]
    before = reopen(experiment).choice(1, run.sample(20))
    shutil.rmtree(copied / "checkpoint" / "000001")
    assert run.choice(1, run.sample(20)).indices.tolist() == before.indices.tolist()
    assert reopen(copied).hold() == [0, 2]
    with pytest.raises(InputError, match="no checkpoint of epoch 1, only of 0, 2"):
        reopen(copied).hold([1])


def test_the_page_of_results(experiment, tmp_path):
    words = ["build", str(experiment), "-o", str(tmp_path / "theory.md"), "--points", "8", "--repeats", "2"]
    assert theory_page.main([*words, "--steps", "2", "--epochs", "2"]) == 0
    page = (tmp_path / "theory.md").read_text()
    assert "| crust, mlp | 2 |" in page
    assert "## What this says" in page
    assert (tmp_path / "theory-crust-mlp.png").exists()
    before = (experiment / "theory.json").stat().st_mtime_ns
    assert theory_page.main([*words, "--steps", "2", "--epochs", "2"]) == 0  # nothing is computed twice
    assert (experiment / "theory.json").stat().st_mtime_ns == before
    assert len(theory_page.specs()) == 10


def test_bad_words(trained, tmp_path, capsys):
    for line, message in (
        (f"theory {tmp_path}", "holds no run"),
        (f"theory {trained} --epochs 9", "there is no checkpoint of epoch 9, only of 0, 1, 2, 3"),
        (f"theory {trained} --cut 1.2.3", "--cut 1.2.3"),
        (f"theory {trained} -o {trained}/config.yaml", "is a file"),
    ):
        assert call(line) == 2
        said = capsys.readouterr().err
        assert message in said
        assert said.count("\n") == 1


def test_other_data_is_refused(trained):
    from crust.data import load

    with pytest.raises(InputError, match="not what the run"):
        Reopened(trained, load("digits", limit=120).train)


def test_words():
    assert parse_epochs("all", [0, 3]) == [0, 3]
    with refused("bad-epochs"):
        parse_epochs("1-3", [0, 1])
    with refused("bad-cut"):
        parse_cut("knee")

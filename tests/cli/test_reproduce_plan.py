"""`crust reproduce --dry-run`: what its numbers are of."""

from pathlib import Path

from tests.cli.common import call


def test_time_and_room_say_how_many_runs_they_are_of(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = "scale: smoke\nlabels: true\nmethod: erm\nlimit: 100\nepochs: 1\n"
    Path("grid.yaml").write_text(f"{text}runs: [{{seeds: 2}}, {{data: missing.npz}}]\n")
    assert call("reproduce --grid grid.yaml --dry-run --keep-runs") == 0
    shown = capsys.readouterr().out
    assert "time of 2 of the 3 runs: about " in shown
    assert " for 2 of the 3 runs" in shown.partition("room: about ")[2].splitlines()[0]
    assert "not ready, 1 run: there is no file or folder missing.npz" in shown
    Path("grid.yaml").write_text(f"{text}seeds: 2\n")
    assert call("reproduce --grid grid.yaml --dry-run --keep-runs") == 0
    shown = capsys.readouterr().out
    assert "time: about " in shown
    assert " for all runs" in shown


def test_times_are_known_before_the_data_is_here(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert call("reproduce figure1 --methods crust-half --seeds 1 --dry-run --data-dir nowhere") == 0
    shown = capsys.readouterr().out
    assert "time: about " in shown
    assert "not ready, 3 runs: cifar10 is not in nowhere, and will be downloaded" in shown
    assert not list(tmp_path.iterdir())


def test_runs_are_told_apart_on_their_own_dataset_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = "scale: smoke\nlabels: true\nmethod: erm\n"
    runs = (
        "  - {epochs: 3}\n  - {data: missing.npz, lr_milestones: [0.3333333333333333, 0.9]}\n  - {data: missing.npz}\n"
    )
    Path("grid.yaml").write_text(f"{text}runs:\n{runs}")
    assert call("reproduce --grid grid.yaml --dry-run") == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if " true " in line]
    assert [row[2:4] for row in rows if row[0] == "digits"] == [["erm", "0"]]  # the method, and the seed to run
    assert [row[3] for row in rows if row[0] == "missing.npz"] == ["lr_milestones=1/3,0.9", "lr_milestones=2/3,5/6"]


def test_the_recipe_names_the_noise_of_the_paper():
    from crust.noise import parse_noise
    from crust.runs import recipe

    text = (Path(recipe.__file__).parent / "recipes" / "cifar10-paper.yaml").read_text()
    assert "derangement:0.4" in text
    assert "asymmetric-cifar10" not in text
    parse_noise("derangement:0.4")

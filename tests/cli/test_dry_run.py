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


def test_the_recipe_names_the_noise_of_the_paper():
    from crust.cli import recipe
    from crust.noise import parse_noise

    text = (Path(recipe.__file__).parent / "recipes" / "cifar10-paper.yaml").read_text()
    assert "derangement:0.4" in text
    assert "asymmetric-cifar10" not in text
    parse_noise("derangement:0.4")

"""The command `crust` as a whole."""

import subprocess
import sys

import pytest

import crust
from crust.cli import main
from crust.cli.app import COMMANDS


def call(*words):
    with pytest.raises(SystemExit) as caught:
        main(list(words))
    return caught.value.code


def test_version(capsys):
    assert call("--version") == 0
    assert capsys.readouterr().out == f"crust {crust.__version__}\n"


def test_help_begins_with_a_table_of_ones_own(capsys):
    for words in ([], ["--help"]):
        assert call(*words) == 0
        shown = capsys.readouterr().out
        assert "Usage: crust" in shown
        assert "crust train patients.csv --label-column diagnosis" in shown


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_an_example_and_no_type_beside_flags(capsys, command):
    assert call(command, "--help") == 0
    shown = capsys.readouterr().out
    assert f"crust {command} " in shown.split("Example:")[1]
    assert "bool" not in shown


def test_unknown_command(capsys):
    assert call("selekt") == 2
    shown = capsys.readouterr().err
    assert shown == "crust: no such command 'selekt'; did you mean 'select', or see crust --help\n"
    assert len(shown.splitlines()) == 1


def raising(monkeypatch, error):
    import crust.cli.app

    def fail(**_):
        raise error

    monkeypatch.setattr(crust.cli.app, "app", fail)


def test_a_bug_is_one_sentence_with_its_traceback_in_a_file(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    raising(monkeypatch, ZeroDivisionError("by\nzero"))
    assert call("train", "x y") == 70
    (file,) = tmp_path.iterdir()
    shown = capsys.readouterr().err
    assert len(shown.splitlines()) == 1
    assert "ZeroDivisionError: by zero" in shown
    assert str(file) in shown
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text().startswith("crust train 'x y'\n")
    assert "Traceback" in file.read_text()
    assert call("train", "--debug") == 70
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (MemoryError(), 2, "crust: out of memory: give a smaller --batch-size, --image-size or --limit\n"),
        (RuntimeError("not enough memory: you tried"), 2, "crust: out of memory: give a smaller --batch-size"),
        (PermissionError(13, "Permission denied", "a.csv"), 2, "crust: cannot use a.csv: permission denied\n"),
        (KeyboardInterrupt(), 130, "crust: stopped, nothing more was written\n"),
    ],
)
def test_what_is_no_bug_is_said(monkeypatch, capsys, error, code, sentence):
    raising(monkeypatch, error)
    assert call("train") == code
    assert capsys.readouterr().err.startswith(sentence)


def test_help_is_light():
    heavy = ["numpy", "pandas", "torch", "numba", "pyarrow", "matplotlib"]
    code = "import sys\nfrom crust.cli import main\ntry: main(['select', '--help'])\n"
    code += f"finally: print([m for m in {heavy} if m in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_as_a_module():
    done = subprocess.run([sys.executable, "-m", "crust", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"crust {crust.__version__}\n"

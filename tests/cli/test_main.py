"""The command `crust` as a whole."""

import subprocess
import sys

import pytest

import crust
from crust.cli import main


def call(*words):
    with pytest.raises(SystemExit) as caught:
        main(list(words))
    return caught.value.code


def test_version(capsys):
    assert call("--version") == 0
    assert capsys.readouterr().out == f"crust {crust.__version__}\n"


@pytest.mark.parametrize("words", [[], ["--help"], ["select", "--help"]])
def test_help_has_an_example(capsys, words):
    assert call(*words) == 0
    shown = capsys.readouterr().out
    assert "Usage: crust" in shown
    assert "crust select features.npy -k 0.1" in shown


def test_unknown_command(capsys):
    assert call("selekt") == 2
    shown = capsys.readouterr().err
    assert shown.startswith("crust: no such command 'selekt'")
    assert len(shown.splitlines()) == 1


def test_a_bug_is_not_hidden(monkeypatch):
    import crust.cli.app

    def fail(**_):
        raise ZeroDivisionError

    monkeypatch.setattr(crust.cli.app, "app", fail)
    with pytest.raises(ZeroDivisionError):
        main([])


def test_help_is_light():
    heavy = ["numpy", "pandas", "torch", "numba", "pyarrow", "matplotlib"]
    code = "import sys\nfrom crust.cli import main\ntry: main(['select', '--help'])\n"
    code += f"finally: print([m for m in {heavy} if m in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_as_a_module():
    done = subprocess.run([sys.executable, "-m", "crust", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"crust {crust.__version__}\n"

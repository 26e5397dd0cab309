"""The tree of errors and its helpers."""

import ast
from pathlib import Path

import pytest

from crust import errors


def test_every_error_is_a_crust_error_and_a_python_one():
    assert issubclass(errors.InputError, errors.CrustError)
    assert issubclass(errors.InputError, ValueError)
    assert issubclass(errors.MissingPackage, errors.CrustError)
    assert issubclass(errors.MissingPackage, ImportError)


def test_require_imports():
    assert errors.require("json", extra="ray").loads("[1]") == [1]


def test_require_names_the_command():
    with pytest.raises(errors.MissingPackage, match=r"run pip install 'crust-learn\[ray\]'$") as caught:
        errors.require("crust_no_such_package", extra="ray")
    assert caught.value.name == "crust_no_such_package"


def test_require_does_not_hide_a_broken_package(tmp_path, monkeypatch):
    (tmp_path / "crust_broken.py").write_text("import crust_missing_inside\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="crust_missing_inside") as caught:
        errors.require("crust_broken", extra="ray")
    assert not isinstance(caught.value, errors.CrustError)


def test_choices_returns_what_is_valid():
    assert errors.choices("lazy", ["greedy", "lazy"], "algorithm") == "lazy"


@pytest.mark.parametrize("value", ["gredy", "GREEDY", "greedy "])
def test_choices_suggests_the_nearest(value):
    with pytest.raises(errors.InputError, match=r"did you mean 'greedy'\?$"):
        errors.choices(value, ["greedy", "lazy", "random"], "algorithm")


@pytest.mark.parametrize("value", ["zzz", 7, None, ["zzz"]])
def test_choices_lists_the_valid_ones(value):
    with pytest.raises(errors.InputError, match=r"^unknown algorithm .*: use one of greedy, lazy$"):
        errors.choices(value, ["greedy", "lazy"], "algorithm")


def test_choices_shortens_long_lists():
    with pytest.raises(errors.InputError, match=r"c19, … \(100 in all\)"):
        errors.choices("zzz", [f"c{i}" for i in range(100)], "column")


def test_every_wrong_input_has_a_code_that_programs_can_rely_on():
    without = []
    for path in Path(errors.__file__).parent.rglob("*.py"):
        calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
        made = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "InputError"]
        without += [f"{path.name}:{call.lineno}" for call in made if "code" not in {word.arg for word in call.keywords}]
    assert not without

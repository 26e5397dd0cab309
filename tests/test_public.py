"""What crust promises to users: names that exist, load late, and show how they are used."""

import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import crust

HEAVY = [
    "torch",
    "torchvision",
    "timm",
    "accelerate",
    "numba",
    "numpy",
    "pandas",
    "pyarrow",
    "sklearn",
    "scipy",
    "typer",
]


def public_objects() -> dict[str, object]:
    """Every name in the `__all__` of any module of crust, by its full name."""
    found = {}
    names = ["crust"] + [m.name for m in pkgutil.walk_packages(crust.__path__, "crust.") if "._" not in m.name]
    for name in names:
        module = importlib.import_module(name)
        for public in getattr(module, "__all__", []):
            found[f"{name}.{public}"] = getattr(module, public)
    return found


PUBLIC = public_objects()


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_shows_how_it_is_used(name):
    thing = PUBLIC[name]
    if not (inspect.isclass(thing) or inspect.isroutine(thing)):
        return  # constants, such as the dict of algorithms, are described where they stand
    doc = inspect.getdoc(thing)
    assert doc, f"{name} has no docstring"
    examples = doctest.DocTestParser().get_examples(doc)
    runs = [example for example in examples if not example.options.get(doctest.SKIP)]
    assert runs, f"{name} has no example (>>>) that runs"
    # pytest's --doctest-modules runs the examples of everything in src; this name must be one of them
    assert thing.__module__.split(".")[0] == "crust"


@pytest.mark.parametrize("name", [name for name, thing in PUBLIC.items() if inspect.isclass(thing)])
def test_every_public_method_has_a_docstring(name):
    for key, value in vars(PUBLIC[name]).items():
        function = inspect.unwrap(getattr(value, "__func__", value))
        if not key.startswith("_") and inspect.isfunction(function):
            assert inspect.getdoc(function), f"{name}.{key} has no docstring"


def test_names_are_listed_and_found():
    assert set(crust.__all__) <= set(dir(crust))
    for name in crust.__all__:
        assert getattr(crust, name) is getattr(importlib.import_module(crust._HOMES[name]), name)


def test_every_public_name_is_in_the_reference():
    pages = "\n".join(path.read_text() for path in (Path(__file__).parents[1] / "docs" / "api").glob("*.md"))
    shown = {line.split()[1] for line in pages.splitlines() if line.startswith(":::")}
    named = {full.rpartition(".")[2] for full in shown}
    constants = {"METHODS"}  # has pages of its own
    missing = {name for name in crust.__all__ if name not in named and crust._HOMES[name] not in shown}
    assert missing == constants
    for full in shown:
        assert pkgutil.resolve_name(full)


def test_rooms_are_found_and_other_names_are_not():
    code = "import crust; print(crust.selection.__name__, crust.errors.__name__, hasattr(crust, 'nothing'))"
    assert run_python(code) == "crust.selection crust.errors False"


def test_type_checkers_see_the_same_names():
    source = inspect.getsource(crust)
    for name, home in crust._HOMES.items():
        assert f"from {home} import {name} as {name}\n" in source


@pytest.mark.parametrize("code", ["import crust", "import crust; dir(crust); crust.CrustError; crust.__version__"])
def test_import_is_light(code):
    assert run_python(f"{code}; import sys; print([m for m in {HEAVY} if m in sys.modules])") == "[]"


@pytest.mark.parametrize(
    "code",
    [
        "import crust.selection",
        "import crust, numpy as np; crust.select(np.eye(3), 2)",
        "import crust, numpy as np; crust.centrality(np.eye(3))",
        "import crust; crust.estimate_cost(100, 2, 10)",
        "import crust.audit; import crust; crust.audit",
    ],
)
def test_selection_and_audit_work_without_torch(code):
    assert run_python(f"{code}; import sys; print('torch' in sys.modules)") == "False"


def test_no_module_hides_a_public_name():
    # A module is set as an attribute of its package when it is imported, even where a name of the package is the same
    code = """
import crust, pkgutil, importlib
for module in pkgutil.walk_packages(crust.__path__, "crust."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
import crust.selection
print([name for name in crust.__all__ if type(getattr(crust, name)).__name__ == "module"],
      [name for name in crust.selection.__all__ if type(getattr(crust.selection, name)).__name__ == "module"],
      callable(crust.centrality))
"""
    assert run_python(code) == "[] [] True"


def test_the_version_is_that_of_the_distribution():
    from importlib.metadata import version

    assert crust.__version__ == version("crust-learn")


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_the_citation_has_the_version():
    citation = (Path(__file__).parents[1] / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {crust.__version__}\n" in citation

"""Imports go one way. Every import in src is read from the source, those inside functions included."""

import ast
import re
from pathlib import Path

import pytest

import crust

SRC = Path(__file__).parents[1] / "src" / "crust"

RANKS = [
    ["errors"],
    ["_util"],
    ["selection", "noise", "gradients", "data", "models"],
    ["audit"],
    ["training", "theory"],
    ["methods", "defaults"],
    ["report"],
    ["review"],
    ["exchange"],
    ["corrections"],
    ["runs"],
    ["fitting", "corrections.apply_corrections"],  # which opens a run; the rest of corrections is for any data
    ["verification", "experiments", "sklearn", "sampler", "theory.diagnose"],
    ["integrations"],
    ["cli", "__main__"],
]
RANK = {room: rank for rank, rooms in enumerate(RANKS) for room in rooms}


def modules() -> dict[str, Path]:
    """All modules of the package by name; the root itself only lists names and is not a room."""
    found = {}
    for path in sorted(SRC.rglob("*.py")):
        parts = path.relative_to(SRC).with_suffix("").parts
        name = ".".join(["crust", *(parts[:-1] if parts[-1] == "__init__" else parts)])
        if name != "crust":
            found[name] = path
    return found


def imports(source: str, module: str, is_package: bool) -> set[str]:
    """The modules of crust that a source imports, as full names."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                kept = parts[: len(parts) - node.level + is_package]
                base = ".".join([*kept, base] if base else kept)
            found |= {f"{base}.{alias.name}" if base == "crust" else base for alias in node.names}
            # `from crust.methods import coteaching` names a module, not only its package
            found |= {f"{base}.{alias.name}" for alias in node.names if f"{base}.{alias.name}" in modules()}
    public = {f"crust.{name}": home for name, home in crust._HOMES.items()}
    return {public.get(name, name) for name in found if name.split(".")[0] == "crust"}


def room_of(module: str) -> str:
    """The package of a module; a single one may have a rank of its own, such as the diagnosis, which opens runs."""
    inner = ".".join(module.split(".")[1:3])
    return inner if inner in RANK else module.split(".")[1]


def complaints(module: str, imported: set[str]) -> list[str]:
    """What is wrong with the imports of a module."""
    room = room_of(module)
    found = []
    for other in sorted(imported - {"crust.__version__"}):
        if other == "crust":
            if room not in ("cli", "__main__"):
                found.append(f"{module} imports crust itself: import the module that is meant")
            continue
        target = room_of(other)
        if target not in RANK:
            found.append(f"{module} imports {other}: {target} has no rank in tests/test_layout.py")
        elif RANK[target] > RANK[room]:
            found.append(f"{module} imports {other}: a step backwards")
        elif RANK[target] == RANK[room] and target != room and "__main__" not in (room, target):
            found.append(f"{module} imports {other}: rooms of one rank do not import each other")
        elif room == target == "methods" and other.count(".") > 1 and module.count(".") > 1 and _apart(module, other):
            found.append(f"{module} imports {other}: methods do not import each other")
    return found


def _apart(module: str, other: str) -> bool:
    """Whether two modules are of different methods; one method may be a folder."""
    return module.split(".")[2] != other.split(".")[2]


@pytest.mark.parametrize("module", modules())
def test_imports_go_one_way(module):
    path = modules()[module]
    assert room_of(module) in RANK, f"{module} has no rank: add its room to tests/test_layout.py"
    found = imports(path.read_text(encoding="utf-8"), module, path.name == "__init__.py")
    assert not complaints(module, found)


@pytest.mark.parametrize(
    ("module", "source", "wrong"),
    [
        ("crust.selection.greedy", "from crust.errors import InputError", False),
        ("crust.selection.greedy", "from .budget import resolve_k", False),
        ("crust.selection.greedy", "def f():\n    from crust.cli import main", True),
        ("crust.selection.greedy", "from ..data import vectors", True),
        ("crust.selection.greedy", "from .. import noise", True),
        ("crust.selection.greedy", "import crust.fitting", True),
        ("crust.errors", "from crust import select", True),
        ("crust.data.matrix_io", "import crust", True),
        ("crust.data.matrix_io", "from crust import noise", True),
        ("crust.training.loop", "from crust import select", False),
        ("crust.training.loop", "from crust import methods", True),
        ("crust.training.loop", "from crust.theory import alignment", True),
        ("crust.audit.label_quality", "import crust.nowhere", True),
        ("crust.cli.select", "import crust", False),
        ("crust.__main__", "from crust.cli import main", False),
        ("crust.methods.mixup", "import crust.methods.coteaching", True),
        ("crust.methods", "from .coteaching import CoTeaching", False),
        ("crust.methods.mentornet.mentornet", "from crust.methods.mentornet.mentor import Mentor", False),
        ("crust.methods.mentornet.mentornet", "from crust.methods.erm import Erm", True),
    ],
)
def test_a_step_backwards_is_noticed(module, source, wrong):
    is_package = module == "crust.methods"
    assert bool(complaints(module, imports(source, module, is_package))) == wrong


def test_the_root_imports_nothing_but_its_helper_when_it_is_imported():
    tree = ast.parse((SRC / "__init__.py").read_text(encoding="utf-8"))
    direct = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {alias.name for node in direct if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in direct if isinstance(node, ast.ImportFrom)}
    assert [name for name in names if name.startswith("crust")] == ["crust._util.lazy_names"]


def test_every_room_is_on_the_map_of_contributing():
    text = (SRC.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    there = {path.stem if path.is_file() else path.name for path in SRC.iterdir() if not path.name.startswith("__")}
    rooms = {room for room in there if (SRC / room).is_dir() or (SRC / f"{room}.py").is_file()}
    mapped = re.findall(r"^  (\w+)(?:/|\.py) ", text, re.MULTILINE)
    assert set(mapped) == rooms
    assert sorted(mapped) == sorted(rooms)  # each of them once
    order = re.search(r"^`(errors → .*)`", text, re.MULTILINE)[1]
    assert [step.split(", ") for step in order.rstrip(".").split(" → ")] == [
        [room for room in rank if room != "__main__"] for rank in RANKS
    ]

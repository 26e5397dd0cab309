"""How easy the code is to find one's way in: a table of meters, printed; `tests/test_meters.py` holds most of them.

python tools/meters.py
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "crust"
# The files of a run folder: only `runs/folder.py` may name them.
RUN_FILES = (
    "config.yaml",
    "history.jsonl",
    "audit.parquet",
    "model.safetensors",
    "recipe.yaml",
    "encoding.json",
    "noise.npz",
    "spec.json",
    "report.html",
    "verified.json",
    "review.sqlite",
    "moves.csv",
    "map.npz",
    "checkpoint",
)
TERMS = ("label quality", "label issue", "pred_probs", "training dynamics", "memoris", "transition matrix")


def sources() -> list[Path]:
    return sorted(SRC.rglob("*.py"))


def repeated_names() -> dict[str, list[str]]:
    """Top-level functions and classes that more than one module defines."""
    homes = defaultdict(set)
    for path in sources():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith(
                "__"
            ):
                homes[node.name].add(str(path.relative_to(SRC)))
    return {name: sorted(found) for name, found in sorted(homes.items()) if len(found) > 1}


def repeated_basenames() -> dict[str, list[str]]:
    homes = defaultdict(list)
    for path in sources():
        if path.name not in ("__init__.py", "__main__.py"):
            homes[path.stem].append(str(path.relative_to(SRC)))
    return {name: found for name, found in sorted(homes.items()) if len(found) > 1}


def _constants(tree: ast.AST) -> Iterable[str]:
    """Strings that code uses: neither docstrings nor other expressions of their own."""
    said = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.value


def knowers_of_run_files() -> list[str]:
    """Modules with the name of a run's file as a string of its own, such as a part of a path."""
    return [
        str(path.relative_to(SRC))
        for path in sources()
        if set(_constants(ast.parse(path.read_text(encoding="utf-8")))) & set(RUN_FILES)
    ]


def loads_torch(module: str) -> bool:
    code = f"import sys, {module}; print('torch' in sys.modules)"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "True\n"


def hits(term: str) -> int:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    return sum(len(re.findall(re.escape(term), page.read_text(encoding="utf-8"), re.IGNORECASE)) for page in pages)


def main() -> None:
    files = sources()
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)
    rows = [
        ("names defined in more than one module", len(repeated_names()), 30),
        ("modules that know files of a run folder", len(knowers_of_run_files()), 1),
        ("basenames used twice", len(repeated_basenames()), 3),
        ("`import crust.audit` loads torch", loads_torch("crust.audit"), False),
        ("`crust.select` loads torch", loads_torch("crust.selection.select_coreset"), False),
        ("files in the wheel", len(files), 200),
        ("lines in the wheel", lines, 30_500),
        *((f"README and docs: hits for {term!r}", hits(term), "3 or more") for term in TERMS),
    ]
    for name, value, most in rows:
        print(f"{name:<50} {value!s:>8}   {'at most ' if isinstance(most, int) and most else ''}{most}")
    if "-v" in sys.argv:
        for title, found in (("names", repeated_names()), ("basenames", repeated_basenames())):
            for name, homes in found.items():
                print(f"{title}: {name}: {', '.join(homes)}")
        print("run files:", ", ".join(knowers_of_run_files()))


if __name__ == "__main__":
    main()

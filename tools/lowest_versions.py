"""The lowest versions that pyproject.toml allows, as pip constraints: python tools/lowest_versions.py [--keep NAME]."""

import argparse
import itertools
import re
from pathlib import Path

import tomllib

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--keep", action="append", default=[], help="a package that may be newer, such as torch")
keep = parser.parse_args().keep
project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
wanted = [*project["dependencies"], *itertools.chain(*project["optional-dependencies"].values())]
for each in sorted(set(wanted)):
    name, lowest = re.match(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", each).groups()
    if name not in keep:
        print(f"{name}=={lowest}")

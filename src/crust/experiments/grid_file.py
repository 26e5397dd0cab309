"""A grid of one's own: a YAML file whose lists are multiplied out to runs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from crust._util.foreign_files import read_file
from crust.errors import CrustError, InputError, choices
from crust.experiments.specs import MOST_SEEDS, RUNTIME, SCALES, key, make
from crust.methods import METHODS
from crust.models import MODELS
from crust.noise import parse_noise
from crust.training.settings import TrainSettings

OWN = ("method", "labels", "seeds", "data", "limit", "model", "augment", "validation", "scale")
LISTS = ("lr_milestones", "tests")  # settings that are lists themselves


def read_grid(path: str | Path, scale: str | None = None, seeds: Iterable[int] | None = None) -> list[dict[str, Any]]:
    """The runs that a grid file asks for, each once.

    What stands at the top holds for all; under `runs` there may be several blocks with more, or something else. Within
    a block each list is multiplied out with each other.
    """
    content, lines = _read_yaml(Path(path))
    blocks = content.pop("runs", None)
    if blocks is None:
        blocks = [{}]
    if not isinstance(blocks, list) or not blocks or not all(isinstance(block, dict) for block in blocks):
        raise InputError(
            f"{path}, line {lines.get(('runs',), 1)}: runs is no list of blocks: begin each with a dash",
            code="bad-grid",
        )
    found: dict[str, dict[str, Any]] = {}
    for number, own in enumerate(blocks):
        where = {name: lines[(name,)] for name in content if (name,) in lines}  # not what an alias brings
        where |= {str(name): lines[here] for name in own if (here := ("runs", number, str(name))) in lines}
        block = {**content, **{str(name): value for name, value in own.items()}}
        if scale is not None:
            block["scale"] = scale
        if seeds is not None:
            block["seeds"] = list(seeds)
        for spec in _multiply(block, where, str(path)):
            found[key(spec)] = spec
    return list(found.values())


def _multiply(block: dict[str, Any], where: dict[str, int], file: str) -> Iterable[dict[str, Any]]:
    """The runs of one block."""

    def place(name: str) -> str:
        return f"{file}, line {where[name]}" if name in where else file

    for name in ("method", "labels"):
        if name not in block:
            hint = "erm or [erm, crust]" if name == "method" else "symmetric:0.5, human:worse or true"
            raise InputError(f"{file} says no {name}: add a line such as {name}: {hint}", code="missing-setting")
    _check_names(block, place)
    axes = {name: _values(name, value, place(name)) for name, value in block.items()}
    order = [name for name in axes if name not in ("seeds", "scale")]
    order.sort(key=lambda name: name not in ("data", "labels", "method"))  # settings vary fastest
    axes.setdefault("seeds", [0])
    axes.setdefault("scale", ["cpu"])
    for values in itertools.product(*(axes[name] for name in ("scale", *order, "seeds"))):
        chosen = dict(zip(("scale", *order, "seed"), values, strict=True))
        for name in chosen:
            own = METHODS[chosen["method"]].Settings.model_fields
            if name not in (*OWN, *TrainSettings.model_fields, *own, "tests"):
                raise InputError(
                    f"{place(name)}: {chosen['method']} has no setting {name}: put it into a block of its own "
                    "under runs",
                    code="unknown-setting",
                )
        labels, method = chosen.pop("labels"), chosen.pop("method")
        try:
            spec = make(method, labels, **chosen)
            METHODS[method](METHODS[method].Settings(**spec["settings"]))  # knows of values that do not go together
        except CrustError as error:
            blamed = {name: rf"setting {re.escape(name)}\b|^{re.escape(name)}=" for name in where}
            blamed |= {"seeds": r"^seed \d"} if "seeds" in where else {}
            guilty = next((name for name, said in blamed.items() if re.search(said, str(error))), "method")
            hint = f"; to try several, write {guilty}: [[…], […]]" if guilty in LISTS else ""
            raise InputError(f"{place(guilty)}: {error}{hint}", code=error.code) from None
        yield spec


def _check_names(block: dict[str, Any], place: Any) -> None:
    """Every name, and the values of those with few, before anything is multiplied."""
    for name, valid in (("method", METHODS), ("scale", SCALES), ("model", [*MODELS, "timm:NAME"])):
        for value in _values(name, block.get(name, "cpu" if name == "scale" else None), place(name)):
            if name != "model" or (isinstance(value, str) and not value.startswith("timm:")):
                _choose(value, valid, name, place(name))
    for value in _values("labels", block["labels"], place("labels")):
        _check_labels(value, place("labels"))
    methods = [METHODS[name] for name in _values("method", block["method"], "")]
    known = [name for name in TrainSettings.model_fields if name not in {*RUNTIME, "seed"}]
    known += [name for kind in methods for name in kind.Settings.model_fields]
    every = {name for kind in METHODS.values() for name in kind.Settings.model_fields}
    for name in block:
        if name == "seed":
            raise InputError(
                f"{place(name)}: seed is called seeds here: write seeds: 3, or seeds: [0, 1, 2]", code="unknown-name"
            )
        if name not in {*OWN, "tests", *known, *every}:
            _choose(name, [*OWN, "runs", *sorted(set(known))], "name", place(name))


def _check_labels(value: Any, where: str) -> None:
    if not isinstance(value, str):
        raise InputError(
            f"{where}: labels is {value!r}: write true, given, human:NAME, or a noise such as symmetric:0.5",
            code="labels-type",
        )
    if value in ("true", "given") or value.startswith("human:"):
        return
    with _named_place(where):
        parse_noise(value)


def _choose(value: Any, valid: Iterable[str], what: str, where: str) -> None:
    with _named_place(where):
        choices(value, valid, what)


@contextmanager
def _named_place(where: str) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {error}", code=error.code) from None


def _values(name: str, value: Any, where: str) -> list[Any]:
    """What is tried of one name."""
    if name == "seeds":
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            if value > MOST_SEEDS:
                raise InputError(
                    f"{where}: seeds is {value}: give at most {MOST_SEEDS}, or a list such as [0, 1, 2]",
                    code="seeds-range",
                )
            return list(range(value))
        good = isinstance(value, list) and value
        if not good or any(isinstance(seed, bool) or not isinstance(seed, int) or seed < 0 for seed in value):
            raise InputError(
                f"{where}: seeds is {value!r}: give how many, such as 3, or a list such as [0, 1, 2]",
                code="seeds-range",
            )
        return list(value)
    if name in LISTS:  # an empty one is a value too: no drops
        return value if isinstance(value, list) and value and all(isinstance(one, list) for one in value) else [value]
    if name == "labels":  # YAML takes the word true for something else
        value = [_word(one) for one in value] if isinstance(value, list) else _word(value)
    if isinstance(value, list):
        if not value:
            raise InputError(
                f"{where}: the list of {name} is empty: give at least one value, or leave it out", code="empty-list"
            )
        return value
    return [value]


def _word(value: Any) -> Any:
    return "true" if value is True else value


def _read_yaml(path: Path) -> tuple[dict[str, Any], dict[tuple[Any, ...], int]]:
    """The content of the file, and the line of each name in it."""
    try:
        text = read_file(path).decode()
        content, tree = yaml.safe_load(text), yaml.compose(text, Loader=yaml.SafeLoader)
    except OSError as error:
        raise InputError(
            f"cannot read the grid {path}: {(error.strerror or str(error)).lower()}", code="cannot-read"
        ) from None
    except (yaml.YAMLError, ValueError) as error:  # of text that is none, and of dates that are none
        raise InputError(f"{path} is no YAML: {' '.join(str(error).split())}", code="bad-yaml") from None
    except RecursionError:
        raise InputError(f"{path} is no YAML that can be read: it is nested too deeply", code="bad-yaml") from None
    if not isinstance(content, dict):
        raise InputError(f"{path} is no grid: write one name a line, such as method: [erm, crust]", code="bad-grid")
    found: dict[tuple[Any, ...], int] = {}
    try:
        _note_lines(tree, (), found, path)
    except RecursionError:
        raise InputError(f"{path} is no grid: something in it is a part of itself", code="bad-grid") from None
    return {str(name): value for name, value in content.items()}, found


def _note_lines(node: Any, path: tuple[Any, ...], found: dict[tuple[Any, ...], int], file: Path) -> None:
    """The line of each name; YAML itself would take the last one of a name that is there twice."""
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            here, line = (*path, str(name.value)), name.start_mark.line + 1
            if here in found:
                raise InputError(
                    f"{file}, line {line}: {name.value} is written twice, first in line {found[here]}: "
                    "leave one of them out",
                    code="duplicate-setting",
                )
            found[here] = line
            _note_lines(value, here, found, file)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            _note_lines(value, (*path, number), found, file)

"""Recipes: all that `crust train` needs to know, in one YAML file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from crust.errors import InputError, choices

FILED = {"cifar10", "cifar100", "webvision"}  # datasets with a name and files
FOLDER = Path(__file__).parent / "recipes"


def recipe_names() -> list[str]:
    """The recipes that come with crust."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def read_recipe(recipe: str | Path) -> dict[str, Any]:
    """A recipe from a file, or one of ours by name."""
    from crust._util.foreign_files import check_regular, parse_yaml, path_of

    path = Path(recipe)
    if path.suffix.lower() not in (".yaml", ".yml"):
        path = FOLDER / f"{choices(str(recipe), [*recipe_names(), 'FILE.yaml'], 'recipe')}.yaml"
    try:
        check_regular(path_of(path, "the recipe"))
        found = parse_yaml(path.read_bytes())
    except OSError as error:
        raise InputError(
            f"cannot read the recipe {path}: {(error.strerror or str(error)).lower()}", code="cannot-read"
        ) from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is no YAML: {' '.join(str(error).split())}", code="bad-yaml") from None
    if not isinstance(found, dict):
        raise InputError(f"{path} is no recipe: write one setting a line, such as epochs: 120", code="bad-recipe")
    return checked_options({str(name): value for name, value in found.items()}, str(path))


class _Options(BaseModel):
    """What belongs to the command line; everything else in a recipe is a setting, checked where it is used."""

    model_config = ConfigDict(strict=True, extra="ignore")

    data: str | None = None
    data_dir: str | None = None
    test: str | None = None
    label_column: str | None = None
    text_column: str | None = None
    image_size: int | None = None
    limit: int | None = None
    skip_broken: bool | None = None
    labels: str | None = None
    true_labels: str | None = None
    noise: str | None = None
    model: str | None = None
    method: str | None = None
    validation: float | None = None
    augment: bool | None = None
    trackers: list[str] | None = None


OPTIONS = tuple(_Options.model_fields)
KINDS = {"string": "a text", "list": "a list", "bool": "true or false", "int": "a whole number", "float": "a number"}


def checked_options(found: dict[str, Any], where: str) -> dict[str, Any]:
    """The same, refused in a sentence where an option is of another kind than it must be."""
    try:
        _Options.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name, kind = str(first["loc"][0]), first["type"].split("_")[0]
        raise InputError(
            f"{name} in {where} is {first['input']!s:.80}: give {KINDS.get(kind, 'something else')}",
            code="bad-recipe",
        ) from None
    return found


def parse_settings(words: Iterable[str]) -> dict[str, Any]:
    """`--set name=value`, as often as it is given; values are read as in YAML.

    Example:
        >>> parse_settings(["fraction=0.3", "nesterov=true", "lr_milestones=[0.5, 0.9]", "selection=central"])
        {'fraction': 0.3, 'nesterov': True, 'lr_milestones': [0.5, 0.9], 'selection': 'central'}
        >>> parse_settings(["fraction"])
        Traceback (most recent call last):
        ...
        crust.errors.InputError: --set fraction has no value: write --set fraction=VALUE
    """
    from crust._util.foreign_files import parse_yaml

    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise InputError(f"--set {word} has no value: write --set {name or 'NAME'}=VALUE", code="missing-value")
        try:
            found[name] = parse_yaml(value)
        except ValueError:
            found[name] = value
        if found[name] is False and value.strip().lower() in ("no", "off"):
            found[name] = value.strip()  # a word such as that of mixed_precision; pydantic knows it as false too
    return found


def split_recipe(found: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options, and settings, which are checked where they are used.

    Example:
        >>> split_recipe({"data": "digits", "epochs": 3})
        ({'data': 'digits', 'method': 'crust'}, {'epochs': 3})
    """
    options = {name: found[name] for name in OPTIONS if found.get(name) is not None}
    options.setdefault("method", "crust")
    return options, {name: value for name, value in found.items() if name not in OPTIONS}


def merge_recipe(
    base: dict[str, Any], given: dict[str, Any], settings: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A recipe with what the command line says above it: options, and settings.

    Settings of the recipe's own method are left out where another method is asked for.

    Example:
        >>> merge_recipe({"method": "erm", "epochs": 3, "limit": 9}, {"limit": 5}, {"seed": 1})
        ({'limit': 5, 'method': 'erm'}, {'epochs': 3, 'seed': 1})
    """
    from crust.methods import METHODS
    from crust.training.settings import TrainSettings

    options, kept = split_recipe(base)
    options |= given
    instead = {"labels": ["noise"], "true_labels": ["noise"], "noise": ["labels", "true_labels"]}
    for name in given:  # noise and labels from files exclude each other: what the command line says wins
        for other in instead.get(name, []):
            if other not in given:
                options.pop(other, None)
    choices(options["method"], METHODS, "method")
    old = base.get("method", options["method"])
    if old != options["method"] and old in METHODS:
        known = {*TrainSettings.model_fields, *METHODS[options["method"]].Settings.model_fields}
        foreign = set(METHODS[old].Settings.model_fields) - known
        kept = {name: value for name, value in kept.items() if name not in foreign}
    return options, kept | settings


def recipe_text(options: dict[str, Any], experiment: Any, own: Any) -> str:
    """The recipe of a run with every setting, as YAML; it means the same from any folder."""
    import yaml

    given = absolute_paths(options)
    chosen = {name: given[name] for name in OPTIONS if given.get(name) is not None}
    values = experiment.model_dump(mode="json", exclude={"stop_after"}) | own.model_dump(mode="json")
    return yaml.safe_dump(chosen | values, sort_keys=False, allow_unicode=True)


def absolute_paths(options: dict[str, Any]) -> dict[str, Any]:
    """The options with every path made absolute, so that a run goes on from whatever folder it is called."""
    from crust.data.load import NAMES

    found = dict(options)
    for name in ("data", "test", "labels", "true_labels", "data_dir"):
        value = options.get(name)
        if value is not None and not (name in ("data", "test") and _is_dataset_name(str(value), NAMES, name)):
            found[name] = os.path.abspath(str(value))  # noqa: PTH100  (links stay as they are)
    kind, _, file = str(options.get("noise") or "").partition(":")
    if kind == "matrix":
        found["noise"] = f"matrix:{os.path.abspath(file)}"  # noqa: PTH100
    if "data_dir" not in found and {str(found.get("data")), str(found.get("test"))} & FILED:
        found["data_dir"] = os.path.abspath(os.environ.get("CRUST_DATA") or "data")  # noqa: PTH100
    return found


def _is_dataset_name(value: str, known: Iterable[str], option: str) -> bool:
    """Whether a dataset is meant by name; a test set of such a name may be a folder."""
    return value in known and not (option == "test" and Path(value).exists())

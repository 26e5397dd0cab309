"""`crust methods`: what there is to train with, and every setting."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic import BaseModel

from crust.cli.formatting import text_table
from crust.errors import choices

HEADS = ("setting", "default", "values", "meaning")


def methods_command(
    name: Annotated[str | None, typer.Argument(help="One method, with all its settings.", show_default=False)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for a machine to read.")] = False,
) -> None:
    """List the training methods; of one of them, every setting with its default and what it means."""
    from rich.console import Console

    from crust.methods import METHODS
    from crust.training.settings import TrainSettings

    console = Console(highlight=False)
    kinds = METHODS if name is None else {name: METHODS[choices(name, METHODS, "method")]}
    if as_json:
        heads = ("method", "what it does", "needs to know", "networks", "settings")
        found = [
            (each, kind.summary, kind.needs, kind.networks,
             [dict(zip(HEADS, row, strict=True)) for row in setting_rows(kind.Settings)])
            for each, kind in kinds.items()
        ]  # fmt: skip
        typer.echo(json.dumps([dict(zip(heads, row, strict=True)) for row in found], indent=2))
        return
    if name is None:
        console.print(_method_table(("method", "what it does", "needs to know"), [
            (each, kind.summary, kind.needs) for each, kind in METHODS.items()
        ]))  # fmt: skip
        console.print("next: crust methods crust shows all settings of one")
        return
    kind = kinds[name]
    console.print(f"{name}: {kind.summary}", markup=False)
    console.print(f"needs to know: {kind.needs}; networks: {kind.networks}", markup=False)
    own = setting_rows(kind.Settings)
    if own:
        console.print(_method_table(HEADS, own, f"settings of {name}"))
    others = [row for row in setting_rows(TrainSettings) if row[0] not in kind.Settings.model_fields]
    console.print(_method_table(HEADS, others, "settings of every run"))
    console.print(f"next: crust train DATA --method {name} --set NAME=VALUE", markup=False)


def setting_rows(settings: type[BaseModel]) -> list[tuple[str, str, str, str]]:
    """Name, default, allowed values and meaning of each setting."""
    rows = []
    for name, field in settings.model_fields.items():
        default = "null" if field.default is None else _default_in_words(field.default)
        values = " ".join([_words(field.annotation), *_bounds_in_words(field.metadata)])
        # In the words of the nearest class that says it: a variant only changes defaults.
        kinds = [kind for kind in settings.__mro__ if issubclass(kind, BaseModel) and name in kind.model_fields]
        meaning = next(filter(None, (kind.model_fields[name].description for kind in kinds)), "")
        rows.append((name, default, values, meaning))
    return rows


def _bounds_in_words(metadata: Sequence[Any]) -> list[str]:
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
    return [f"{sign} {getattr(m, key)}" for m in metadata for key, sign in signs.items() if hasattr(m, key)]


def _default_in_words(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_default_in_words(each) for each in value)}]"
    return f"{value:.4g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)


def _words(annotation: Any) -> str:
    """A type as a user writes its values."""
    if annotation is type(None):
        return "null"
    if get_origin(annotation) is Literal:
        *most, last = map(str, get_args(annotation))
        return f"{', '.join(most)} or {last}" if most else last
    if get_origin(annotation) is Annotated:  # the type, and bounds
        bounds = [each for m in get_args(annotation)[1:] for each in _bounds_in_words(getattr(m, "metadata", [m]))]
        return " ".join([_words(get_args(annotation)[0]), *bounds])
    if get_origin(annotation) is tuple:
        return f"[{_words(get_args(annotation)[0])}, …]"
    if get_origin(annotation) is not None or get_args(annotation):
        return " or ".join(_words(each) for each in get_args(annotation))
    return {bool: "true or false"}.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _method_table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]], title: str | None = None) -> Any:
    return text_table(heads, rows, title=title, left=heads, whole=heads[:1])

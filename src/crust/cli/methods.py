"""`crust methods`: what there is to train with, and every setting."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, get_args, get_origin

from typer import Argument

from crust.cli.formatting import text_table
from crust.errors import choices


def methods_command(
    name: Annotated[str | None, Argument(help="One method, with all its settings.", show_default=False)] = None,
) -> None:
    """List the training methods; of one of them, every setting with its default."""
    from rich.console import Console

    from crust.methods import METHODS
    from crust.training.settings import TrainSettings

    console = Console(highlight=False)
    if name is None:
        console.print(_method_table(("method", "what it does", "needs to know"), [
            (each, kind.summary, kind.needs) for each, kind in METHODS.items()
        ]))  # fmt: skip
        console.print("settings of one: crust methods crust")
        return
    kind = METHODS[choices(name, METHODS, "method")]
    console.print(f"{name}: {kind.summary}", markup=False)
    console.print(f"needs to know: {kind.needs}; networks: {kind.networks}", markup=False)
    heads = ("setting", "default", "values")
    own = kind.Settings.model_fields
    if own:
        console.print(_method_table(heads, setting_rows(own), f"settings of {name}"))
    others = {each: field for each, field in TrainSettings.model_fields.items() if each not in own}
    console.print(_method_table(heads, setting_rows(others), "settings of every run"))
    console.print(f"use them as in: crust train digits --method {name} --set NAME=VALUE", markup=False)


def setting_rows(fields: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Name, default and allowed values of each setting.

    Example:
        >>> from crust.training.settings import TrainSettings
        >>> setting_rows(TrainSettings.model_fields)[:3]
        [('epochs', '120', 'int ≥ 1'), ('batch_size', '128', 'int ≥ 1'), ('optimizer', 'sgd', 'sgd, adam or adamw')]
    """
    rows = []
    for name, field in fields.items():
        default = "null" if field.default is None else _default_in_words(field.default)
        rows.append((name, default, " ".join([_words(field.annotation), *_bounds_in_words(field.metadata)])))
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
    return text_table(heads, rows, title=title, left=heads, whole=(heads[0], *heads[2:]))

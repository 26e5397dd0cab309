"""Public names that are imported when they are first used, so that importing a package stays quick."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The functions `__getattr__` and `__dir__` of a package whose public names live in other modules.

    `homes` has for each name the module that it is imported from; the modules of the package are found as well.

    Example:
        >>> get, names = lazy_names("crust.selection", {"Coreset": "crust.selection.coreset"})
        >>> get("Coreset").__name__
        'Coreset'
    """

    def get(name: str) -> object:
        if name in homes:
            value = getattr(importlib.import_module(homes[name]), name)
        elif not name.startswith("_") and importlib.util.find_spec(f"{package}.{name}"):
            value = importlib.import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return get, names

"""Train on data with wrong labels, and find out which labels are wrong.

The public names live in the modules below and are imported when first used, so that `import crust` stays quick.

Example:
    >>> import crust, numpy as np
    >>> crust.select(np.array([[0.0], [0.1], [5.0]]), 2).indices.tolist()
    [1, 2]
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crust.audit import find_label_issues as find_label_issues
    from crust.corrections.apply_corrections import apply_corrections as apply_corrections
    from crust.errors import CrustError as CrustError
    from crust.errors import InputError as InputError
    from crust.errors import MissingPackage as MissingPackage
    from crust.fitting import fit as fit
    from crust.methods import METHODS as METHODS
    from crust.runs.result import Result as Result
    from crust.runs.result import load as load
    from crust.selection import Coreset as Coreset
    from crust.selection import estimate as estimate
    from crust.selection import select as select
    from crust.sklearn import CrustClassifier as CrustClassifier
    from crust.verification import verify_audit as verify_audit

__version__ = "0.1.0"

# Where each public name lives.
_HOMES = {
    "METHODS": "crust.methods",
    "Coreset": "crust.selection",
    "CrustClassifier": "crust.sklearn",
    "CrustError": "crust.errors",
    "InputError": "crust.errors",
    "MissingPackage": "crust.errors",
    "Result": "crust.runs.result",
    "apply_corrections": "crust.corrections.apply_corrections",
    "estimate": "crust.selection",
    "find_label_issues": "crust.audit",
    "fit": "crust.fitting",
    "load": "crust.runs.result",
    "select": "crust.selection",
    "verify_audit": "crust.verification",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    elif not name.startswith("_") and importlib.util.find_spec(f"crust.{name}"):
        value = importlib.import_module(f"crust.{name}")
    else:
        raise AttributeError(f"module 'crust' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

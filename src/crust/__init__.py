"""Train on data with wrong labels, and find out which labels are wrong.

The public names live in the modules below and are imported when first used, so that `import crust` stays quick.

Example:
    >>> import crust, numpy as np
    >>> crust.select(np.array([[0.0], [0.1], [5.0]]), 2).indices.tolist()
    [1, 2]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crust._util.lazy_names import lazy_names

if TYPE_CHECKING:
    from crust.audit import find_label_issues as find_label_issues
    from crust.corrections.apply_corrections import apply_corrections as apply_corrections
    from crust.errors import CrustError as CrustError
    from crust.errors import InputError as InputError
    from crust.errors import MissingPackage as MissingPackage
    from crust.fitting import fit as fit
    from crust.gradients import proxies as proxies
    from crust.methods import METHODS as METHODS
    from crust.runs.result import Result as Result
    from crust.runs.result import load as load
    from crust.runs.review_session import review_labels as review_labels
    from crust.sampler import CoresetSampler as CoresetSampler
    from crust.sampler import choose as choose
    from crust.sampler import mixing as mixing
    from crust.selection import Coreset as Coreset
    from crust.selection import centrality as centrality
    from crust.selection import estimate_cost as estimate_cost
    from crust.selection import select as select
    from crust.sklearn import CrustClassifier as CrustClassifier
    from crust.verification import verify_audit as verify_audit

__version__ = "0.2.0"

# Where each public name lives.
_HOMES = {
    "METHODS": "crust.methods",
    "Coreset": "crust.selection",
    "CoresetSampler": "crust.sampler",
    "CrustClassifier": "crust.sklearn",
    "CrustError": "crust.errors",
    "InputError": "crust.errors",
    "MissingPackage": "crust.errors",
    "Result": "crust.runs.result",
    "apply_corrections": "crust.corrections.apply_corrections",
    "centrality": "crust.selection",
    "choose": "crust.sampler",
    "estimate_cost": "crust.selection",
    "find_label_issues": "crust.audit",
    "fit": "crust.fitting",
    "load": "crust.runs.result",
    "mixing": "crust.sampler",
    "proxies": "crust.gradients",
    "review_labels": "crust.runs.review_session",
    "select": "crust.selection",
    "verify_audit": "crust.verification",
}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)

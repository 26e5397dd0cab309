"""`fit`, `Result` and `load`: where a method by name meets the loop and the audit."""

from __future__ import annotations

from crust.api.fitting import fit
from crust.api.inputs import as_examples
from crust.api.result import Result, load

__all__ = ["Result", "as_examples", "fit", "load"]

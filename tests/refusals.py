"""How a test says that an input is refused: by the error's code, so that its sentence can be put in better words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from crust.errors import CrustError, InputError


@contextmanager
def refused(code: str, kind: type[CrustError] = InputError) -> Iterator[pytest.ExceptionInfo[CrustError]]:
    """The block raises an error of this kind with this code, in one sentence.

    Args:
        code: of the error.
        kind: its class.
    """
    with pytest.raises(kind) as caught:
        yield caught
    assert caught.value.code == code, f"{caught.value.code!r} instead of {code!r}: {caught.value}"
    assert "\n" not in str(caught.value)

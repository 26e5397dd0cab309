"""The options of a selection: names, numbers, devices and amounts of memory, checked and in one form."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

from crust.errors import InputError, choices

ALGORITHMS = ("greedy", "lazy", "stochastic", "sieve", "greedi", "central", "random")
METRICS = ("euclidean", "sqeuclidean", "cosine", "precomputed")

# A bare letter could mean 1000 or 1024: the smaller keeps the limit under either reading
_UNITS = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgt", start=1):
    _UNITS |= {_letter: 1000**_power, f"{_letter}b": 1000**_power, f"{_letter}ib": 1024**_power}


@dataclass(frozen=True)
class Options:
    """The options of a selection, checked and in one form: what `check_options` returns.

    Example:
        >>> check_options(threads=2)
        Options(algorithm='greedy', metric='euclidean', device=None, threads=2, memory_limit=None, epsilon=0.1, seed=0)
    """

    algorithm: str
    metric: str
    device: str | None
    threads: int | None
    memory_limit: int | None
    epsilon: float
    seed: int


def check_options(
    *,
    algorithm: Any = "greedy",
    metric: Any = "euclidean",
    device: Any = None,
    threads: Any = None,
    memory_limit: Any = None,
    epsilon: Any = 0.1,
    seed: Any = 0,
) -> Options:
    """Hold that each option is one that exists, and bring it into one form.

    Args:
        algorithm: one of ALGORITHMS.
        metric: one of METRICS.
        device: a torch device or its name; None leaves the choice to the caller.
        threads: at least 1; None leaves the choice to the caller.
        memory_limit: bytes, or a string such as "2 GiB"; None leaves the choice to the caller.
        epsilon: between 0 and 1.
        seed: a whole number of at least 0.

    Returns:
        All of them, checked.

    Example:
        >>> check_options(algorithm="lazy", memory_limit="2 GiB").memory_limit
        2147483648
        >>> check_options(metric="cosin")
        Traceback (most recent call last):
        ...
        crust.errors.InputError: unknown metric 'cosin': use one of euclidean, sqeuclidean, cosine, precomputed; \
did you mean 'cosine'?
    """
    return Options(
        algorithm=choices(algorithm, ALGORITHMS, "algorithm"),
        metric=choices(metric, METRICS, "metric"),
        device=check_device(device),
        threads=None if threads is None else _whole_number(threads, "threads", 1),
        memory_limit=None if memory_limit is None else parse_bytes(memory_limit, "memory_limit"),
        epsilon=_check_epsilon(epsilon),
        seed=_whole_number(seed, "seed", 0),
    )


def check_device(device: Any) -> str | None:
    """Hold that a device is there.

    Args:
        device: a torch device, its name such as "cuda:1", or None.

    Returns:
        Its name; None for None.

    Example:
        >>> check_device("cpu")
        'cpu'
    """
    if device is None or device == "cpu":
        return device  # type: ignore[no-any-return]  # without torch: importing it takes seconds
    import torch

    try:
        checked = torch.device(device)
        if checked.type == "meta":
            raise RuntimeError("it holds no values")
        torch.empty(1, device=checked)
    except Exception:  # each kind of device has errors of its own
        available = ["cpu"] + [f"cuda:{i}" for i in range(torch.cuda.device_count())]
        available += ["mps"] if torch.backends.mps.is_available() else []
        name = str(device) if isinstance(device, torch.device) else device
        raise InputError(f"device {name!r} is not there: use {' or '.join(map(repr, available))}") from None
    return str(checked)


def parse_bytes(size: Any, what: str = "the size") -> int:
    """Read an amount of memory.

    Args:
        size: a number of bytes, or a string with a unit: kB, MB, GB, TB count in thousands, KiB, MiB, GiB, TiB in 1024.
        what: what the messages call it.

    Returns:
        Bytes, at least 1.

    Example:
        >>> parse_bytes("1.5 GiB"), parse_bytes("2GB"), parse_bytes(4096)
        (1610612736, 2000000000, 4096)
    """
    count = 0
    if isinstance(size, str):
        match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([a-z]*)\s*", size.lower(), re.ASCII)
        if match and match[2] in _UNITS:
            count = int(Fraction(match[1]) * _UNITS[match[2]])
    elif not isinstance(size, bool) and isinstance(size, Real) and math.isfinite(size):
        count = int(float(size))
    if count < 1:
        raise InputError(f"{what} is {_as_typed(size)}, but it must be a number of bytes above 0, or such as '2 GiB'")
    return count


def _whole_number(value: Any, what: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise InputError(f"{what} is {_as_typed(value)}, but it must be a whole number of at least {least}")
    return int(value)


def _check_epsilon(epsilon: Any) -> float:
    if not isinstance(epsilon, Real) or not 0 < float(epsilon) < 1:
        raise InputError(f"epsilon is {_as_typed(epsilon)}, but it must be a number above 0 and below 1, such as 0.1")
    return float(epsilon)


def _as_typed(value: Any) -> str:
    """A value as a user would have typed it: 3 rather than np.int64(3)."""
    return str(value) if isinstance(value, Real) else repr(value)

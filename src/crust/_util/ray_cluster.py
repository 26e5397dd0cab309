"""A Ray cluster: one that runs already, or a small one on this machine for as long as it is needed."""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from crust.errors import InputError, require

REFUSED = ("InvalidAuthToken", "AuthenticationError", "Unauthenticated")  # in what Ray says
REACH = 5.0  # seconds to wait for an answer; Ray itself would wait for a very long time
ALONE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # 0: Ray takes 127.0.0.1 for its address, as on systems without clusters


def connect(address: str | None = None, cpus: int | None = None) -> tuple[Any, bool]:
    """Connect to a cluster, unless this process is connected already.

    Args:
        address: such as `auto`, `10.0.0.1:6379` or `ray://10.0.0.1:10001`; None: that of RAY_ADDRESS, else a cluster of
            our own on this machine, which listens on loopback only.
        cpus: how many cores our own may use; default: all.

    Returns:
        The module `ray`, and whether it is ours to shut down.

    Example:
        >>> connect("127.0.0.1:1")
        Traceback (most recent call last):
        ...
        crust.errors.InputError: there is no Ray cluster at 127.0.0.1:1 (...): start one with ray start --head, ...
    """
    ray = require("ray", extra="ray")
    if ray.is_initialized():
        if address not in (None, "auto", "local") and "://" not in str(address):
            there = ray.get_runtime_context().gcs_address
            if address != there:
                raise InputError(f"this process works with the Ray cluster at {there} already: leave the address out")
        return ray, False
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    where = address or os.environ.get("RAY_ADDRESS")
    said: list[str] = []
    try:
        if where in (None, "local"):
            with _on_loopback(ray):
                ray.init(address="local", num_cpus=cpus, include_dashboard=False, **quiet)
        else:
            assert where is not None
            _reach(where)
            with _overheard(said):
                ray.init(address=where, **quiet)
    except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        reason = " ".join(str(error).split())[:200].rstrip(".")
        if where in (None, "local"):
            raise InputError(f"Ray does not start on this machine: {reason}") from None
        if any(word in text for word in REFUSED for text in (type(error).__name__, str(error), *said)):
            raise InputError(
                f"the Ray cluster at {where} refuses us, for the token is missing or another one: set RAY_AUTH_MODE "
                "and RAY_AUTH_TOKEN (or RAY_AUTH_TOKEN_PATH) as the cluster has them"
            ) from None
        raise InputError(
            f"there is no Ray cluster at {where} ({reason}): start one with ray start --head, or leave the address out "
            "to use this machine"
        ) from None
    return ray, True


@contextmanager
def _overheard(said: list[str]) -> Iterator[None]:
    """What goes to stderr meanwhile, from Ray's C++ too: its error does not say why a cluster refuses, its log does.

    Where all goes well it is shown afterwards; else the one who asked says what it means.
    """
    sys.stderr.flush()
    before = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(before, 2)
            os.close(before)
            file.seek(0)
            said.append(file.read().decode(errors="replace"))
    sys.stderr.write(said[-1])


@contextmanager
def _on_loopback(ray: Any) -> Iterator[None]:
    """A Ray that is started here is heard on this machine only; by itself it would listen on every interface.

    Its processes read this from the environment; this one has read it already, when Ray was imported.
    """
    constants = ray._private.ray_constants
    before, known = os.environ.get(ALONE), constants.ENABLE_RAY_CLUSTER
    os.environ[ALONE], constants.ENABLE_RAY_CLUSTER = "0", False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = known
        if before is None:
            del os.environ[ALONE]
        else:
            os.environ[ALONE] = before


def _reach(address: str) -> None:
    """Hold that somebody listens, where the address is one of a machine."""
    found = re.fullmatch(r"(?:ray://)?(\[[^\]]+\]|[^:/]+):(\d+)", address)
    if found:
        socket.create_connection((found[1].strip("[]"), int(found[2])), timeout=REACH).close()

"""A Ray cluster: one that runs already, or a small one on this machine for as long as it is needed."""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from crust.errors import InputError, require

REACH = 5.0  # seconds to wait for an answer; Ray itself would wait for a very long time
ALONE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # 0: Ray takes 127.0.0.1 for its address, as on systems without clusters


def connect(address: str | None = None, cpus: int | None = None) -> tuple[Any, bool]:
    """Connect to a cluster, unless this process is connected already.

    Args:
        address: such as `auto`, `10.0.0.1:6379` or `ray://10.0.0.1:10001`; None: that of RAY_ADDRESS, else a cluster of
            our own on this machine, which listens on loopback only where nobody has imported Ray before.
        cpus: how many cores our own may use; default: all.

    Returns:
        The module `ray`, and whether it is ours to shut down.
    """
    where = address or os.environ.get("RAY_ADDRESS") or "local"
    with _on_loopback(where == "local"):
        ray = require("ray", extra="ray")
        if ray.is_initialized():
            if address not in (None, "auto", "local") and "://" not in str(address):
                there = ray.get_runtime_context().gcs_address
                if address != there:
                    raise InputError(
                        f"this process works with the Ray cluster at {there} already: leave the address out",
                        code="other-cluster",
                    )
            return ray, False
        more = {"num_cpus": cpus, "include_dashboard": False} if where == "local" else {}
        reached = False
        try:
            reached = _reach(where)
            ray.init(address=where, log_to_driver=False, logging_level=logging.ERROR, **more)
        except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
            reason = " ".join(str(error).split())[:200].rstrip(".")
            if where == "local":
                raise InputError(f"Ray does not start on this machine: {reason}", code="ray-start") from None
            if reached:  # Ray's error does not say whether a token is wrong, or missing
                raise InputError(
                    f"the Ray cluster at {where} refuses us, or is none ({reason}): where it asks for a token, set "
                    "RAY_AUTH_MODE and RAY_AUTH_TOKEN (or RAY_AUTH_TOKEN_PATH) as the cluster has them",
                    code="cluster-refuses",
                ) from None
            raise InputError(
                f"there is no Ray cluster at {where} ({reason}): start one with ray start --head, or leave the address "
                "out to use this machine",
                code="no-cluster",
            ) from None
    return ray, True


def check_ray() -> None:
    """Hold that Ray is installed, without importing it: how it listens is settled when it is imported."""
    if importlib.util.find_spec("ray") is None:
        require("ray", extra="ray")


@contextmanager
def _on_loopback(alone: bool) -> Iterator[None]:
    """A Ray that is imported and started here is heard on this machine only; else it listens on every interface."""
    if not alone or "ray" in sys.modules:
        yield
        return
    before = os.environ.get(ALONE)
    os.environ[ALONE] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[ALONE]
        else:
            os.environ[ALONE] = before


def _reach(address: str) -> bool:
    """Hold that somebody listens, where the address is one of a machine; False where it is none."""
    found = re.fullmatch(r"(?:ray://)?(\[[^\]]+\]|[^:/]+):(\d+)", address)
    if found:
        socket.create_connection((found[1].strip("[]"), int(found[2])), timeout=REACH).close()
    return found is not None

"""What a run was made on, as far as its seconds depend on it."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

import torch

CPUINFO = Path("/proc/cpuinfo")


def machine(device: torch.device) -> dict[str, Any]:
    """Processor, threads, PyTorch, the GPU where there is one; and whether runs were made beside each other.

    Args:
        device: that the run was made on.

    Example:
        >>> list(machine(torch.device("cpu")))
        ['processor', 'cpu', 'threads', 'torch']
    """
    found: dict[str, Any] = {
        "processor": platform.machine(),
        "cpu": cpu_name(),
        "threads": torch.get_num_threads(),
        "torch": str(torch.__version__),
    }
    if device.type == "cuda":
        found["gpu"] = torch.cuda.get_device_name(device)
    return {**found, "shared": True} if _beside_others() else found


def cpu_name() -> str:
    """The processor's name; empty where nobody says it."""
    try:
        lines = CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _beside_others() -> bool:
    """Whether this is one of several processes that make runs: of `--jobs`, or of a Ray cluster."""
    if parent_process() is not None:
        return True
    ray: Any = sys.modules.get("ray")
    return bool(ray and ray.is_initialized() and ray.get_runtime_context().worker.mode == ray.WORKER_MODE)


def comparable(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether the seconds of two result lines can be compared: one kind of machine, which they had to themselves.

    Lines from before there was more than processor, threads and PyTorch are compared by these.

    Example:
        >>> a100, a10 = ({"machine": {"processor": "x86_64", "gpu": name}} for name in ("A100", "A10"))
        >>> comparable(a100, a100), comparable(a100, a10)
        (True, False)
        >>> shared = {"machine": {"processor": "x86_64", "shared": True}}
        >>> comparable(shared, shared)
        False
    """
    ours, theirs = one.get("machine"), other.get("machine")
    return ours == theirs and not (isinstance(ours, dict) and ours.get("shared"))

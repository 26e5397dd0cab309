"""One specification, from data to a result line, which also says what machine its seconds are from."""

from __future__ import annotations

import datetime
import platform
import sys
from collections.abc import Callable
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from crust._util.torch_modules import device_of
from crust.data import Bundle, Examples, load
from crust.errors import InputError
from crust.experiments.specs import key
from crust.fitting import fit
from crust.runs.data import labels_of_spec
from crust.runs.folder import RunFolder
from crust.runs.result import Result

CPUINFO = Path("/proc/cpuinfo")
FACTS = ("fraction", "noise_rate", "noise_info", "stopped")
CURVES = (
    "test_accuracy", "val_accuracy", "train_accuracy", "train_true_accuracy", "clean_fraction",
    "clean_fraction_weighted", "n_selected",
)  # fmt: skip


def train_spec(
    spec: dict[str, Any],
    folder: str | Path,
    *,
    data_dir: str | Path | None = None,
    human_labels: str | Path | None = None,
    keep_every: int | None = None,
    workers: int = 0,
    skip_broken: bool = False,
    report: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """Run a specification, or go on with it where its folder holds a checkpoint, and return the result line.

    Args:
        spec: from `make`.
        folder: the run's folder.
        data_dir: where the datasets are.
        human_labels: an .npz of people's labels, for `human:NAME`.
        keep_every: epochs between checkpoints that stay, for `crust theory`; None: only the newest two.
        workers: processes that read images which do not fit into memory.
        skip_broken: leave out images that cannot be read.
        report: called with the history's line after every epoch.

    Example:
        >>> import tempfile
        >>> from crust.experiments import make
        >>> line = train_spec(make("erm", "symmetric:0.2", scale="smoke", epochs=1), tempfile.mkdtemp() + "/run")
        >>> sorted(line)
        ['accuracy', 'audit', 'cost', 'curves', 'date', 'facts', 'key', 'machine', 'spec']
    """
    RunFolder(folder).write_spec(spec)
    bundle = load(spec["data"], data_dir=data_dir, limit=spec["limit"], skip_broken=skip_broken)
    given, truth = labels_of_spec(bundle, spec["labels"], spec["experiment"]["seed"], human_labels)
    result = fit(
        spec["model"],
        bundle.train.with_labels(given),
        method=spec["method"],
        true_labels=None if truth is None else bundle.train.decode(truth),
        test_set=named_tests(bundle, spec) or bundle.test,
        validation=spec["validation"],
        augment=spec["augment"],
        run_dir=folder,
        resume=True,
        on_epoch_end=report,
        progress=False,
        keep_every=keep_every,
        workers=workers,
        top=5 if spec.get("tests") else None,
        **spec["experiment"],
        **spec["settings"],
    )
    return _result_line(spec, result, None if truth is None else given != truth)


def named_tests(bundle: Bundle, spec: dict[str, Any]) -> dict[str, Examples]:
    """The test sets that are asked for by name."""
    there = {name: one for name, one in {"test": bundle.test, **bundle.more_tests}.items() if one is not None}
    for name in spec.get("tests", []):
        if name not in there:
            raise InputError(
                f"{spec['data']} has no test set {name!r} here, only {', '.join(there) or 'none'}: add it to the data, "
                "or leave it out of tests",
                code="unknown-test-set",
            )
    return {name: there[name] for name in spec.get("tests", [])}


def _result_line(spec: dict[str, Any], result: Result, wrong: NDArray[np.bool_] | None) -> dict[str, Any]:
    curves = {name: [_rounded(value) for value in result.history[name]] for name in CURVES}
    seconds = {name: round(value, 1) for name, value in result.cost["seconds"].items()}
    return {
        "key": key(spec),
        "spec": spec,
        "accuracy": {name: _rounded(value) for name, value in result.accuracy.items()},
        **({"tests": _by_test(spec["tests"], result)} if spec.get("tests") else {}),
        "curves": {name: values for name, values in curves.items() if any(value is not None for value in values)},
        "audit": audit_quality(result, wrong),
        "cost": {"forward": result.cost["forward"], "backward": result.cost["backward"], "seconds": seconds},
        "facts": {name: value for name, value in result.history.lines[-1].items() if name in FACTS},
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "machine": machine(device_of(result.model)),
    }


def _by_test(names: list[str], result: Result) -> dict[str, Any]:
    """Top-1 and top-5 on each of several test sets; the first one is that of the accuracy."""
    found: dict[str, Any] = {}
    for number, name in enumerate(names):
        end = f"_{name}" if number else ""
        tops = {"top1": f"test_accuracy{end}", "top5": f"test_top5{end}"}
        found[name] = {
            top: {word: _rounded(value) for word, value in result.history.accuracy(key).items()}
            for top, key in tops.items()
        }
    return found


def audit_quality(result: Result, wrong: NDArray[np.bool_] | None) -> dict[str, float] | None:
    """How well the label quality finds the wrong labels; None where there are none, or nobody knows."""
    if wrong is None or not wrong.any() or wrong.all():
        return None
    from sklearn.metrics import average_precision_score, roc_auc_score

    table = result.audit()
    suspicion = np.empty(len(table))
    suspicion[table["index"].to_numpy()] = 1 - table["label_quality"].to_numpy()
    top = np.argsort(-suspicion, kind="stable")[: int(wrong.sum())]
    return {
        "auroc": round(float(roc_auc_score(wrong, suspicion)), 4),
        "average_precision": round(float(average_precision_score(wrong, suspicion)), 4),
        "precision_at_count": round(float(wrong[top].mean()), 4),
    }


def _rounded(value: Any) -> Any:
    return round(value, 5) if isinstance(value, float) else value


def machine(device: torch.device) -> dict[str, Any]:
    """Processor, threads, PyTorch, the GPU where there is one; and whether runs were made beside each other.

    Args:
        device: that the run was made on.
    """
    found: dict[str, Any] = {"processor": platform.machine(), "cpu": cpu_name()}
    found |= {"threads": torch.get_num_threads(), "torch": str(torch.__version__)}
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

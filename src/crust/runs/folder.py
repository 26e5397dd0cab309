"""The folder of a run. `RunFolder` alone knows the names of its files, and how a run is begun and opened again.

Nothing here needs torch until a run is trained or its history is read: reports and reviews open runs too.
"""

from __future__ import annotations

import errno
import json
import logging
import platform
import shlex
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crust._util.atomic_write import make_folder, remove_drafts, write_atomic
from crust._util.foreign_files import parse_json, parse_yaml, path_of, read_file
from crust.errors import InputError
from crust.runs.schema import checked_file

if TYPE_CHECKING:
    import pandas as pd
    import torch
    from filelock import FileLock

    from crust.noise import NoisyLabels
    from crust.runs.result import Result
    from crust.training.recorder import History, Recorder

__all__ = ["RunFolder"]

REPORT = "report.html"
NEEDED = ("index", "given_label", "predicted_label", "predicted_prob", "label_quality", "selection_rate", "is_held_out")

log = logging.getLogger("crust")


class RunFolder:
    """All that is known about a run's folder.

    What counts is the newest checkpoint, which is there whole or not at all: it holds the history too, and what else is
    there is either written before the first one or made from the last one, and made again where a run goes on. So a
    run can be killed anywhere. Who writes holds a lock on the folder, which ends with the process.

    | file | what it holds | written |
    |---|---|---|
    | config.yaml | the settings, fingerprints of the data, versions | when the run begins, and at its end |
    | recipe.yaml, encoding.json, noise.npz | what `crust train` was asked for, how it read the data, made noise | " |
    | spec.json | the specification, of a run of `crust reproduce` | " |
    | history.jsonl, checkpoint/ | a line an epoch; all that is needed to go on | after every epoch |
    | model.safetensors, audit.parquet | the model that is kept; one row a training example | at the end |
    | probabilities.npy | those of all classes that the audit goes by, a row a training example | " |
    | verified.json, verification/ | how far the audit can be trusted; the training that says so | `crust verify` |
    | review.sqlite | the decisions of people | `crust review` |
    | map.npz | all examples in two dimensions, for the pages' map | `crust report`, `review` |
    | report.html, moves.csv, corrected.* | the page; files to move; corrected labels | `crust report`, `apply` |

    Args:
        path: the folder; it need not be there yet.

    Example:
        >>> run = RunFolder("runs/a")
        >>> run.audit_path.name, run.trained_by
        ('audit.parquet', None)
    """

    def __init__(self, path: str | Path | RunFolder):
        self.path = path_of(path, "the folder of the run")
        self.config_path = self.path / "config.yaml"
        self.history_path = self.path / "history.jsonl"
        self.checkpoint_dir = self.path / "checkpoint"
        self.model_path = self.path / "model.safetensors"
        self.audit_path = self.path / "audit.parquet"
        self.probabilities_path = self.path / "probabilities.npy"
        self.recipe_path = self.path / "recipe.yaml"
        self.encoding_path = self.path / "encoding.json"
        self.noise_path = self.path / "noise.npz"
        self.spec_path = self.path / "spec.json"
        self.report_path = self.path / REPORT
        self.verified_path = self.path / "verified.json"
        self.review_path = self.path / "review.sqlite"
        self.moves_path = self.path / "moves.csv"
        self.map_path = self.path / "map.npz"
        self.lock_path = self.path / ".lock"
        self._lock: FileLock | None = None
        self._at_begin: dict[Path, Callable[[], None]] = {}  # what writes them

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)

    @property
    def verification(self) -> RunFolder:
        """The second training, with injected label errors, which is a run of its own inside this one."""
        return RunFolder(self.path / "verification")

    def corrected_path(self, suffix: str) -> Path:
        """Where corrected labels, or data with them, go by default."""
        return self.path / f"corrected{suffix}"

    # ------------------------------------------------------------ opened again

    @property
    def trained_by(self) -> str | None:
        """By what the run says which data it was trained on: its `recipe`, its `spec`, or nothing."""
        return "recipe" if self.recipe_path.is_file() else "spec" if self.spec_path.is_file() else None

    def config(self) -> dict[str, Any]:
        """The settings of the run, and fingerprints of its data; there as soon as it has begun."""
        if not self.path.is_dir():
            raise InputError(f"there is no folder {self}: give the folder of a run", code="missing-folder")
        if not self.config_path.is_file():
            raise InputError(f"{self} holds no run: give the folder of one", code="no-run")
        try:
            found = parse_yaml(read_file(self.config_path))
            if not isinstance(found, dict) or "method" not in found:
                raise ValueError("it is no config")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or " ".join(str(error).split())
            raise InputError(f"{self} holds no run ({reason}): give the folder of one", code="no-run") from None
        self._refuse_earlier_version(found)
        checked: dict[str, Any] = checked_file("config", found, str(self.config_path), "no-run")
        return checked

    def _refuse_earlier_version(self, config: dict[str, Any]) -> None:
        experiment = config.get("experiment")
        if isinstance(experiment, dict) and "drops" in experiment:  # what lr_milestones was called
            raise InputError(
                f"the run in {self} is of an earlier version of crust: train again, into another folder", code="old-run"
            )

    def audit(self) -> tuple[pd.DataFrame, list[Any]]:
        """The audit's table that a finished run has left, and the classes in the order of their numbers."""
        config = self.config()
        if not self.audit_path.is_file():
            raise InputError(
                f"{self} holds no audit yet: let the run end with crust train --resume -o {self}", code="no-audit"
            )
        try:
            table = self.audit_table()
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"the audit in {self} cannot be read: {' '.join(str(error).split())}", code="bad-audit"
            ) from None
        self._check_audit(table, config["classes"])
        return table, list(config["classes"])

    def audit_table(self) -> pd.DataFrame:
        """The table as it was written, unchecked."""
        import pyarrow.parquet as pq

        from crust.audit.audit_tables import LISTS

        with pq.ParquetFile(self.audit_path) as file:
            found = file.read()
        there = [name for name in LISTS if name in found.column_names]
        table = found.drop_columns(there).to_pandas()
        for name in there:  # several times as fast as one array a row
            place = found.column_names.index(name)
            table.insert(place, name, found.column(name).to_pylist())
        return table

    def _check_audit(self, table: pd.DataFrame, classes: list[Any]) -> None:
        """Refuse a table that no run has left."""
        from crust.audit.audit_tables import odd_column

        again = f"copy {self.audit_path.name} and {self.config_path.name} from the same run again"
        lacking = [name for name in NEEDED if name not in table]
        if lacking:
            raise InputError(f"the audit in {self} has no column {lacking[0]!r}: {again}", code="bad-audit")
        if not len(table):
            raise InputError(f"the audit in {self} has no rows: {again}", code="bad-audit")
        odd = odd_column(table)
        if odd is not None:
            raise InputError(f"the audit in {self} has {odd}: {again}", code="bad-audit")
        if not table["index"].is_unique or table["index"].min() < 0:
            raise InputError(
                f"the audit in {self} has no two rows of one index, and none below 0: {again}", code="bad-audit"
            )
        for name in ("given_label", "predicted_label"):
            known = frozenset(classes)
            others = [one for one in table[name].tolist() if not isinstance(one, Hashable) or one not in known]
            if others:
                what = f"the {name} {str(others[0])!r:.80}, which is none of the run's classes"
                raise InputError(f"the audit in {self} has {what}: {again}", code="bad-audit")
        for name in ("label_quality", "predicted_prob"):
            if not table[name].between(0, 1).all():
                raise InputError(f"the audit in {self} has a {name} that is not from 0 to 1: {again}", code="bad-audit")

    def history(self) -> History:
        """What was measured, epoch by epoch."""
        from crust.training.recorder import History

        if not self.history_path.is_file():
            raise InputError(f"{self} holds no history: give the folder of a finished run", code="no-history")
        found = History.load(self.history_path)
        for line in found:
            checked_file("history", line, str(self.history_path), "no-history")
        return found

    def seconds(self) -> float:
        """How long the training took."""
        parts = [line.get("seconds", {}) for line in self.history()]
        # selection is a part of the epoch
        return float(sum(value for part in parts for name, value in part.items() if name != "selection"))

    def weights(self) -> dict[str, torch.Tensor]:
        """Those of the model that is kept."""
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            return load_file(self.model_path)
        except (OSError, SafetensorError) as error:
            raise InputError(f"{self} holds no finished run: {error}", code="unfinished-run") from None

    def recipe(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What `crust train` was asked for: options, which name the data, and settings."""
        from crust.runs.recipe import read_recipe, split_recipe

        return split_recipe(read_recipe(self.recipe_path))

    def spec(self) -> dict[str, Any]:
        """The specification of a run of `crust reproduce`."""
        try:
            return dict(parse_json(read_file(self.spec_path)))
        except (OSError, ValueError, TypeError):
            raise InputError(
                f"{self.spec_path} does not say what was run: give the specification of the run", code="unknown-data"
            ) from None

    def encoding(self) -> dict[str, Any]:
        """How `crust train` has read the data, so that new data is read in the same way."""
        try:
            found = parse_json(read_file(self.encoding_path))
        except (OSError, ValueError):
            raise InputError(
                f"{self} does not say how its data was read, as runs of crust train do: "
                "predict from Python with crust.load(run).predict(data)",
                code="unknown-data",
            ) from None
        encoding: dict[str, Any] = checked_file("encoding", found, str(self.encoding_path), "unknown-data")
        return encoding

    def verified(self) -> dict[str, Any] | None:
        """How far the audit can be trusted, as `crust verify` has found; None where nobody has asked."""
        from crust.audit.accuracy.verified_file import read_verified

        found = read_verified(self.verified_path)
        return None if found is None else checked_file("verified", found, str(self.verified_path), "damaged-file")

    # ------------------------------------------------------------ begun and finished

    def remember_data(self, recipe: str, encoding: dict[str, Any], noise: NoisyLabels | None = None) -> None:
        """What says which data the run is trained on, for those who open it again; written once it begins."""
        text = json.dumps(encoding, ensure_ascii=False, default=json_value)
        self._at_begin = {
            self.recipe_path: partial(write_atomic, self.recipe_path, recipe.encode()),
            self.encoding_path: partial(write_atomic, self.encoding_path, text.encode()),
        }
        if noise is not None:
            self._at_begin[self.noise_path] = partial(noise.save, self.noise_path)

    def write_spec(self, spec: dict[str, Any]) -> None:
        """The same for a run of `crust reproduce`."""
        make_folder(self.path)
        write_atomic(self.spec_path, json.dumps(spec, indent=1).encode())

    def claim(self) -> None:
        """Nobody else writes here until `release`, or until this process is gone; what killed ones have left goes."""
        from filelock import FileLock, Timeout

        if self._lock is None:
            make_folder(self.path)
            self._lock = FileLock(self.lock_path)
        first = not self._lock.is_locked
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise InputError(
                f"another command is writing to {self}: wait until it has ended, or choose another folder",
                code="folder-in-use",
            ) from None
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):  # these say so when something is written
                log.warning("%s cannot be locked (%s): let no other command write to it", self, error.strerror or error)
        if first:
            for path in vars(self).values():
                if isinstance(path, Path) and path not in (
                    self.path,
                    self.report_path,
                    self.verified_path,
                    self.map_path,
                ):
                    remove_drafts(path)

    def release(self) -> None:
        """The end of `claim`."""
        if self._lock is not None:
            self._lock.release()

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Nobody else writes here meanwhile."""
        self.claim()
        try:
            yield
        finally:
            self.release()

    def what_is_there(self, changed: Sequence[str] = ()) -> str | None:
        """The run that stands in the way of a new one, in a sentence; None where nothing of one was saved."""
        from crust.training import checkpoint

        saved, quoted = checkpoint.numbered(self.checkpoint_dir), shlex.quote(str(self))
        if not saved and not self.audit_path.exists():
            return None
        if changed:
            return f"{self} holds another run, with {', '.join(changed)}: choose another folder"
        if self.audit_path.exists():
            return (
                f"{self} holds a run already, with its model and audit: see it with crust audit {quoted}, go on with "
                "--resume, or choose another folder"
            )
        return (
            f"{self} holds a run already, saved after epoch {int(saved[-1].name)}: go on with "
            f"crust train --resume -o {quoted}, or choose another folder"
        )

    def begin(self, config: dict[str, Any], recorder: Recorder, resume: bool) -> dict[str, Any]:
        """Begin a run, or go on with the one that is there; what it is made with, for the record.

        The folder is claimed then: whoever trains releases it at the end.
        """
        if recorder.context.processes.first:
            self.claim()
        try:
            return self._begin(config, recorder, resume)
        except BaseException:
            self.release()
            raise

    def _begin(self, config: dict[str, Any], recorder: Recorder, resume: bool) -> dict[str, Any]:
        from crust.training import checkpoint

        processes = recorder.context.processes
        processes.wait()  # the folder is ours
        found = checkpoint.newest(self.checkpoint_dir) if self.checkpoint_dir.exists() else None
        if found is not None and not (isinstance(found, dict) and isinstance(found.get("identity"), dict)):
            raise self._foreign_checkpoint()
        processes.wait()  # all have looked before the first one writes
        if not resume:
            changed = [] if found is None else _differences(found["identity"], json.loads(json.dumps(config)))
            there = self.what_is_there(changed)
            if there is not None:
                raise InputError(there, code="run-exists")
        if found is None:
            made_with = {"versions": versions()}
        else:
            self._load_checkpoint(found, config, recorder)
            made_with = versions_so_far(self._written_config(), self.path) if processes.first else {}
        if processes.first:
            checkpoint.tidy(self.checkpoint_dir, recorder.context.settings.keep_every)
            for path in (self.recipe_path, self.encoding_path, self.noise_path):
                if path in self._at_begin and (found is None or not path.exists()):
                    self._at_begin[path]()
                elif found is None:  # of a run that was stopped before its first epoch was finished
                    path.unlink(missing_ok=True)
            if found is not None:
                recorder.history.save(self.history_path)
            if found is None or any(self._written_config().get(name) != value for name, value in made_with.items()):
                self._write_config({**config, **made_with})
        return made_with

    def _load_checkpoint(self, found: dict[str, Any], config: dict[str, Any], recorder: Recorder) -> None:
        self._refuse_earlier_version(found["identity"])
        changed = _differences(found["identity"], json.loads(json.dumps(config)))
        if changed:
            raise InputError(
                f"the run in {self} cannot go on, since this has changed: {', '.join(changed)}", code="changed-settings"
            )
        try:
            recorder.load(found)
        except RuntimeError as error:
            raise InputError(
                f"the run in {self} had another model: {str(error).splitlines()[0]}", code="other-model"
            ) from None
        except (ValueError, LookupError, TypeError, AttributeError, AssertionError):
            raise self._foreign_checkpoint() from None

    def _foreign_checkpoint(self) -> InputError:
        return InputError(
            f"the newest checkpoint in {self.checkpoint_dir} is not as crust has written it: remove it, to go on from "
            "the one before it",
            code="damaged-file",
        )

    def finish(self, result: Result, weights: bool = True) -> None:
        """Leave the kept model and the audit; and what was found out about the noise, beside the settings."""
        import numpy as np
        from safetensors.torch import save

        if weights:
            trained = result.model.state_dict()
            content = save({name: value.detach().to("cpu", copy=True).contiguous() for name, value in trained.items()})
            if not self.model_path.is_file() or self.model_path.read_bytes() != content:
                self.audit_path.unlink(missing_ok=True)  # of an earlier epoch: it says that a run is finished
                write_atomic(self.model_path, content)
        self._write_config(result.config)
        if result.label_probabilities is not None:
            write_atomic(self.probabilities_path, partial(np.save, arr=result.label_probabilities))
        table = result.audit_rows if result.audit_rows is not None else result.audit()
        write_atomic(self.audit_path, lambda file: table.to_parquet(file, row_group_size=2**17))

    def _write_config(self, config: dict[str, Any]) -> None:
        import yaml

        write_atomic(self.config_path, yaml.safe_dump(config, sort_keys=False).encode())

    def _written_config(self) -> dict[str, Any]:
        """What config.yaml says of a run that goes on, or nothing: the checkpoint holds all that counts."""
        import yaml

        try:
            found = yaml.safe_load(self.config_path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError):
            return {}
        return found if isinstance(found, dict) else {}


def _differences(old: dict[str, Any], new: dict[str, Any], prefix: str = "") -> list[str]:
    found = []
    for key in sorted(old.keys() | new.keys()):
        a, b = old.get(key), new.get(key)
        if isinstance(a, dict) and isinstance(b, dict):
            found += _differences(a, b, f"{prefix}{key}.")
        elif a != b:
            found.append(f"{prefix}{key} (was {a}, is {b})")
    return found


def json_value(value: Any) -> Any:
    """What JSON does not know, such as numpy's numbers among class names."""
    return value.item() if hasattr(value, "item") else str(value)


def versions() -> dict[str, Any]:
    """The versions of what computes, the platform, and the number of threads: none of it makes a run another run."""
    import numpy as np
    import torch

    from crust import __version__

    return {
        "crust": __version__,
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "threads": torch.get_num_threads(),
    }


def versions_so_far(begun: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The record of a run that goes on: what it was begun with, and all that was different later; says so.

    `begun` has `versions` and `resumed_with` of the run so far, as in its config.yaml; it may be empty.
    """
    now = versions()
    first, later = begun.get("versions") or now, list(begun.get("resumed_with") or [])
    before = later[-1] if later else first
    if before != now:
        names = [name for name in now if before.get(name) != now[name]]
        log.warning(
            "the run in %s was made with %s and goes on with %s: it may not end with the same bytes",
            folder,
            ", ".join(f"{name} {before.get(name)}" for name in names),
            ", ".join(f"{name} {now[name]}" for name in names),
        )
        later.append(now)
    return {"versions": first, "resumed_with": later} if later else {"versions": first}

"""What training leaves, and a finished run opened again."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from crust._util.atomic_write import make_folder
from crust._util.foreign import whole_number
from crust._util.in_words import duration, percent
from crust._util.torch_modules import OutputForm, check_network, check_shape, forward, forward_names
from crust.audit.noise_rate import NoiseRate, noise_rate
from crust.audit.reliability import better_method, warning_of
from crust.data import Examples, batches
from crust.data.user_data import Reading, as_inputs
from crust.errors import InputError
from crust.models import build_model
from crust.runs.folder import RunFolder
from crust.training.evaluation import probabilities_of
from crust.training.recorder import History


@dataclasses.dataclass(repr=False)
class Result:
    """What training leaves: the model, its history, and what it knows about the labels. Shown, it is six lines.

    Example:
        >>> from crust import data
        >>> from crust.fitting import fit
        >>> digits = data.load("digits", limit=200)
        >>> result = fit("mlp", digits.train, test_set=digits.test, method="erm", epochs=1)
        >>> sorted(result.accuracy), result.predict(digits.test).shape
        (['best', 'last', 'last10'], (500,))
        >>> result.audit().columns[:4].tolist()
        ['index', 'given_label', 'predicted_label', 'predicted_prob']
    """

    model: nn.Module
    history: History
    config: dict[str, Any]
    classes: list[Any]
    run_dir: Path | None = None
    audit_rows: Any = None  # a pandas DataFrame; None: it is in the run's folder
    label_probabilities: NDArray[np.floating] | None = None  # so
    best_epoch: int | None = None  # after how many epochs the weights were as in the kept model
    cost: dict[str, Any] = dataclasses.field(default_factory=dict)  # passes forward and backward, seconds by part
    is_main_process: bool = True
    output: OutputForm = dataclasses.field(default_factory=OutputForm)  # what makes logits of what the model returns
    reading: Reading | None = None  # how the data of the run was read; None: as the network says

    def audit(self) -> Any:
        """One row a training example, as a pandas DataFrame: the given label, a better one, and how good it is."""
        if self.audit_rows is not None:
            return self.audit_rows.copy()
        if self.run_dir is None or not RunFolder(self.run_dir).audit_path.exists():
            raise InputError("this run has kept no audit: train it to the end", code="no-audit")
        return RunFolder(self.run_dir).audit()[0]

    def probabilities(self) -> NDArray[np.floating]:
        """What the audit goes by: (n, classes), a row a training example, the columns in the order of `classes`.

        Averaged over the run, with the classes balanced: what other tools of label quality call `pred_probs`. Those of
        the examples that were held out are out of sample, the others come from a network that was trained on them.
        """
        if self.label_probabilities is None:
            path = None if self.run_dir is None else RunFolder(self.run_dir).probabilities_path
            if path is None or not path.is_file():
                raise InputError("this run has kept no probabilities: train it to the end", code="no-audit")
            self.label_probabilities = np.load(path, allow_pickle=False)
        return self.label_probabilities.copy()

    def deployable(self) -> nn.Module:
        """The network with the normalisation of its inputs in front, in eval mode: takes what was given to `fit`.

        Arrays are standardised by `fit`, column by column or channel by channel, so that `model` alone is not what
        predicts. Images are tensors (n, channels, height, width), pixels as they were: uint8, or floats. Of texts the
        network takes token ids.

        Example:
            >>> from crust.fitting import fit
            >>> x = np.random.default_rng(0).normal(5, 3, (60, 4)).astype(np.float32)
            >>> result = fit("mlp", (x, (x[:, 0] > 5).astype(int)), method="erm", epochs=2)
            >>> logits = result.deployable()(torch.from_numpy(x))
            >>> bool((logits.argmax(1).numpy() == result.predict(x)).all())
            True
        """
        return Deployable(self.model, self.config.get("inputs") or {}, self.output).eval()

    def save(self, folder: str | Path) -> Path:
        """Leave the model, the history and the audit in a folder, which `crust.load` opens.

        Networks that have `save_pretrained` are saved by it, with the names of the classes where they have none yet, so
        that their own `from_pretrained` opens them.

        Args:
            folder: made where it is not there; it must not hold a run.
        """
        place = RunFolder(folder)
        if place.config_path.exists():
            raise InputError(f"{place} holds a run already: choose another folder", code="run-exists")
        if self.is_main_process:
            make_folder(place.path)
            own: Any = self.model
            if hasattr(own, "save_pretrained"):
                config: Any = getattr(own, "config", None)
                names = getattr(config, "id2label", None)
                if names == {i: f"LABEL_{i}" for i in range(len(self.classes))}:
                    config.id2label = {i: str(name) for i, name in enumerate(self.classes)}
                    config.label2id = {name: i for i, name in config.id2label.items()}
                own.save_pretrained(place.path)
            self.history.save(place.history_path)
            place.finish(self, weights=not hasattr(own, "save_pretrained"))
        return place.path

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {text}" for name, text in self._summary().items())

    def _repr_html_(self) -> str:
        rows = (
            f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(text)}</td></tr>'
            for name, text in self._summary().items()
        )
        return f"<table>{''.join(rows)}</table>"

    def _summary(self) -> dict[str, str]:
        """Six lines: what was trained, on what, how well, what is wrong with the labels, how long, what next."""
        config, lines = self.config, self.history.lines
        inputs = config.get("inputs") or {}
        shape = "x".join(map(str, inputs.get("shape") or ()))
        table = self.audit_rows if self.audit_rows is not None else self._audit_or_none()
        kept = next((line for line in lines if line["epoch"] + 1 == self.best_epoch), lines[-1] if lines else {})
        measured = [
            f"{percent(kept[key])} on {where}"
            for key, where in (
                ("test_accuracy", "the test set"),
                ("val_accuracy", "held-out labels, noisy as they are"),
            )
            if kept.get(key) is not None
        ]
        seconds = self.cost.get("seconds") or {}
        seconds = [seconds] if seconds else [line.get("seconds", {}) for line in lines]
        took = sum(value for part in seconds for name, value in part.items() if name != "selection")  # in the epoch
        passes = sum((lines[-1].get("passes") or {}).values()) if lines else 0
        folder = None if self.run_dir is None else shlex.quote(str(self.run_dir))
        issues = "unknown: the run has left no audit"
        if table is not None:
            issues = f"{int(table['is_label_issue'].sum()):,} of {len(table):,} labels"
            issues += f" ({percent(float(table['is_label_issue'].mean()))}), in result.audit()"
            issues += "".join(f"; {line}" for line in [warning_of(table)] if line)
        what = (
            f"{shape} features"
            if inputs.get("kind") == "features"
            else f"{inputs.get('kind', 'inputs')} {shape}".strip()
        )
        n = "" if table is None else f"{len(table):,} examples, "
        where = "" if self.best_epoch is None else f" (the model of epoch {self.best_epoch})"
        return {
            "method": f"{config.get('method')}, {config.get('model')} with {config.get('parameters', 0):,} parameters, "
            f"{len(lines)} epoch{'s' * (len(lines) != 1)}",
            "data": f"{n}{what}, {len(self.classes)} classes",
            "accuracy": (", ".join(measured) or "not measured: give a test_set") + (where if measured else ""),
            "label issues": issues,
            "time": f"{duration(took)}, {passes:,} passes of an example through the network",
            "next": f"crust report {folder}, or crust review {folder}"
            if folder
            else 'result.review(show=...), result.report("report.html"), or result.audit() for the table',
        }

    def _audit_or_none(self) -> Any:
        try:
            return self.audit()
        except InputError:
            return None

    def noise_rate(self) -> NoiseRate:
        """The share of wrong labels with its interval, or why there is none; once asked, that of `crust verify`."""
        verified = None if self.run_dir is None else RunFolder(self.run_dir).verified()
        return noise_rate(self.audit(), len(self.classes), verified)

    def report(self, path: str | Path | None = None, *, show: Any = None) -> Path:
        """Write the audit as one HTML page, as `crust report` does; see `crust.review_labels` for what `show` takes.

        Args:
            path: where it goes; default: into the run's folder.
            show: what is shown of the examples; default: the data of the run, as far as it can be opened again.
        """
        from crust.runs.audit_source import open_audit

        return open_audit(self, show=self._shown(show)).report(path)

    def review(self, *, show: Any = None, **options: Any) -> Any:
        """Open the review page, and return what was decided once somebody has finished: `crust.review_labels`."""
        from crust.runs.review_session import review_labels

        return review_labels(self, show=self._shown(show), **options)

    def _shown(self, show: Any) -> Any:
        """The folder of the images, where the dataset of the run has named one and nothing else is to be shown."""
        root = (self.config.get("inputs") or {}).get("root")
        return Path(root) if show is None and root is not None and Path(root).is_dir() else show

    def warnings(self) -> list[str]:
        """What speaks against relying on the audit, or for another method, each with what to do; often nothing."""
        table = self._audit_or_none()
        if table is None:
            return []
        found = [warning_of(table), better_method(table, self.history.lines, str(self.config.get("method")))]
        return [line for line in found if line is not None]

    def predict(self, data: Any, *, batch_size: int = 128) -> NDArray[Any]:
        """Predicted classes, in the user's own names.

        Args:
            data: in any form that `crust.fit` takes, with labels or without: an array, a list of texts, a DataFrame, a
                dataset, a DataLoader.
            batch_size: inputs at a time.
        """
        return np.array(self.classes)[self.predict_proba(data, batch_size=batch_size).argmax(axis=1)]

    def predict_proba(self, data: Any, *, batch_size: int = 128) -> NDArray[np.float64]:
        """The probabilities of all classes, in the order of `classes`: (n, classes) in float64."""
        found = self._inputs(data)
        whole_number(batch_size, "batch_size", 1)
        shape = (self.config.get("inputs") or {}).get("shape")
        with self.output.on(self.model):
            if len(found) and shape is not None:
                sample = next(batches(found, np.arange(1), 1))[0]
                check_shape(self.model, sample, len(self.classes), shape, "the inputs")
            return probabilities_of(self.model, batches(found, None, batch_size))

    def _inputs(self, data: Any) -> Examples:
        """What is to be predicted, in the form that the network was trained on."""
        how = self.config.get("inputs") or {}
        encoding = {**(how.get("encoding") or {}), **({"tokens": how["tokens"]} if how.get("tokens") else {})}
        scale = [None if how.get(name) is None else tuple(how[name]) for name in ("mean", "std")]
        kind = how.get("kind", "dataset")
        like = Examples([], np.empty(0, np.int64), self.classes, kind, scale[0], scale[1], encoding=encoding)
        return as_inputs(data, like, self.reading or Reading(takes=forward_names(self.model)))

    @property
    def accuracy(self) -> dict[str, float | None]:
        """Test accuracy of the last epoch, the mean of the last ten, and the best."""
        return self.history.accuracy()


class Deployable(nn.Module):
    """A network behind the normalisation that its training had."""

    def __init__(self, model: nn.Module, inputs: dict[str, Any], output: OutputForm | None = None):
        super().__init__()
        self.model, self.output = model, output or OutputForm()
        images = inputs.get("kind") == "images"
        for name in ("mean", "std"):
            values = inputs.get(name)
            tensor = None if values is None else torch.tensor(values, dtype=torch.float32)
            self.register_buffer(name, tensor.view(-1, 1, 1) if tensor is not None and images else tensor)

    def forward(self, x: Any) -> torch.Tensor:
        """Logits."""
        if isinstance(x, torch.Tensor) and x.dtype == torch.uint8:
            x = x.float() / 255
        return self.output(forward(self.model, x if self.mean is None else (x - self.mean) / self.std))

    def extra_repr(self) -> str:
        """What is done before the network."""
        return "inputs as they are" if self.mean is None else "inputs standardised: (x - mean) / std"


def load(
    run_dir: str | Path,
    model: nn.Module | None = None,
    *,
    logits: Callable[[Any], torch.Tensor] | None = None,
    collate_fn: Callable[[list[Any]], Any] | None = None,
) -> Result:
    """A finished run again: the kept model, the history, the audit.

    Args:
        run_dir: the run's folder.
        model: a network of the same kind, where the run was given one of the user's own; with its weights, where
            `Result.save` has left them in parts or as an adapter, which its own `from_pretrained` opens.
        logits: as `crust.fit` was given it.
        collate_fn: so.

    Returns:
        The result, ready to predict. Opening it runs no code from the folder.

    Example:
        >>> import tempfile
        >>> from crust import data
        >>> from crust.fitting import fit
        >>> digits = data.load("digits", limit=200)
        >>> folder = tempfile.mkdtemp()
        >>> trained = fit("mlp", digits.train, method="erm", epochs=1, run_dir=folder)
        >>> bool((load(folder).predict(digits.test) == trained.predict(digits.test)).all())
        True
    """
    folder = RunFolder(run_dir)
    config = folder.config()
    # Saved by save_pretrained in parts, or as an adapter: then the network that was opened has its weights.
    there = model is not None and not folder.model_path.is_file() and any(folder.path.glob("*.safetensors*"))
    weights = {} if there else folder.weights()
    if model is None:
        if not config["built"]:
            raise InputError(
                f"the run in {folder} trained a {config['model']} of yours: give such a network as model",
                code="own-model",
            )
        shape = tuple(config["inputs"]["shape"])
        model = build_model(config["model"], in_shape=shape, classes=len(config["classes"]))
    check_network(model)
    named = {} if there else model.state_dict()
    for name in named.keys() - weights.keys():  # save_pretrained writes weights that are tied once
        twin = next((one for one in weights if one in named and named[one].data_ptr() == named[name].data_ptr()), None)
        if twin is not None:
            weights[name] = weights[twin]
    try:
        model.load_state_dict(weights, strict=not there)
    except RuntimeError as error:
        raise InputError(
            f"the weights in {folder} do not fit the model: {str(error).splitlines()[0]}", code="other-model"
        ) from None
    if logits is None and "logits" in (config.get("functions") or {}):
        raise InputError(
            f"the run in {folder} had a function that makes logits of what the model returns: give it as logits",
            code="missing-logits",
        )
    output, reading = OutputForm(logits, bool(config.get("one_logit"))), Reading(collate_fn, takes=forward_names(model))
    return Result(
        model.eval(), folder.history(), config, config["classes"], run_dir=folder.path, output=output, reading=reading
    )

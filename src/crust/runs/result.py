"""What training leaves, and a finished run opened again."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from crust._util.foreign import as_array
from crust._util.torch_modules import check_shape
from crust.data import Examples, batches, from_arrays, from_texts, from_tokens
from crust.data.text import is_text
from crust.data.tokens import are_ids
from crust.errors import InputError
from crust.models import build_model
from crust.runs.folder import RunFolder
from crust.training.evaluation import probabilities_of
from crust.training.recorder import History


@dataclasses.dataclass
class Result:
    """What training leaves: the model, its history, and what it knows about the labels.

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
    best_epoch: int | None = None  # after how many epochs the weights were as in the kept model
    cost: dict[str, Any] = dataclasses.field(default_factory=dict)  # passes forward and backward, seconds by part
    is_main_process: bool = True

    def audit(self) -> Any:
        """One row a training example, as a pandas DataFrame: the given label, a better one, and how good it is."""
        if self.audit_rows is not None:
            return self.audit_rows.copy()
        if self.run_dir is None or not RunFolder(self.run_dir).audit_path.exists():
            raise InputError("this run has kept no audit: train it to the end", code="no-audit")
        return RunFolder(self.run_dir).audit()[0]

    def predict(self, data: Any, *, batch_size: int = 128) -> NDArray[Any]:
        """Predicted classes, in the user's own names.

        Args:
            data: a dataset, an array of inputs, a list of texts, or `Examples`, in the form that the model was trained
                on.
            batch_size: inputs at a time.
        """
        return np.array(self.classes)[self.predict_proba(data, batch_size=batch_size).argmax(axis=1)]

    def predict_proba(self, data: Any, *, batch_size: int = 128) -> NDArray[np.float64]:
        """The probabilities of all classes, in the order of `classes`: (n, classes) in float64."""
        found = self._inputs(data)
        shape = (self.config.get("inputs") or {}).get("shape")
        if len(found) and shape is not None:
            check_shape(self.model, next(batches(found, np.arange(1), 1))[0], len(self.classes), shape, "the inputs")
        return probabilities_of(self.model, batches(found, None, batch_size))

    def _inputs(self, data: Any) -> Examples:
        if isinstance(data, Examples):
            return data
        how = self.config.get("inputs") or {}
        if is_text(data):
            if how.get("tokens") is None:
                raise InputError("the network was not trained on texts: give inputs like those", code="other-data")
            return from_texts(data, classes=self.classes, encoding=how["tokens"])
        if how.get("kind") == "tokens" and (are_ids(data) or isinstance(data, list)):
            return from_tokens(data, classes=self.classes)
        if hasattr(data, "to_numpy") or (
            isinstance(data, list) and isinstance(next(iter(data), 0), list | float | int)
        ):
            data = as_array(data, "the inputs")  # a frame, or rows
        if isinstance(data, np.ndarray | torch.Tensor):
            return from_arrays(data, mean=how.get("mean"), std=how.get("std"), normalise=how.get("mean") is not None)
        if not (hasattr(data, "__len__") and hasattr(data, "__getitem__")):
            raise InputError(f"the inputs are a {type(data).__name__}: give an array or a dataset", code="other-data")
        return Examples(data, np.full(len(data), -1), self.classes, "dataset")

    @property
    def accuracy(self) -> dict[str, float | None]:
        """Test accuracy of the last epoch, the mean of the last ten, and the best."""
        return self.history.accuracy()


def load(run_dir: str | Path, model: nn.Module | None = None) -> Result:
    """A finished run again: the kept model, the history, the audit.

    Args:
        run_dir: the run's folder.
        model: a network of the same kind, where the run was given one of the user's own.

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
    config, weights = folder.config(), folder.weights()
    if model is None:
        if not config["built"]:
            raise InputError(
                f"the run in {folder} trained a {config['model']} of yours: give such a network as model",
                code="own-model",
            )
        shape = tuple(config["inputs"]["shape"])
        model = build_model(config["model"], in_shape=shape, classes=len(config["classes"]))
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise InputError(
            f"the weights in {folder} do not fit the model: {str(error).splitlines()[0]}", code="other-model"
        ) from None
    return Result(model.eval(), folder.history(), config, config["classes"], run_dir=folder.path)

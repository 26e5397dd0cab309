"""`CrustClassifier`: robust training as an estimator of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from crust._util.foreign import as_array, cannot_read, decoded
from crust.data.labels import plain_labels
from crust.data.text import check_texts, from_texts, is_text
from crust.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from torch import nn

    from crust.data import Examples
    from crust.runs.result import Result

__all__ = ["CrustClassifier"]

ROWS = 1024  # predicted at a time
MOST_DENSE = 4 * 2**30  # bytes of a sparse matrix as an array


def _foreign(values: Any, what: str) -> Any:
    """What scikit-learn does not know, or takes for something else, by our rules: tensors, masked arrays, bytes."""
    masked = isinstance(values, np.ma.MaskedArray)
    if values is None or hasattr(values, "iloc") or (hasattr(values, "toarray") and hasattr(values, "tocsr")):
        return values
    known = not masked and (isinstance(values, np.ndarray) or is_text(values))
    found = values if known else as_array(values, what)
    return decoded(found, what) if isinstance(found, np.ndarray) and found.dtype.kind == "S" else found


def _has_categories(X: Any) -> bool:
    """Whether this is a DataFrame of pandas with columns that hold no numbers."""
    if not (hasattr(X, "iloc") and hasattr(X, "columns")):
        return False
    from pandas.api.types import is_numeric_dtype

    return any(not is_numeric_dtype(kind) for kind in X.dtypes)


def _dense(matrix: Any) -> NDArray[Any]:
    """A sparse matrix as an array, as far as that fits into memory."""
    size = matrix.shape[0] * matrix.shape[1] * 4
    if size > MOST_DENSE:
        raise InputError(
            f"X is sparse, and as an array it would take {size / 2**30:.0f} GiB: bring it to fewer columns first, as "
            "TruncatedSVD does",
            code="sparse-size",
        )
    kind = np.float32 if matrix.dtype.kind != "f" else matrix.dtype
    found: NDArray[Any] = matrix.astype(kind).toarray()
    return found


class _Refused(InputError, TypeError):
    """scikit-learn's TypeErrors stay such."""


@contextmanager
def _refusals() -> Iterator[None]:
    """What scikit-learn refuses, in one line of its words and with a code."""
    try:
        yield
    except InputError:
        raise
    except (ValueError, TypeError) as error:
        kind = _Refused if isinstance(error, TypeError) else InputError
        first, *more = str(error).splitlines() or [type(error).__name__]
        advice = [line for line in more if line.startswith("Reshape")]  # between them are values, printed
        raise kind(" ".join([first, *advice]), code="sklearn-check") from None


class CrustClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that is not fooled by wrong labels in its training data, and says which they are.

    Columns are standardised inside, so that no scaler is needed; missing values must be filled in before. Arrays of
    more than two dimensions are images, (n, height, width) or (n, height, width, channels). A list, a Series or an
    array of strings are texts: they become hashed words, for the network `text`, and AdamW trains it. Sparse matrices
    are taken as arrays; columns of a DataFrame that hold no numbers are categories, and get a feature a value.

    Args:
        model: "auto" for what fits kind and size of the data (`crust.defaults`), the name of a network
            (`crust.models`), a network that returns logits, which is copied and not changed, or a function
            `(in_shape, classes)` that makes one.
        method: see `crust methods`.
        epochs: passes over the training data, or over what is chosen of it; None: what fits the data.
        batch_size: examples a step; None: what fits the data.
        learning_rate: the highest one; None: what fits the data.
        validation: share of the training data that is held out, noisy as it is, to choose the epoch whose model is
            kept.
        settings: any other setting of the experiment or of the method, as `crust.fit` takes them, such as
            `{"weight_decay": 0.0}`; they win over all arguments.
        random_state: a number, a `RandomState`, or None.
        more: the same settings one by one, such as `fraction=0.7`; a search can go over them.

    Attributes:
        classes_: the classes, sorted.
        n_features_in_: the number of columns; texts have none.
        model_: the trained network; it takes standardised columns, in float64 where it was built by name.
        history_: one dictionary an epoch.
        audit_: a pandas DataFrame, one row a training example, in its order.
        label_quality_: of `audit_`, how good each given label is, from 0 (bad) to 1.
        label_issues_: of `audit_`, whether the label is among the worst, of which there are about as many as are wrong.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> y[:5] = 2  # wrong labels
        >>> classifier = CrustClassifier(random_state=0).fit(X, y)
        >>> classifier.predict(X[:5]).tolist()
        [0, 0, 0, 0, 0]
        >>> bool(classifier.label_quality_[:5].mean() < classifier.label_quality_[5:].mean() / 2)
        True
    """

    def __init__(
        self,
        model: str | nn.Module | Callable[[tuple[int, ...], int], nn.Module] = "auto",
        *,
        method: str = "crust",
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        validation: float = 0.1,
        settings: Mapping[str, Any] | None = None,
        random_state: Any = None,
        **more: Any,
    ):
        self.model = model
        self.method = method
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.validation = validation
        self.settings = settings
        self.random_state = random_state
        for name, value in more.items():
            setattr(self, name, value)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name, with the settings that were given one by one."""
        return {**super().get_params(deep), **self._more()}

    def set_params(self, **params: Any) -> CrustClassifier:
        """Set parameters, and any settings of the experiment or of the method."""
        from crust.methods import METHODS
        from crust.training.settings import TrainSettings

        known = set(TrainSettings.model_fields).union(*(kind.Settings.model_fields for kind in METHODS.values()))
        for name in known.intersection(params) - set(self._get_param_names()):
            setattr(self, name, params.pop(name))
        return super().set_params(**params)  # type: ignore[no-any-return]

    def _more(self) -> dict[str, Any]:
        own = self._get_param_names()
        return {
            name: value for name, value in vars(self).items() if name not in own and name[0] != "_" and name[-1] != "_"
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CrustClassifier:
        """Train on examples of which some labels may be wrong.

        Args:
            X: (n, d) columns of numbers, or images, or texts.
            y: one label an example: numbers or text.
            sample_weight: what each example counts in the loss. It is drawn into batches all the same.
        """
        from crust.fitting import fit

        X, y = _foreign(X, "X"), _foreign(y, "y")
        texts = is_text(X)
        self._columns: list[dict[str, Any]] | None = None
        with _refusals():
            if texts:
                X, y = self._checked_texts(X, y)
            elif _has_categories(X):
                X, y = self._checked_frame(X, y)
            else:
                X, y = self._checked_numbers(X, y)
            if sample_weight is not None:
                sample_weight = _check_sample_weight(sample_weight, X)
            with np.errstate(invalid="ignore"):  # of numbers too large to be labels, which are refused below
                check_classification_targets(y)
        if plain_labels(y, "y").dtype.kind != "U" and y.dtype.kind not in "biufO":
            raise InputError(f"y holds {y.dtype}: give numbers or text", code="labels-type")
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise InputError(
                f"y holds one class only, {classes[0].item()!r}: training needs at least two", code="one-class"
            )
        self.classes_, self._shape = classes, None if texts else X.shape[1:]
        if not isinstance(self.settings or {}, Mapping) or not all(
            isinstance(name, str) for name in self.settings or {}
        ):
            raise InputError(f"settings are {self.settings!r:.100}: give a dict by name", code="bad-setting")
        with _refusals():
            seed = int(check_random_state(self.random_state).randint(2**31))
        examples = self._examples(X, codes)
        named = {name: getattr(self, name) for name in ("epochs", "batch_size", "learning_rate")}
        options = {
            "method": self.method,
            "validation": self.validation,
            "seed": seed,
            **{name: value for name, value in named.items() if value is not None},
            **self._more(),
            **(self.settings or {}),
        }
        if sample_weight is not None:
            options["sample_weight"] = sample_weight
        self._keep(fit(self._model(examples, seed), examples, **options))
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probabilities of all classes, in the order of `classes_`: (n, classes) in float64."""
        import torch

        from crust.data import batches
        from crust.training.evaluation import probabilities_of

        check_is_fitted(self)
        if self._shape is None:
            if not is_text(X):
                raise InputError("X holds no texts, but those trained on were: give strings", code="other-data")
        else:
            with _refusals():
                if self._columns is not None:
                    X = self._checked_frame(X)
                else:
                    X = self._checked_numbers(_foreign(X, "X"))
            if X.shape[1:] != self._shape:
                raise InputError(
                    f"X has examples of shape {X.shape[1:]}, but those trained on had {self._shape}", code="input-shape"
                )
        wide = next(self.model_.parameters()).dtype == torch.float64
        pieces: Iterable[tuple[torch.Tensor, Any]]
        if wide and self._shape is not None and X.ndim == 2:
            # all of the way in float64: what an example gets does not depend on its neighbours
            rows = torch.from_numpy(self._standardised(X))
            pieces = ((rows[first : first + ROWS], None) for first in range(0, len(rows), ROWS))
        else:
            parts = batches(self._examples(X, None), None, ROWS)
            pieces = ((x.double() if wide and x.is_floating_point() else x, index) for x, index in parts)
        return probabilities_of(self.model_, pieces)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each example, by the names that `y` had."""
        check_is_fitted(self)
        return self.classes_[self.predict_proba(X).argmax(axis=1)]  # type: ignore[no-any-return]

    # ------------------------------------------------------------ parts

    def _checked_numbers(self, X: Any, y: Any = "no_validation") -> Any:
        fitting = not (isinstance(y, str) and y == "no_validation")
        found = validate_data(self, X, y, reset=fitting, allow_nd=True, accept_sparse="csr")
        values = found[0] if fitting else found
        if values.dtype.kind not in "biuf":
            raise InputError(f"X holds {values.dtype}, not numbers: give numbers", code="array-type")
        if hasattr(values, "toarray"):
            values = _dense(values)
        return (values, found[1]) if fitting else values

    def _checked_frame(self, X: Any, y: Any = "no_validation") -> Any:
        """A DataFrame with categories as numbers, a column a category; while fitting also learns which there are."""
        import pyarrow as pa

        from crust.data.table_dataset import TableEncoder

        fitting = not (isinstance(y, str) and y == "no_validation")
        if not hasattr(X, "columns"):
            raise InputError(
                "X is no DataFrame, but those trained on were one with categories: give its columns", code="input-shape"
            )
        if fitting:
            if y is None:
                raise InputError("y is missing: give one label an example", code="label-count")
            y = column_or_1d(y, warn=True)
            check_consistent_length(X, y)
        validate_data(self, X, reset=fitting, skip_check_array=True)
        table = pa.Table.from_pandas(X, preserve_index=False)
        if fitting:
            self._columns = TableEncoder.fit(table, table.column_names, "X").columns
        assert self._columns is not None
        found = TableEncoder(self._columns).transform(table, "X")
        return (found, y) if fitting else found

    def _checked_texts(self, X: Any, y: Any) -> tuple[list[str], NDArray[Any]]:
        if y is None:
            raise InputError("y is missing: give one label a text", code="label-count")
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        for name in ("n_features_in_", "feature_names_in_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        return check_texts(X), y

    def _examples(self, X: Any, codes: NDArray[np.int64] | None) -> Examples:
        """Columns standardised in float64, images as `from_arrays` takes them; while fitting also learns how."""
        from crust.data import Examples, from_arrays
        from crust.data.npz_dataset import common_scale

        names = list(range(len(self.classes_)))
        if self._shape is None:
            return from_texts(X, codes, classes=names)
        if X.ndim > 2:
            if codes is not None:
                found = from_arrays(X, codes, classes=names)
                self._mean: Any = found.mean
                self._std: Any = found.std
                return found
            return from_arrays(X, classes=names, mean=self._mean, std=self._std, normalise=False)
        import torch

        if codes is not None:
            wide = X.astype(np.float64)
            self._mean, spread = wide.mean(axis=0), wide.std(axis=0)
            self._std = np.where(spread > 1e-12 * np.abs(wide).max(axis=0, initial=0), spread, 1.0)
            if (common := common_scale(wide)) is not None:
                self._mean, self._std = np.zeros_like(self._mean), np.full_like(self._std, common)
        inputs = torch.from_numpy(self._standardised(X).astype(np.float32))
        return Examples(inputs, np.full(len(X), -1) if codes is None else codes, names, "features")

    def _standardised(self, X: NDArray[Any]) -> NDArray[np.float64]:
        return (X.astype(np.float64) - self._mean) / self._std

    def _model(self, examples: Examples, seed: int) -> nn.Module | str:
        from torch import nn

        from crust._util.seeding import seeded

        if isinstance(self.model, (str, nn.Module)):
            return self.model
        if not callable(self.model):
            raise InputError(
                f"model is a {type(self.model).__name__}: give the name of a network, a network, or a function "
                "(in_shape, classes) that makes one",
                code="bad-model",
            )
        with seeded(seed, "weights"):
            try:
                return self.model(examples.shape, len(self.classes_))
            except Exception as error:
                raise cannot_read("the network that the function given as model makes", error) from error

    def _keep(self, result: Result) -> None:
        """What stays of a run: nothing that cannot be pickled."""
        self.model_ = result.model.eval()
        if isinstance(self.model, str):
            self.model_ = self.model_.double()
        self.history_ = result.history.lines
        table = result.audit()
        for column in ("given_label", "predicted_label"):
            table[column] = self.classes_[table[column].to_numpy(np.int64)]
        self.audit_: pd.DataFrame = table
        self.label_quality_: NDArray[np.float64] = table["label_quality"].to_numpy()
        self.label_issues_: NDArray[np.bool_] = table["is_label_issue"].to_numpy()

"""The Jacobian of a network's outputs with respect to all trained parameters, as rows or as products, never changed.

Row i·C + c belongs to output c of example i. Columns are the trained parameters in the order of the network.

Inner products of rows cost a fraction of their length where linear layers stay products: if a layer z = W a + b sees
one vector an example, the gradient of an output with respect to (W, b) is the outer product of ∂f/∂z and (a, 1), and
the inner product of two of these is the product of two short ones.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import psutil
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, jacrev, jvp, vjp, vmap

from crust._util.torch_modules import device_of, evaluating, logits_of, slice_batch, to_device
from crust.errors import InputError

AT_ONCE = 2**30  # bytes of rows and what they need on the way, at most


class Jacobian:
    """J of a network on some inputs, at the weights it has now.

    Args:
        model: any network that returns logits, or one number an example.
        inputs: a tensor with an example a row, or a mapping of such tensors.
        dtype: float64 for exact work on small problems, float32 for large ones.
        memory_limit: bytes that may be used; None: half of what is free.

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> Jacobian(nn.Linear(2, 1, bias=False), x).rows(np.arange(2)).tolist()
        [[1.0, 2.0], [3.0, 4.0]]
    """

    def __init__(
        self, model: nn.Module, inputs: Any, dtype: torch.dtype = torch.float32, memory_limit: int | None = None
    ):
        self.model, self.dtype = model, dtype
        self.device = device_of(model)
        self.memory = memory_of(memory_limit)
        self.inputs = self._cast(inputs)
        self.n = len(next(iter(inputs.values())) if isinstance(inputs, Mapping) else inputs)
        if not self.n:
            raise InputError("there are no examples: give at least one", code="empty")
        trained = {name: value.detach() for name, value in model.named_parameters() if value.requires_grad}
        if not trained:
            raise InputError(
                "the model has no parameters that are trained: its Jacobian is empty", code="no-parameters"
            )
        broken = [name for name, value in model.named_parameters() if not bool(torch.isfinite(value).all())]
        if broken:
            raise InputError(
                f"the weights {broken[0]!r} of the model are not finite: give a model that works", code="not-finite"
            )
        frozen = {name: value.detach() for name, value in model.named_parameters() if not value.requires_grad}
        self.fixed = {name: self._cast(value) for name, value in {**frozen, **dict(model.named_buffers())}.items()}
        self.parameters = {name: self._cast(value) for name, value in trained.items()}
        self.m = sum(value.numel() for value in trained.values())
        self.logits = self._logits()
        self.outputs = self.logits.shape[1]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows (examples times outputs) and columns (parameters)."""
        return self.n * self.outputs, self.m

    # ------------------------------------------------------------ values

    def values(self, parameters: dict[str, Tensor], x: Any) -> Tensor:
        """Outputs of some inputs, (b, C), as a function of the parameters."""
        named = dict(x) if isinstance(x, Mapping) else {}
        args = () if named else (x,)
        out = logits_of(functional_call(self.model, {**self.fixed, **parameters}, args, named))
        size = len(next(iter(named.values()))) if named else len(x)
        return out.reshape(size, -1)

    def single(self, parameters: dict[str, Tensor], x: Any) -> Tensor:
        """Outputs of one input, (C,)."""
        alone = {name: value[None] for name, value in x.items()} if isinstance(x, Mapping) else x[None]
        return self.values(parameters, alone)[0]

    def flat(self, parameters: dict[str, Tensor] | None = None) -> Tensor:
        """Parameters as one vector."""
        return torch.cat([value.reshape(-1) for value in (parameters or self.parameters).values()])

    def unflat(self, vector: Tensor) -> dict[str, Tensor]:
        """One vector as parameters."""
        parts = vector.split([value.numel() for value in self.parameters.values()])
        return {
            name: part.reshape(value.shape) for (name, value), part in zip(self.parameters.items(), parts, strict=True)
        }

    def _logits(self) -> Tensor:
        found = []
        with evaluating(self.model):
            for first in range(0, self.n, 256):
                x = slice_batch(self.inputs, first, first + 256)
                try:
                    out = self.values(self.parameters, x)
                except InputError:
                    raise
                except Exception as error:
                    reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
                    raise InputError(f"the model cannot take these examples: {reason}", code="model-input") from error
                found.append(out.detach())
        logits = torch.cat(found)
        if not bool(torch.isfinite(logits).all()):
            raise InputError(
                "the model gives outputs that are not finite: check the weights and the examples", code="not-finite"
            )
        return logits

    def _cast(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: self._cast(part) for name, part in value.items()}
        value = to_device(value, self.device)
        return value.to(self.dtype) if value.is_floating_point() else value

    # ------------------------------------------------------------ rows

    @cached_property
    def factors(self) -> Factors:
        """The same rows with linear layers left as products."""
        return Factors(self)

    def at_once(self, columns: int | None = None) -> int:
        """How many examples' rows are computed together; a row takes `columns` numbers, all of them by default."""
        bytes_each = 4 * self.outputs * max(1, self.m if columns is None else columns) * self.dtype.itemsize
        return max(1, min(self.n, int(min(AT_ONCE, self.memory / 2) // bytes_each)))

    def rows(self, index: NDArray[np.int64], parameters: dict[str, Tensor] | None = None) -> Tensor:
        """The rows of some examples, (b·C, m); at other weights, where these are given."""
        here = parameters or self.parameters
        step = self.at_once()
        with evaluating(self.model):
            found = [self._some(here, index[first : first + step]) for first in range(0, len(index), step)]
        return torch.cat(found)

    def _some(self, parameters: dict[str, Tensor], index: NDArray[np.int64]) -> Tensor:
        x = self.pick(index)
        try:
            found = vmap(jacrev(self.single), in_dims=(None, 0))(parameters, x)
        except RuntimeError:  # vmap cannot do everything that a network may do
            found = _by_loop(self.single, parameters, x, len(index))
        b = len(index) * self.outputs
        return torch.cat([value.detach().reshape(b, -1) for value in found.values()], 1)

    def pick(self, index: NDArray[np.int64]) -> Any:
        """The inputs of some examples."""
        where = torch.as_tensor(index, device=self.device)
        if isinstance(self.inputs, Mapping):
            return {name: value[where] for name, value in self.inputs.items()}
        return self.inputs[where]

    def chunks(self, index: NDArray[np.int64] | None = None, size: int | None = None) -> Iterator[NDArray[np.int64]]:
        """Positions, so many at a time as memory allows."""
        every = np.arange(self.n) if index is None else index
        step = size or self.at_once()
        for first in range(0, len(every), step):
            yield every[first : first + step]

    # ------------------------------------------------------------ products

    def times(self, index: NDArray[np.int64], v: Tensor) -> Tensor:
        """J v for the columns of v, (b·C, columns), by forward differentiation."""
        x = self.pick(index)
        with evaluating(self.model), warnings.catch_warnings():
            # Forward differentiation loads parts of torch that warn about torch's own future.
            warnings.simplefilter("ignore", FutureWarning)
            found = [
                jvp(lambda p: self.values(p, x), (self.parameters,), (self.unflat(column.contiguous()),))[1].reshape(-1)
                for column in v.T
            ]
        return torch.stack(found, 1).detach()

    def transposed_times(self, index: NDArray[np.int64], u: Tensor) -> Tensor:
        """Jᵀ u for the columns of u, (m, columns), by backward differentiation."""
        x = self.pick(index)
        with evaluating(self.model):
            out, pull = _pullback(lambda p: self.values(p, x), self.parameters)
            found = [self.flat(pull(column.reshape(out.shape))[0]) for column in u.T]
        return torch.stack(found, 1).detach()


def _pullback(function: Any, parameters: dict[str, Tensor]) -> tuple[Tensor, Any]:
    """The value, and what takes a vector back through the function."""
    found: Any = vjp(function, parameters)
    return found[0], found[1]


def _by_loop(one: Any, parameters: dict[str, Tensor], x: Any, n: int) -> dict[str, Tensor]:
    """The same rows without vmap over examples, for networks that vmap cannot take."""
    parts = []
    for i in range(n):
        single = {name: value[i] for name, value in x.items()} if isinstance(x, Mapping) else x[i]
        out, pull = _pullback(lambda p, single=single: one(p, single), parameters)
        basis = torch.eye(len(out), dtype=out.dtype, device=out.device)
        parts.append([pull(direction)[0] for direction in basis])
    return {name: torch.stack([torch.stack([grad[name] for grad in rows]) for rows in parts]) for name in parameters}


def memory_of(limit: int | None) -> float:
    """Bytes that may be used."""
    if limit is None:
        return 0.5 * float(psutil.virtual_memory().available)
    if isinstance(limit, bool) or not isinstance(limit, (int, float)) or limit <= 0:
        raise InputError(
            f"memory_limit is {limit!r}: give bytes, such as 4e9, or None for half of what is free", code="memory-size"
        )
    return float(limit)


def shown(size: float) -> str:
    """Bytes as people read them."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"


# ------------------------------------------------------------ linear layers as products

PROBED_EXAMPLES = 3  # examples on which the products are held against the gradients themselves


class FactoredRows(NamedTuple):
    """The rows of some examples."""

    dense: Tensor  # (b·C, columns of all other parameters)
    slopes: list[Tensor]  # of each layer: ∂f/∂z, (b·C, out)
    inputs: list[Tensor]  # of each layer: a, and 1 where it has a bias, (b, in + 1)


def products(one: FactoredRows, other: FactoredRows) -> Tensor:
    """The inner products of all rows of one with all of another, in float64."""
    found = (one.dense @ other.dense.T).double()
    for slope, a, slope2, a2 in zip(one.slopes, one.inputs, other.slopes, other.inputs, strict=True):
        found += _outer_products(slope, a, slope2, a2)
    return found


def products_of_change(before: FactoredRows, after: FactoredRows) -> Tensor:
    """The inner products of the rows of `after - before`, in float64."""
    change = after.dense - before.dense
    found = (change @ change.T).double()
    for slope, a, slope2, a2 in zip(before.slopes, before.inputs, after.slopes, after.inputs, strict=True):
        # Each row is (slope2 - slope) ⊗ a2 + slope ⊗ (a2 - a): differences first, so that nothing cancels later.
        parts = ((slope2 - slope, a2), (slope, a2 - a))
        for one in parts:
            for other in parts:
                found += _outer_products(*one, *other)
    return found


def _outer_products(slope: Tensor, a: Tensor, slope2: Tensor, a2: Tensor) -> Tensor:
    """Those of the rows slope ⊗ a and slope2 ⊗ a2; an example has one a, and a slope for each of its outputs."""
    alike = a.double() @ a2.double().T
    b, b2 = alike.shape
    part = (slope.double() @ slope2.double().T).view(b, len(slope) // b, b2, len(slope2) // b2)
    return (part * alike[:, None, :, None]).view(len(slope), len(slope2))


class Factors:
    """Which layers of a network can be left as products, and its rows in this form."""

    def __init__(self, jacobian: Jacobian):
        self.jacobian = jacobian
        self.layers = _candidates(jacobian)
        if self.layers and not self._hold():
            self.layers = {}

    @property
    def columns(self) -> int:
        """Numbers to keep for each row."""
        layers = self.layers.values()
        left = self.jacobian.m - sum(weight.numel() for layer in layers for weight in layer.parameters())
        return left + sum(layer.out_features + layer.in_features for layer in layers)

    def at_once(self) -> int:
        """How many examples' rows are computed together."""
        return self.jacobian.at_once(self.columns)

    def rows(self, index: NDArray[np.int64], parameters: dict[str, Tensor] | None = None) -> FactoredRows:
        """The rows of some examples; at other weights, where these are given."""
        jacobian, here = self.jacobian, parameters or self.jacobian.parameters
        if not self.layers:
            return FactoredRows(jacobian.rows(index, here), [], [])
        with evaluating(jacobian.model):
            parts = [self._some(here, some) for some in jacobian.chunks(index, self.at_once())]
        return FactoredRows(
            torch.cat([part.dense for part in parts]),
            [torch.cat(layer) for layer in zip(*(part.slopes for part in parts), strict=True)],
            [torch.cat(layer) for layer in zip(*(part.inputs for part in parts), strict=True)],
        )

    def _some(self, parameters: dict[str, Tensor], index: NDArray[np.int64]) -> FactoredRows:
        jacobian, x = self.jacobian, self.jacobian.pick(index)
        caught: dict[str, Tensor] = {}
        with _on_outputs(self.layers, lambda name, a, z: caught.update({name: a.detach()})):
            jacobian.values(parameters, x)
        inputs = [
            a if layer.bias is None else torch.cat([a, a.new_ones(len(a), 1)], 1)
            for a, layer in ((caught[name], layer) for name, layer in self.layers.items())
        ]
        inside = {weight for name, layer in self.layers.items() for weight, _ in layer.named_parameters(name)}
        fixed = {name: value for name, value in parameters.items() if name in inside}
        rest = {name: value for name, value in parameters.items() if name not in inside}
        nudges = {name: caught[name].new_zeros(layer.out_features) for name, layer in self.layers.items()}

        def one(rest: dict[str, Tensor], nudges: dict[str, Tensor], x: Any) -> Tensor:
            with _on_outputs(self.layers, lambda name, a, z: z + nudges[name]):
                return jacobian.single({**fixed, **rest}, x)

        dense, slopes = vmap(jacrev(one, argnums=(0, 1)), in_dims=(None, None, 0))(rest, nudges, x)
        b = len(index) * jacobian.outputs
        none = [inputs[0].new_zeros(b, 0)]
        return FactoredRows(
            torch.cat([value.detach().reshape(b, -1) for value in dense.values()] or none, 1),
            [slopes[name].detach().reshape(b, -1) for name in self.layers],
            inputs,
        )

    def _hold(self) -> bool:
        """Whether the products are those of the gradients: a network may use a layer's weights in other ways too."""
        jacobian, index = self.jacobian, np.arange(min(PROBED_EXAMPLES, self.jacobian.n))
        generator = torch.Generator().manual_seed(0)
        u = torch.randn(len(index) * jacobian.outputs, 1, generator=generator, dtype=torch.float64)
        u = u.to(jacobian.device, jacobian.dtype)
        try:
            rows = self.rows(index)
        except RuntimeError:  # vmap cannot do everything that a network may do
            return False
        wanted = float(jacobian.transposed_times(index, u).double().square().sum())
        found = float((u.T.double() @ products(rows, rows) @ u.double()).squeeze())
        return abs(found - wanted) <= 1e3 * torch.finfo(jacobian.dtype).eps * wanted


def _candidates(jacobian: Jacobian) -> dict[str, nn.Linear]:
    """Linear layers that are used once, on one vector an example, with weights that are trained and theirs alone."""
    model = jacobian.model
    owners = Counter(id(value) for module in model.modules() for value in module._parameters.values())
    layers = {
        name: module
        for name, module in model.named_modules()
        if type(module) is nn.Linear
        and all(value.requires_grad and owners[id(value)] == 1 for value in module.parameters())
        and module._parameters.get("weight") is not None
    }
    calls: Counter[str] = Counter()

    def count(name: str, a: Tensor, z: Tensor) -> None:
        calls[name] += 1 if a.ndim == 2 and len(a) == size else 2

    index = np.arange(min(PROBED_EXAMPLES, jacobian.n))
    size = len(index)
    with evaluating(model), _on_outputs(layers, count):
        jacobian.values(jacobian.parameters, jacobian.pick(index))
    return {name: layer for name, layer in layers.items() if calls[name] == 1}


@contextmanager
def _on_outputs(layers: dict[str, nn.Linear], what: Any) -> Iterator[None]:
    """While this lasts `what(name, input, output)` is asked at each layer; what it returns, if anything, goes on."""
    hooks = [
        layer.register_forward_hook(lambda _, inputs, z, name=name: what(name, inputs[0], z))
        for name, layer in layers.items()
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()

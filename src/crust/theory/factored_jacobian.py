"""Rows of a Jacobian in which linear layers stay products: inner products of rows then cost a fraction of their length.

Where a layer z = W a + b sees one vector an example, the gradient of an output with respect to (W, b) is the outer
product of ∂f/∂z and (a, 1), and the inner product of two of these is the product of two short ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import jacrev, vmap

from crust._util.torch_modules import evaluating

if TYPE_CHECKING:
    from crust.theory.jacobian import Jacobian

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
    """Which layers of a network can be left as products, and its rows in this form.

    Example:
        >>> from crust.theory.jacobian import Jacobian
        >>> jacobian = Jacobian(nn.Linear(3, 2), torch.ones(4, 3), torch.float64)
        >>> rows = Factors(jacobian).rows(np.arange(4))
        >>> rows.dense.shape, rows.slopes[0].shape, rows.inputs[0].shape
        (torch.Size([8, 0]), torch.Size([8, 2]), torch.Size([4, 4]))
        >>> torch.equal(products(rows, rows), (dense := jacobian.rows(np.arange(4))) @ dense.T)
        True
    """

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
        inputs = [_with_one(caught[name], layer) for name, layer in self.layers.items()]

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


def _with_one(a: Tensor, layer: nn.Linear) -> Tensor:
    return a if layer.bias is None else torch.cat([a, a.new_ones(len(a), 1)], 1)


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

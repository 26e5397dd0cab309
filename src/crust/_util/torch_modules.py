"""What crust needs to know about a network that it did not build: its logits and its last layer.

Everything here only looks: afterwards the network and all random states are as they were.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from crust._util.foreign import positional_count
from crust.errors import InputError, choices


def logits_of(output: Any) -> Tensor:
    """The logits in what a network returned: the tensor itself, or its `.logits` (or the key `"logits"`)."""
    found = output if isinstance(output, Tensor) else getattr(output, "logits", None)
    if found is None and isinstance(output, Mapping):
        found = output.get("logits")
    if not isinstance(found, Tensor):
        kind = type(output).__name__
        raise InputError(
            f"the model returns a {kind}: let it return the logits, or an object with .logits", code="model-output"
        )
    return found


def forward(model: nn.Module, x: Any) -> Any:
    """What a network returns for a batch; a mapping is handed over by name, as transformers want it."""
    if isinstance(x, Mapping):
        return model(**x)
    return model(*x) if isinstance(x, list | tuple) and positional_count(model.forward) != 1 else model(x)


def forward_names(model: nn.Module) -> frozenset[str]:
    """What a network takes by name; adapters such as those of peft are looked through.

    Example:
        >>> sorted(forward_names(nn.Bilinear(2, 2, 3)))
        ['input1', 'input2']
    """
    base = getattr(unwrapped(model), "get_base_model", None)
    inner = base() if callable(base) else unwrapped(model)
    parameters = inspect.signature(inner.forward).parameters.values()
    return frozenset(one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY))


def parts_of(x: Any) -> list[Any]:
    """The tensors of a batch: it is one, or several by name or in a row."""
    return list(x.values()) if isinstance(x, Mapping) else list(x) if isinstance(x, list | tuple) else [x]


def map_parts(each: Callable[[Any], Any], x: Any) -> Any:
    """The same for every tensor of a batch."""
    if isinstance(x, Mapping):
        return {name: each(value) for name, value in x.items()}
    return [each(value) for value in x] if isinstance(x, list | tuple) else each(x)


def forward_logits(model: nn.Module, x: Any) -> Tensor:
    """The logits of a batch."""
    return logits_of(forward(model, x))


def two_logits(z: Tensor) -> Tensor:
    """One logit for two classes as two of them: (n,) or (n, 1) to (n, 2).

    Example:
        >>> two_logits(torch.tensor([1.5, -2.0])).tolist()
        [[0.0, 1.5], [0.0, -2.0]]
    """
    z = z.reshape(len(z))
    return torch.stack([torch.zeros_like(z), z], dim=1)


class OutputForm:
    """How a network's own output becomes logits, a column a class.

    Args:
        own: the user's function of what the network returns; None: the tensor itself, or its `.logits`.
        one_logit: whether it is one number for two classes.
    """

    def __init__(self, own: Callable[[Any], Tensor] | None = None, one_logit: bool = False):
        self.own, self.one_logit = own, one_logit

    def __call__(self, output: Any) -> Tensor:
        if self.own is None:
            found = logits_of(output)
        else:
            try:
                found = self.own(output)
            except Exception as error:
                reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
                raise InputError(f"the function given as logits fails: {reason}", code="bad-logits") from error
            if not isinstance(found, Tensor):
                raise InputError(
                    f"the function given as logits returns a {type(found).__name__}: let it return a tensor, a column "
                    "a class",
                    code="bad-logits",
                )
        return two_logits(found) if self.one_logit else found

    def put_on(self, network: nn.Module) -> nn.Module:
        """The network, which returns logits from now on; its weights and their names stay."""
        if self.own is not None or self.one_logit:
            network.register_forward_hook(lambda module, inputs, output: self(output))
        return network

    @contextmanager
    def on(self, network: nn.Module) -> Iterator[None]:
        """The same for a while."""
        before = set(network._forward_hooks)
        self.put_on(network)
        try:
            yield
        finally:
            for number in set(network._forward_hooks) - before:
                del network._forward_hooks[number]


def output_form(model: nn.Module, sample: Any, classes: int, own: Callable[[Any], Tensor] | None = None) -> OutputForm:
    """How the output of a network becomes logits; whether it is one number for two classes is seen by a batch."""
    form = OutputForm(own)
    if classes == 2:
        try:
            with evaluating(model):
                shape = form(forward(model, to_device(sample, device_of(model)))).shape
        except Exception:  # check_outputs says what is wrong
            return form
        form.one_logit = len(shape) == 1 or tuple(shape[1:]) == (1,)
    return form


def check_network(model: Any, what: str = "the model") -> None:
    """Hold that this is a network whose weights are there.

    Example:
        >>> check_network(nn.LazyLinear(2))
        Traceback (most recent call last):
        ...
        crust.errors.InputError: the model has lazy layers that do not know their shape yet: show it ...
    """
    if not isinstance(model, nn.Module):
        raise InputError(f"{what} is a {type(model).__name__}: give a network, an nn.Module", code="model-type")
    weights = [*model.parameters(), *model.buffers()]
    if any(nn.parameter.is_lazy(weight) for weight in weights):
        raise InputError(
            f"{what} has lazy layers that do not know their shape yet: show it one batch first, model(x)",
            code="lazy-model",
        )
    if any(weight.is_meta for weight in weights):
        raise InputError(
            f"{what} is on the device meta, where weights have no values: make it on the CPU", code="meta-model"
        )


def to_device(x: Any, device: torch.device | str) -> Any:
    """A batch on another device, whether it is one tensor or a mapping of them."""
    for part in parts_of(x):
        if not hasattr(part, "to"):
            raise InputError(
                f"a batch of inputs is a {type(part).__name__}: give tensors, or a dataset whose items hold tensors, "
                "arrays or numbers",
                code="batch-type",
            )
    return map_parts(lambda part: part.to(device, non_blocking=True), x)


LABELS = ("labels", "label", "label_ids", "target", "targets")  # what a batch that is a mapping calls them


def inputs_in(batch: Any) -> Any:
    """The inputs in a batch as a DataLoader yields it: x of (x, y), or of a mapping all tensors but the labels.

    Example:
        >>> x, y = torch.zeros(2), torch.ones(2)
        >>> inputs_in((x, y)), list(inputs_in({"ids": x, "labels": y}))
        (tensor([0., 0.]), ['ids'])
    """
    if isinstance(batch, Mapping):
        return {key: value for key, value in batch.items() if key not in LABELS and isinstance(value, Tensor)}
    if not isinstance(batch, list | tuple):
        return batch
    if len(batch) > 2:
        raise InputError(
            f"a batch has {len(batch)} parts: let the collate_fn make (inputs, labels), or a dict of tensors by name",
            code="batch-parts",
        )
    return inputs_in(batch[0]) if isinstance(batch[0], Mapping) else batch[0]


def slice_batch(x: Any, first: int, last: int) -> Any:
    """Some rows of a batch, whether it is one tensor or a mapping of them."""
    return map_parts(lambda part: part[first:last], x)


def unwrapped(model: nn.Module) -> nn.Module:
    """The network itself, where it comes in DataParallel, DistributedDataParallel or torch.compile.

    Example:
        >>> inner = nn.Linear(2, 3)
        >>> unwrapped(nn.DataParallel(inner)) is inner, unwrapped(inner) is inner
        (True, True)
    """
    while True:
        if isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
            model = model.module
        elif isinstance(compiled := getattr(model, "_orig_mod", None), nn.Module):  # of torch.compile
            model = compiled
        else:
            return model


def device_of(model: nn.Module) -> torch.device:
    """The device of a network: that of its first parameter or buffer, else the CPU."""
    for tensor in (*model.parameters(), *model.buffers()):
        return tensor.device
    return torch.device("cpu")


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Look at a network without changing it: eval mode, no gradients, and all random states put back afterwards.

    Args:
        model: the network. The flag of each of its modules is set and put back by itself, so that parts which are
            frozen in eval mode stay so, and no `train()` of the user's own is called.
    """
    device = device_of(model)
    devices = [device] if device.type in ("cuda", "xpu") else []
    python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002 - kept, not used
    try:
        forked = torch.random.fork_rng(devices, device_type=device.type if devices else "cuda")
        with _flags(model, False), forked, torch.no_grad():
            yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)  # noqa: NPY002


@contextmanager
def training(model: nn.Module) -> Iterator[None]:
    """Run a network in train mode without gradients: BatchNorm statistics and random states move as in training.

    The flags of its modules are put back afterwards.
    """
    with _flags(model, True), torch.no_grad():
        yield


@contextmanager
def _flags(model: nn.Module, flag: bool) -> Iterator[None]:
    before = [(module, module.training) for module in model.modules()]
    try:
        for module, _ in before:
            module.training = flag
        yield
    finally:
        for module, was in before:
            module.training = was


def evaluate_batches(
    model: nn.Module,
    batches: Iterable[tuple[Any, Any]],
    each: Callable[[Any, Any, Tensor], None],
    *,
    device: torch.device | str | None = None,
    train_mode: bool = False,
    autocast: torch.dtype | None = None,
    forward: Callable[[nn.Module, Any], Any] = forward_logits,
) -> None:
    """A pass over a dataset: the one way in which crust runs a network that it does not train just then.

    Args:
        model: the network; it is in eval mode and without gradients meanwhile, see `evaluating`.
        batches: pairs of inputs and anything that goes with them, such as positions.
        each: called with the inputs on the device, what goes with them, and the logits.
        device: where to compute; None is where the network is.
        train_mode: run in train mode instead, see `training`.
        autocast: compute the network in this type.
        forward: what is computed of a batch in place of the logits.

    Example:
        >>> sizes = []
        >>> pieces = [(torch.zeros(4, 2), "first"), (torch.zeros(1, 2), "last")]
        >>> evaluate_batches(nn.Linear(2, 3), pieces, lambda x, name, logits: sizes.append((name, *logits.shape)))
        >>> sizes
        [('first', 4, 3), ('last', 1, 3)]
    """
    place = device_of(model) if device is None else torch.device(device)
    with training(model) if train_mode else evaluating(model):
        for x, index in batches:
            inputs = to_device(x, place)
            with torch.autocast(place.type, autocast) if autocast else nullcontext():
                found = forward(model, inputs)
            each(inputs, index, found)


def last_linear(model: nn.Module, sample: Any, name: str | None = None) -> tuple[str, nn.Module]:
    """Find the layer whose output is the logits, by watching the network handle a few examples.

    Args:
        model: any network that returns logits, or an object with `.logits`.
        sample: a batch of a few examples.
        name: the layer's name in `model.named_modules()` where it is known; it is then taken without watching.

    Returns:
        The name and the layer: an `nn.Linear`, or a 1x1 convolution used as one.
    """
    candidates = {key: module for key, module in model.named_modules() if _is_linear(module)}
    if name is not None:
        if name not in candidates and name in dict(model.named_modules()):
            kind = type(model.get_submodule(name)).__name__
            raise InputError(
                f"the layer {name!r} is a {kind}: name an nn.Linear, one of {_last_names(candidates)}",
                code="last-layer",
            )
        return name, candidates[choices(name, candidates, "layer")]
    if not candidates:
        raise InputError("the model has no linear layer: use the proxy 'logits', which needs none", code="last-layer")

    calls: list[tuple[str, Tensor]] = []
    # An activation in place would change the output after the call: hence the copies.
    handles = [
        module.register_forward_hook(lambda _module, _args, out, key=key: calls.append((key, out.detach().clone())))
        for key, module in candidates.items()
    ]
    try:
        with evaluating(model):
            logits = forward_logits(model, to_device(sample, device_of(model)))
    finally:
        for handle in handles:
            handle.remove()
    for key, out in reversed(calls):
        if out.numel() == logits.numel() and _equal_outputs(out.reshape(logits.shape), logits):
            return key, candidates[key]
    raise InputError(
        f"no linear layer of the model gives its output: name the last layer, one of {_last_names(candidates)}, "
        "or use the proxy 'logits', which needs none",
        code="last-layer",
    )


def _is_linear(module: nn.Module) -> bool:
    if isinstance(module, nn.Conv2d):
        return module.kernel_size == (1, 1) and module.groups == 1
    return isinstance(module, nn.Linear)


def _equal_outputs(out: Tensor, logits: Tensor) -> bool:
    return torch.allclose(out, logits.to(out.dtype), rtol=0, atol=0, equal_nan=True)


def _last_names(names: Mapping[str, nn.Module]) -> str:
    last = [name or "''" for name in names][-5:]
    return ("…, " if len(names) > 5 else "") + ", ".join(last)


def check_outputs(model: nn.Module, sample: Any, classes: int) -> None:
    """Make sure that a network takes the data and gives one output a class; else say in one sentence what is wrong."""
    first: Any = next(iter(parts_of(sample)), None)
    if not hasattr(first, "shape"):
        raise InputError(
            f"a batch of inputs holds a {type(first).__name__}: let the items of the dataset hold tensors, or give a "
            "collate_fn that makes them",
            code="batch-type",
        )
    n = len(first)
    with evaluating(model):
        try:
            output = forward(model, to_device(sample, device_of(model)))
        except InputError:
            raise
        except Exception as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise InputError(
                f"the model cannot take an example of shape {tuple(first.shape[1:])}: {reason.rstrip('.')}",
                code="model-input",
            ) from error
    logits = logits_of(output)
    if not logits.is_floating_point():
        kind = str(logits.dtype).removeprefix("torch.")
        raise InputError(f"the model returns {kind}: let it return the logits, which are floats", code="model-output")
    if logits.shape in ((n,), (n, 1)) and classes == 1:
        return
    if logits.ndim != 2 or len(logits) != n:
        raise InputError(
            f"the model gives an output of shape {tuple(logits.shape)} for {n} examples: "
            f"let it return logits of shape ({n}, {classes})",
            code="model-output",
        )
    if logits.shape[1] != classes:
        single = logits.shape[1] == 1
        advice = "; numbers to be predicted (regression) have to be put into a few classes first" * single
        raise InputError(
            f"the model has {logits.shape[1]} output{'s' * (not single)}, but the data has {classes} classes: "
            f"give the model {classes} outputs{advice}",
            code="model-classes",
        )
    if (
        classes > 1
        and bool((logits >= 0).all())
        and torch.allclose(logits.float().sum(1), torch.ones(n, device=logits.device), rtol=0, atol=1e-3)
    ):
        raise InputError(
            "the model returns probabilities, since they sum to 1: let it return the logits, without the softmax at "
            "its end",
            code="model-probabilities",
        )


def check_shape(model: nn.Module, sample: Any, classes: int, shape: Iterable[int], what: str) -> None:
    """Inputs of another shape than those trained on are fine where the network takes them, as some do any images."""
    found, trained = tuple(getattr(sample, "shape", ()))[1:], tuple(shape)
    if not found or not trained or found == trained:
        return
    try:
        check_outputs(model, sample, classes)
    except InputError:
        raise InputError(
            f"{what} have shape {found}, but those trained on had {trained}: bring them into that shape",
            code="array-shape",
        ) from None

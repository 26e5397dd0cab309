"""A small dataset, networks on it, and the slow, obvious gradients."""

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from crust.models import build_model

N, C = 23, 4
X = torch.randn(N, 1, 8, 8, generator=torch.Generator().manual_seed(0))
Y = np.random.default_rng(0).integers(0, C, N)


def network(name="resnet8", classes=C):
    """With BatchNorm statistics that differ from the initial ones."""
    model = build_model(name, in_shape=(1, 8, 8), classes=classes, seed=1)
    with torch.no_grad():
        for _ in range(3):
            model(2 * X + 1)
    return model


def batches(size=5, order=None, x=X):
    order = np.arange(len(x)) if order is None else np.asarray(order)
    for first in range(0, len(order), size):
        yield x[order[first : first + size]], order[first : first + size]


def autograd(model, kind, loss="cross-entropy", labels=Y, last=None):
    """One example after another, with loss.backward()."""
    model.eval()
    rows = []
    for x, y in zip(X, labels, strict=True):
        kept = {}
        last = last or [m for m in model.modules() if isinstance(m, nn.Linear)][-1]

        def keep(_module, args, out, kept=kept):
            kept["features"], kept["logits"] = args[0], out
            args[0].retain_grad()
            out.retain_grad()

        handle = last.register_forward_hook(keep)
        model.zero_grad()
        logits = model(x[None].requires_grad_())
        if loss == "squared":
            target = torch.tensor(y) if logits.shape[1] == 1 else torch.eye(C)[y]
            value = (logits - target).square().sum() / 2
        else:
            value = cross_entropy(logits, torch.tensor([y]))
        value.backward()
        handle.remove()
        gradients = [p.grad.flatten() for p in model.parameters()] if kind == "exact" else [kept[kind].grad.flatten()]
        rows.append(torch.cat(gradients).numpy())
    model.zero_grad()
    return np.stack(rows)


def everything(model):
    """The bytes of the state, and all that a pass must leave alone."""
    return (
        {name: value.numpy().tobytes() for name, value in model.state_dict().items()},
        [module.training for module in model.modules()],
        [(p.requires_grad, None if p.grad is None else p.grad.numpy().tobytes()) for p in model.parameters()],
        [len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()],
        torch.get_rng_state().numpy().tobytes(),
        torch.is_grad_enabled(),
    )

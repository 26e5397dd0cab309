"""The mentor: a network of 260 numbers that turns loss, difference and time into a weight, and how it is taught."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name

from crust.methods.mentornet.curricula import predefined

BATCH, RATE, SLOWER, DROPS, CLIP = 1024, 0.1, 0.9, 30, 5.0
Rows = tuple[Tensor, Tensor, Tensor, Tensor]  # loss, difference, time, weight to be learnt


class Mentor(nn.Module):
    """Weights of examples from their losses.

    A recurrent cell in two directions over a single step leaves two numbers, each a gate times a tanh of loss and
    difference. With them go the embeddings of the time, which are random and stay so, and of a label that is always 0.
    """

    def __init__(self, generator: torch.Generator):
        super().__init__()

        def layer(outputs: int, inputs: int) -> nn.Parameter:
            bound = (6 / (inputs + outputs)) ** 0.5
            return nn.Parameter((2 * torch.rand(outputs, inputs, generator=generator) - 1) * bound)

        self.label = nn.Parameter(torch.randn(2, generator=generator))
        self.time = nn.Parameter(torch.randn(100, 5, generator=generator), requires_grad=False)
        self.cell, self.cell_bias = layer(4, 2), nn.Parameter(torch.zeros(4))
        self.hidden, self.hidden_bias = layer(20, 9), nn.Parameter(torch.zeros(20))
        self.out, self.out_bias = layer(1, 20), nn.Parameter(torch.zeros(1))

    def forward(self, loss: Tensor, difference: Tensor, time: Tensor) -> Tensor:
        """The logit of each weight."""
        gate, value = F.linear(torch.stack([loss, difference], 1), self.cell, self.cell_bias).chunk(2, dim=1)
        label = self.label.expand(len(loss), 2)
        seen = torch.cat([label, self.time[time], gate.sigmoid() * value.tanh()], dim=1)
        hidden = F.linear(seen, self.hidden, self.hidden_bias).tanh()
        return F.linear(hidden, self.out, self.out_bias)[:, 0]

    @torch.no_grad()
    def weigh(self, loss: Tensor, difference: Tensor, time: int) -> Tensor:
        """Weights between 0 and 1, without gradients."""
        when = torch.full((len(loss),), time, device=loss.device)
        return self(loss.detach(), difference.detach(), when).sigmoid()


def taught(
    draw: Callable[[torch.Generator], Rows], steps: int, generator: torch.Generator, *, binary: bool = False
) -> Mentor:
    """A mentor that has learnt to say what `draw` shows it.

    Args:
        draw: makes a batch of rows.
        steps: of Adam.
        generator: for the first weights and the batches.
        binary: the weights are 0 or 1 and noisy: learn their probability, by cross-entropy.

    Example:
        >>> mentor = taught(grid, 3, torch.Generator().manual_seed(0))
        >>> mentor.training
        False
    """
    mentor = Mentor(generator)
    trained = [p for p in mentor.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(trained, RATE)
    with torch.enable_grad():
        for step in range(steps):
            optimizer.param_groups[0]["lr"] = RATE * SLOWER ** (step * DROPS // steps)
            loss, difference, time, wanted = draw(generator)
            said = mentor(loss, difference, time)
            miss = F.binary_cross_entropy_with_logits(said, wanted) if binary else F.mse_loss(said.sigmoid(), wanted)
            optimizer.zero_grad()
            miss.backward()
            nn.utils.clip_grad_norm_(trained, CLIP)
            optimizer.step()
    return mentor.requires_grad_(False).eval()


def grid(generator: torch.Generator) -> Rows:
    """A batch of the predefined curriculum: losses up to 29, dense below 10; differences from -5 to 5; all times.

    Example:
        >>> [part.shape for part in grid(torch.Generator().manual_seed(0))] == [torch.Size([1024])] * 4
        True
    """
    place = torch.randint(120, (BATCH,), generator=generator)
    loss = torch.where(place < 100, place * 0.1, place - 90.0)
    difference = torch.randint(100, (BATCH,), generator=generator) * 0.1 - 5
    time = torch.randint(100, (BATCH,), generator=generator)
    return loss, difference, time, predefined(difference, time)


def from_table(rows: Rows) -> Callable[[torch.Generator], Rows]:
    """Batches at random from rows that were collected."""

    def draw(generator: torch.Generator) -> Rows:
        some = torch.randint(len(rows[0]), (BATCH,), generator=generator)
        loss, difference, time, wanted = (part[some] for part in rows)
        return loss, difference, time, wanted

    return draw

"""A small network for texts, as token ids."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from crust.models.networks import check_count, dropout_layers, initialise

__all__ = ["TextNetwork"]


class TextNetwork(nn.Module):
    """The mean of the embeddings of a text's tokens, normalised, and an MLP on it; 0 is padding and does not count.

    Without the normalisation a mean over hundreds of tokens is so small that the first epochs learn next to nothing.

    Args:
        in_shape: the number of different ids, 0 counted.
        classes: the number of outputs.
        dim: the size of an embedding.
        hidden: the size of the hidden layer; 0 makes it a linear classifier, as in fastText.
        dropout: share that is dropped of the mean and of the hidden layer in training.
        token_dropout: share of the tokens that are left out in training. Rare words tell a text from all others, and by
            them wrong labels are memorised.

    Reference:
        Joulin, Grave, Bojanowski, Mikolov: Bag of Tricks for Efficient Text Classification, 2017.

    Example:
        >>> network = TextNetwork((100,), 3).eval()
        >>> short, padded = torch.tensor([[7, 5]]), torch.tensor([[7, 5, 0, 0]])
        >>> network(short).shape, torch.allclose(network(short), network(padded))
        (torch.Size([1, 3]), True)
    """

    def __init__(
        self,
        in_shape: Sequence[int],
        classes: int,
        *,
        dim: int = 32,
        hidden: int = 64,
        dropout: float = 0.0,
        token_dropout: float = 0.5,
    ):
        super().__init__()
        size = check_count(dim, "dim")
        dropout_layers(token_dropout)  # refuses what is no share
        self.token_dropout = token_dropout
        self.embedding = nn.EmbeddingBag(in_shape[0], size, mode="mean", padding_idx=0)
        layers: list[nn.Module] = [nn.LayerNorm(size), *dropout_layers(dropout)]
        if hidden:
            layers += [nn.Linear(size, check_count(hidden, "hidden")), nn.ReLU(), *dropout_layers(dropout)]
        self.head = initialise(nn.Sequential(*layers, nn.Linear(hidden or size, classes)))
        nn.init.normal_(self.embedding.weight, std=0.1)
        nn.init.zeros_(self.embedding.weight[0].detach())

    def forward(self, x: Tensor) -> Tensor:
        """Logits of a batch of texts; one without tokens has a mean of zero."""
        if self.training and self.token_dropout:
            x = x * (torch.rand(x.shape, device=x.device) >= self.token_dropout)
        return self.head(self.embedding(x))

"""A cheap stand-in for the gradient of every training example, from one pass over the data.

The gradient of the loss at the last layer says most of what tells two gradients apart (the paper's Eq. "upper"), and it
needs no backpropagation: for softmax cross-entropy it is p - y, the probabilities minus the given label.
"""

from crust.gradients.per_example import LOSSES
from crust.gradients.proxies import KINDS, GradientPass, merge_passes, proxies

__all__ = ["KINDS", "LOSSES", "GradientPass", "merge_passes", "proxies"]

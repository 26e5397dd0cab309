"""Networks by name: the ResNets of He et al. for small images, a small CNN, an MLP, and `timm:NAME` for the rest.

All return logits. Weights depend on the seed alone, and no random state of the program is touched.
"""

from crust.models.build import MODELS, build_model, settings_of
from crust.models.networks import ResNet, mlp, small_cnn

__all__ = ["MODELS", "ResNet", "build_model", "mlp", "settings_of", "small_cnn"]

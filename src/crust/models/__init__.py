"""Networks by name: ResNets of He et al. for small images, a small CNN, an MLP, one for texts, and all of timm.

All return logits. Weights depend on the seed alone, and no random state of the program is touched.
"""

from crust.models.build import MODELS, build_model, settings_of
from crust.models.networks import ResNet, mlp, small_cnn
from crust.models.text_network import TextNetwork

__all__ = ["MODELS", "ResNet", "TextNetwork", "build_model", "mlp", "settings_of", "small_cnn"]

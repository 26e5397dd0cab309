"""Train your own network on wrong labels: plain training and crust side by side, epoch by epoch.

    python examples/train_your_own_network.py

Leaves train_your_own_network.png: accuracy on right labels that neither of them saw.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

import crust


class Network(nn.Module):
    """Any network that returns logits will do."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU())
        self.head = nn.Linear(256, 10)

    def forward(self, x):
        return self.head(self.body(x))


x, truth = load_digits(return_X_y=True)
x = (x / 16).astype("float32")
rng = np.random.default_rng(0)
given = np.where(rng.random(len(truth)) < 0.4, rng.integers(10, size=len(truth)), truth)  # 36% wrong

for method in ("erm", "crust"):
    torch.manual_seed(0)
    test = (x[1300:], truth[1300:])
    result = crust.fit(Network(), (x[:1300], given[:1300]), method=method, test_set=test, epochs=40, seed=0)
    plt.plot(result.history["test_accuracy"], label=method)
    print(f"{method}: {result.accuracy}")
plt.xlabel("epoch")
plt.ylabel("accuracy on right labels")
plt.legend()
plt.savefig("train_your_own_network.png", dpi=120)

"""Choose a diverse tenth of your embeddings: the points that represent all others best.

    python examples/a_diverse_tenth.py [EMBEDDINGS.npy]

Leaves a_diverse_tenth.png: the chosen ones, as large as what they stand for, among all.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

import crust

points = np.load(sys.argv[1], mmap_mode="r") if len(sys.argv) > 1 else load_digits().data
coreset = crust.select(points, 0.1)
print(coreset)
print(crust.estimate_cost(len(points), points.shape[1], len(coreset.indices)))
by_chance = crust.select(points, 0.1, algorithm="random", seed=0)
print(f"distance to the nearest chosen one: {coreset.objective / by_chance.objective:.2f} of a random tenth's")

flat = PCA(2).fit_transform(points)
plt.scatter(*flat.T, s=3, color="lightgrey")
chosen = flat[coreset.indices]
plt.scatter(*chosen.T, s=3 * coreset.weights, alpha=0.6)
plt.axis("off")
plt.savefig("a_diverse_tenth.png", dpi=120)

"""Check the theory on your run: do right labels lie in the information space of your network, and wrong ones not?

    python examples/theory_of_a_run.py

Leaves theory_of_a_run.png: the spectrum of the Jacobian, and how much of the labels lies in its leading part.
"""

import matplotlib.pyplot as plt
import numpy as np

import crust
from crust import data, noise, theory
from crust.models import build_model

digits = data.load("digits", limit=80).train
truth = digits.labels
given = noise.make_noisy_labels(truth, "symmetric:0.4", classes=10, seed=0).labels
noisy = digits.with_labels(given)
network = build_model("mlp", in_shape=digits.shape, classes=10, hidden=[16])
model = crust.fit(network, noisy, method="erm", epochs=8, batch_size=16, learning_rate=0.05, validation=0).model

spectrum = theory.spectrum(model, noisy)
print(f"{spectrum.rank(0.9)} of {spectrum.shape[0]} dimensions hold 90% of the energy")
ranks = [10, 20, 40, 80, 160]
right = [theory.alignment(model, digits, cut=rank) for rank in ranks]
wrong = [theory.alignment(model, noisy, cut=rank) for rank in ranks]

figure, (left, middle) = plt.subplots(1, 2, figsize=(9, 3.5))
left.semilogy(np.maximum(spectrum.singular_values, 1e-6))
left.set(xlabel="singular value", title="the Jacobian is nearly low-rank")
for name, found in (("right labels", right), ("given labels", wrong)):
    middle.plot(ranks, [each.sets["all"].labels.information for each in found], marker="o", label=name)
middle.set(xlabel="rank of the information space", title="share of the labels in it")
middle.legend()
figure.tight_layout()
figure.savefig("theory_of_a_run.png", dpi=120)

"""The picture at the top of the README: plain training and crust on digits of which 40% have a wrong label.

python tools/readme_picture.py [PICTURE.png]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.gridspec import GridSpec

import crust
from crust.data import load
from crust.noise import make_noisy_labels

GREY, INK, GREEN, RED = "#9aa5b1", "#1f2933", "#0f8a6d", "#c43d3d"
ROWS, COLUMNS = 3, 5

digits = load("digits")
truth = digits.train.labels
given = make_noisy_labels(truth, "symmetric:0.4", classes=10, seed=0).labels
wrong = given != truth
results = {}
for method in ("erm", "crust"):  # as `crust demo`, and whatever is not said, by default
    how = {"method": method, "epochs": 40, "seed": 0, "labels": given, "test_set": digits.test}
    results[method] = crust.fit("small_cnn", digits.train, **how)

table = results["crust"].audit().sort_values("label_quality")
found = wrong[table["index"].to_numpy()[: wrong.sum()]].mean()
print({name: result.accuracy for name, result in results.items()})
print(f"{found:.0%} of the {wrong.sum()} lowest labels are wrong")

figure = plt.figure(figsize=(10, 3.9))
grid = GridSpec(ROWS, COLUMNS + 6, figure=figure, left=0.065, right=0.985, bottom=0.13, top=0.8, hspace=0.75)
axes = figure.add_subplot(grid[:, :5])
for method, colour, name in (("erm", GREY, "plain training"), ("crust", GREEN, "crust")):
    curve = 100 * np.array(results[method].history["test_accuracy"])
    axes.plot(np.arange(1, len(curve) + 1), curve, color=colour, linewidth=2.2)
    axes.annotate(f"{name}  {curve[-1]:.0f}%", (len(curve), curve[-1]), (-2, -19), textcoords="offset points",
                  ha="right", color=colour, weight="bold", bbox={"fc": "white", "ec": "none", "pad": 1})  # fmt: skip
axes.set(ylim=(0, 100), xlim=(1, 40))
axes.set_xlabel("epoch", color=INK)
axes.set_title("Accuracy on right labels, in %", loc="left", fontsize=10.5, color=INK)
axes.spines[["top", "right"]].set_visible(False)
for number, (_, row) in enumerate(table.head(ROWS * COLUMNS).iterrows()):
    panel = figure.add_subplot(grid[number // COLUMNS, 6 + number % COLUMNS])
    panel.imshow(digits.train.inputs[int(row["index"])].squeeze(), cmap="gray_r")
    panel.set_title(f"{row['given_label']} → {row['predicted_label']}", fontsize=9.5, pad=3,
                    color=INK if wrong[int(row["index"])] else RED)  # fmt: skip
    panel.set(xticks=[], yticks=[])
    panel.spines[:].set_color("#d5dbe1")
figure.text(
    0.065,
    0.93,
    f"{len(truth):,} digits, {wrong.mean():.0%} of the labels wrong",
    fontsize=12.5,
    weight="bold",
    color=INK,
)
figure.text(0.555, 0.87, "The labels it trusts least: given → what it reads", fontsize=10.5, color=INK)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "docs/images/what-it-does.png", dpi=130)

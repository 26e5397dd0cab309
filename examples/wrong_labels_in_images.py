"""Find wrong labels in a folder of images: digits as PNG files, a tenth of them in the wrong folder.

    python examples/wrong_labels_in_images.py [FOLDER]

Leaves wrong_labels_in_images.png: the sixteen images with the worst labels, and what they rather are.
"""

import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

import crust
from crust.data import load

if len(sys.argv) > 1:
    folder, length = Path(sys.argv[1]), {}
else:
    folder, length = Path(tempfile.mkdtemp()) / "photos", {"epochs": 12}  # short, so that the example takes seconds
    digits = load_digits()
    planted = np.random.default_rng(0).permutation(600) < 60
    for number, (image, digit) in enumerate(zip(digits.images[:600], digits.target)):
        home = folder / f"digit {(digit + planted[number]) % 10}"
        home.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image * 15).astype("uint8")).save(home / f"{number:04}.png")

data = load(str(folder))
result = crust.fit("auto", data.train, **length)
worst = result.audit().sort_values("label_quality").head(16)

figure, axes = plt.subplots(4, 4, figsize=(8, 9))
for ax, (_, row) in zip(axes.flat, worst.iterrows()):
    ax.imshow(Image.open(folder / row["id"]), cmap="gray_r")
    ax.set_title(f"{row['given_label']}\nrather {row['predicted_label']}", fontsize=8)
    ax.axis("off")
figure.tight_layout()
figure.savefig("wrong_labels_in_images.png", dpi=120)
print(worst[["id", "given_label", "predicted_label", "label_quality"]].to_string(index=False))

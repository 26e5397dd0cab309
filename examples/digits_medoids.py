"""Which handwritten digits stand for all others? `crust select` on the digits that ship with scikit-learn.

Run it with `make demo`; it writes to demo-output/.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

import crust

OUT = Path("demo-output")
PER_DIGIT = 10


def main() -> None:
    OUT.mkdir(exist_ok=True)
    digits = load_digits()
    np.save(OUT / "digits.npy", digits.data.astype(np.float32))
    np.save(OUT / "labels.npy", digits.target)

    words = ["select", OUT / "digits.npy", "-k", 10 * PER_DIGIT, "--groups", OUT / "labels.npy"]
    words += ["-o", OUT / "coreset.parquet", "--plot", OUT / "selection.png"]
    words = [str(word) for word in words]
    print("$ crust", *words, flush=True)
    subprocess.run([sys.executable, "-m", "crust", *words], check=True)

    coreset = crust.Coreset.load(OUT / "coreset.parquet")
    draw_medoids(coreset, digits.images, OUT / "medoids.png")
    print(f"""
Of {len(digits.data):,} handwritten digits, {len(coreset)} were chosen so that every digit is near one of its own kind.
Look at
  {OUT}/medoids.png    the chosen ones, one row a digit; below each, how many others it stands for
  {OUT}/selection.png  how the distance falls as medoids are added, and where they lie among all points""")


def draw_medoids(coreset: crust.Coreset, images: np.ndarray, path: Path) -> None:
    """One row a digit, its medoids from the largest cluster to the smallest."""
    names = np.unique(coreset.groups)
    rows = [np.flatnonzero(coreset.groups == name) for name in names]
    rows = [row[np.argsort(-coreset.weights[row], kind="stable")] for row in rows]
    width = max(map(len, rows))
    figure = Figure(figsize=(0.85 * width + 0.6, 1.02 * len(rows) + 0.7), dpi=130, layout="constrained")
    figure.suptitle("Medoids of handwritten digits, with the size of their clusters", color="#1f2933")
    for row, axes_row in zip(rows, figure.subplots(len(rows), width, squeeze=False), strict=True):
        for axes in axes_row:
            axes.axis("off")
        for position, axes in zip(row, axes_row, strict=False):
            axes.imshow(images[coreset.indices[position]], cmap="gray_r", interpolation="nearest")
            axes.set_title(str(coreset.weights[position]), y=-0.26, fontsize=8, color="#52606d")
    figure.savefig(path)


if __name__ == "__main__":
    main()

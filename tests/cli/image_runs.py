"""Image folders and the audits of runs on them, made by hand."""

import numpy as np
import pandas as pd
import yaml
from PIL import Image

from crust.training.settings import TrainSettings


def images(root, classes, n=8):
    """Class folders of small images, some of each class."""
    rng = np.random.default_rng(0)
    for number, name in enumerate(classes):
        (root / name).mkdir(parents=True)
        for i in range(n):
            pixels = rng.integers(60 * number, 60 * number + 60, size=(8, 8, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(root / name / f"{i:02d}.png")
    return root


def run_of(folder, ids, classes, data, given=None, **options):
    """A run's folder with an audit, and a recipe that names the data."""
    folder.mkdir()
    n = len(ids)
    given = given or [name.partition("/")[0] for name in ids]
    error_score = np.linspace(0.9, 0, n)
    table = {
        "index": range(n),
        "given_label": given,
        "predicted_label": given,
        "predicted_prob": 0.9,
        "label_quality": 1 - error_score,
        "selection_rate": 0.5,
    }
    pd.DataFrame({**table, "id": ids, "is_held_out": False}).to_parquet(folder / "audit.parquet")
    config = {
        "classes": list(classes),
        "method": "erm",
        "model": "small_cnn",
        "built": True,
        "inputs": {"kind": "images", "shape": [3, 8, 8]},
        "experiment": TrainSettings(epochs=1, optimizer="sgd").model_dump(mode="json"),
        "settings": {},
        "validation": 0.1,
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    (folder / "recipe.yaml").write_text(yaml.safe_dump({"data": str(data), "method": "erm", **options}))
    return folder


def folder_run(tmp_path, classes=("cat", "dog"), **options):
    """Images, and the audit of a run on them."""
    root = images(tmp_path / "images", classes)
    ids = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.png"))
    return run_of(tmp_path / "run", ids, classes, root, **options)

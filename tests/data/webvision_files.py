"""A small WebVision with ImageNet's validation images beside it, in the layout of the real ones: three classes."""

from pathlib import Path

import numpy as np
from PIL import Image

SYNSETS = {
    "n01440764": "tench, Tinca tinca",
    "n01443537": "goldfish, Carassius auratus",
    "n01484850": "great white shark, white shark, man-eater, man-eating shark, Carcharodon carcharias",
}
SIZES = [(96, 96), (140, 97), (100, 180), (256, 171)]  # width, height
QUERIES = ("q0001", "q0002", "q0003", "q0005")  # a class may have several: here the last one has two
COLOURS = [(200, 40, 40), (40, 200, 40), (40, 40, 200)]


def write_image(path: Path, label: int, number: int) -> None:
    """A picture of its class's colour, with some noise; every fourth is grey or has a palette."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng([label, number])
    width, height = SIZES[number % len(SIZES)]
    pixels = np.clip(np.array(COLOURS[label]) + rng.integers(-40, 40, (height, width, 3)), 0, 255).astype(np.uint8)
    mode = {3: "L", 7: "P"}.get(number % 8, "RGB")
    Image.fromarray(pixels).convert(mode).save(path, format="PNG" if mode == "P" else "JPEG")  # endings may lie


def write_webvision(folder: Path, train: int = 6, test: int = 2, broken: bool = True, imagenet: bool = True) -> Path:
    """Write it into `folder`/webvision and `folder`/imagenet; returns `folder`."""
    root = folder / "webvision"
    (root / "info").mkdir(parents=True)
    # The lists know all 1000 classes, of which only the first 50 count; here synsets.txt has three.
    lines = ["google/q0400/other.jpg 321"]
    for label in range(len(SYNSETS)):
        for number in range(train):
            query = QUERIES[label] if label < 2 else QUERIES[2 + number % 2]
            name = f"google/{query}/{label}_{number}.jpg"
            write_image(root / name, label, number)
            lines.append(f"{name} {label}")
    if broken:
        name = "google/q0001/broken.jpg"
        whole = (root / "google/q0001/0_0.jpg").read_bytes()
        (root / name).write_bytes(whole[: len(whole) // 2])
        lines.insert(3, f"{name} 0")
    (root / "info/train_filelist_google.txt").write_text("\n".join(lines) + "\n")
    numbers = [(label, number) for number in range(test) for label in range(len(SYNSETS))]
    names = [f"val{i:06}.jpg" for i in range(1, len(numbers) + 1)]
    for name, (label, number) in zip(names, numbers, strict=True):
        write_image(root / "val_images_256" / name, label, 100 + number)
    listed = [f"{name} {label}" for name, (label, _) in zip(names, numbers, strict=True)]
    (root / "info/val_filelist.txt").write_text("\n".join([*listed, "val050000.jpg 999"]) + "\n")
    (root / "info/synsets.txt").write_text("".join(f"{wnid} {words}\n" for wnid, words in SYNSETS.items()))
    if imagenet:
        for label, wnid in enumerate(SYNSETS):
            for number in range(test):
                path = folder / "imagenet/val" / wnid / f"ILSVRC2012_val_{label * test + number + 1:08}.JPEG"
                write_image(path, label, 200 + number)
        (folder / "imagenet/val/n01491361").mkdir()  # a class that is none of ours
    return folder

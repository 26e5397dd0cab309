"""What the paper reports, in percent: its Tables 1 to 3.

The paper has one CRUST; we have its text (`crust-paper`) and its published code (`crust-released`), which differ. Its
numbers stand beside both.
"""

from __future__ import annotations

from crust.experiments.outputs.table_summary import Reported

SOURCE = (
    "Mirzasoleiman, Cao, Leskovec: Coresets for Robust Training of Neural Networks against Noisy Labels, NeurIPS 2020"
)


COLUMNS1 = (
    "CIFAR-10 sym 0.2",
    "CIFAR-10 sym 0.5",
    "CIFAR-10 sym 0.8",
    "CIFAR-10 asym 0.4",
    "CIFAR-100 sym 0.2",
    "CIFAR-100 sym 0.5",
    "CIFAR-100 asym 0.4",
)
ROWS1 = {
    "f-correction": "85.1±0.4 76.0±0.2 34.8±4.5 83.6±2.2 55.8±0.5 43.3±0.7 42.3±0.7",
    "decoupling": "86.7±0.3 79.3±0.6 36.9±4.6 75.3±0.8 57.6±0.5 45.7±0.4 43.1±0.4",
    "co-teaching": "89.1±0.3 82.1±0.6 16.2±3.2 84.6±2.8 64.0±0.3 52.3±0.4 47.7±1.2",
    "mentornet": "88.4±0.5 77.1±0.4 28.9±2.3 77.3±0.8 63.0±0.4 46.4±0.4 42.4±0.5",
    "d2l": "86.1±0.4 67.4±3.6 10.0±0.1 85.6±1.2 12.5±4.2 5.6±5.4 14.1±5.8",
    "incv": "89.7±0.2 84.8±0.3 52.3±3.5 86.0±0.5 60.2±0.2 53.1±0.4 50.7±0.2",
    "t-revision": "79.3±0.5 78.5±0.6 36.2±1.6 76.3±0.8 52.4±0.3 37.6±0.3 32.3±0.4",
    "l-dmi": "84.3±0.4 78.8±0.5 20.9±2.2 84.8±0.7 56.8±0.4 42.2±0.5 39.5±0.4",
    "crust-paper": "91.1±0.2 86.3±0.3 58.3±1.8 88.8±0.4 65.2±0.2 56.4±0.4 53.0±0.2",
}
COLUMNS2 = ("CIFAR-10 sym 0.2", "CIFAR-10 sym 0.5")
ROWS2 = {
    "by label, no mixup": "90.21 84.92",
    "by label, mixup": "90.48 85.23",
    "by prediction, no mixup": "90.71 85.57",
    "by prediction, mixup": "91.12 86.27",
}
COLUMNS3 = ("WebVision top-1", "WebVision top-5", "ImageNet top-1", "ImageNet top-5")
ROWS3 = {
    "f-correction": "61.12 82.68 57.36 82.36",
    "decoupling": "62.54 84.74 58.26 82.26",
    "co-teaching": "63.58 85.20 61.48 84.70",
    "mentornet": "63.00 81.40 57.80 79.92",
    "d2l": "62.68 84.00 57.80 81.36",
    "incv": "65.24 85.34 61.60 84.98",
    "crust-paper": "72.40 89.56 67.36 87.84",
}


def _by_place(rows: dict[str, str], columns: tuple[str, ...]) -> dict[tuple[str, str], Reported]:
    """By row and column."""
    found = {}
    for row, texts in rows.items():
        for column, text in zip(columns, texts.split(), strict=True):
            mean, _, deviation = text.partition("±")
            found[row, column] = Reported(float(mean), float(deviation) if deviation else None)
    return found


def _for_both(numbers: dict[tuple[str, str], Reported]) -> dict[tuple[str, str], Reported]:
    released = {("crust-released", column): at for (row, column), at in numbers.items() if row == "crust-paper"}
    return {**numbers, **released}


TABLE1 = _for_both(_by_place(ROWS1, COLUMNS1))
TABLE2 = _by_place({f"crust-paper: {parts}": texts for parts, texts in ROWS2.items()}, COLUMNS2)
TABLE3 = _for_both(_by_place(ROWS3, COLUMNS3))

"""A small audit for tests, with whatever the world can put into names, labels and text."""

import numpy as np
import pandas as pd

HOSTILE = [
    "</script><script>window.broken = 1</script>",
    '<img src=x onerror="window.broken = 2">',
    "\"'><b>quotes</b>&amp;",
    "\u202eright to left\u202c \u2067abc\u2069",
    "🧿👩‍👩‍👧‍👦 e\u0301",
    "<!--<script>",
    "nul \x00 and half \ud800 and \x1b[31m",
    "10 kB " + "x" * 10_000,
    "../../etc/passwd",
    "${window.broken = 3}{{7*7}}",
]


def audit(n=30, classes=("cat", "dog", "cow"), ids=None, seed=0):
    """An audit with random numbers, in the order of the data."""
    rng = np.random.default_rng(seed)
    names = np.array(classes, dtype=object)
    given, better = rng.integers(len(classes), size=n), rng.integers(len(classes), size=n)
    table = pd.DataFrame(
        {
            "index": np.arange(n),
            "given_label": pd.Series(names[given], dtype=object),
            "predicted_label": pd.Series(names[better], dtype=object),
            "predicted_prob": rng.uniform(0.4, 1, n),
            "label_quality": 1 - rng.permutation(n) / n,
            "selection_rate": rng.uniform(size=n),
            "is_held_out": rng.uniform(size=n) < 0.1,
        }
    )
    if ids is not None:
        table.insert(1, "id", pd.Series(list(ids), dtype=object))
    return table


def clouds(seed, separation, n=1000, classes=4, width=10):
    """Points, given labels, true labels."""
    rng = np.random.default_rng(seed)
    centres = rng.permutation(np.eye(width)[:classes] * separation)
    true = rng.integers(0, classes, n)
    points = (centres[true] + rng.normal(size=(n, width))).astype(np.float32)
    given = true.copy()
    for name in range(classes):
        rate, spread = rng.uniform(0.1, 0.35), rng.dirichlet(np.ones(classes - 1))
        shares = np.insert(rate * spread, name, 1 - rate)
        mine = true == name
        given[mine] = rng.choice(classes, int(mine.sum()), p=shares)
    return points, given, true

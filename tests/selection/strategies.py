"""Points that are hard for selection: ties, duplicates, lattices, far scales, odd shapes."""

import numpy as np
from hypothesis import strategies as st


@st.composite
def points(draw: st.DrawFn, most: int = 40) -> np.ndarray:
    """A small set of points of one of many kinds."""
    n, d = draw(st.integers(1, most)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(
        st.sampled_from(["gauss", "lattice", "tenths", "duplicates", "equal", "shifted", "tiny", "huge", "line"])
    )
    if kind == "lattice":
        return rng.integers(0, 4, (n, d)).astype(np.float32)
    if kind == "tenths":
        return rng.integers(0, 4, (n, d)) * 0.1
    if kind == "duplicates":
        return rng.normal(size=(max(1, n // 4), d))[rng.integers(0, max(1, n // 4), n)]
    if kind == "equal":
        return np.full((n, d), rng.normal())
    if kind == "line":
        return np.arange(n, dtype=np.int64)[:, None] * np.ones((1, d), np.int64)
    x = rng.normal(size=(n, d))
    return {"gauss": x, "shifted": x + 1e6, "tiny": x * 1e-30, "huge": x * 1e30}[kind]

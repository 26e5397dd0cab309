"""The examples that a report without a run shows: texts and arrays."""

from pathlib import Path

import numpy as np
import pytest
from tests.cli.common import call, packed, said

# --- examples of an audit without a run


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """Probabilities and labels of three examples."""
    monkeypatch.chdir(tmp_path)
    np.save("p.npy", np.full((3, 2), 0.5))
    np.save("l.npy", np.array([0, 1, 0]))
    return "report --probs p.npy --labels l.npy -o a.html --data"


def test_a_text_ends_with_its_line_only(outside):
    Path("t.txt").write_bytes("one\u2028two\x0cthree\x85\r\nfour\rfive\n\n".encode())
    assert call(f"{outside} t.txt -q") == 0
    found = packed("a.html")["rows"]  # the page has a sign of its own for letters that cannot be shown
    assert found == {
        "0": ["one\u2028two\N{REPLACEMENT CHARACTER}three\N{REPLACEMENT CHARACTER}"],
        "1": ["four\rfive"],
        "2": [""],
    }
    Path("t.txt").write_bytes(b"a\nb\nc")  # the last line needs no end
    assert call(f"{outside} t.txt -q") == 0
    assert packed("a.html")["rows"]["2"] == ["c"]


@pytest.mark.parametrize(
    "values",
    [
        np.zeros(3),
        np.zeros((3, 7, 8, 8)),
        np.zeros((3, 8, 8, 2)),
        np.zeros((3, 2, 3, 8, 8)),
        np.zeros((3, 0, 8)),
        np.array(0.0),
        np.array([["a"], ["b"], ["c"]]),
    ],
    ids=lambda values: str(values.shape),
)
def test_arrays_that_cannot_be_shown_are_refused(outside, capsys, values):
    np.save("x.npy", values)
    said(capsys, f"{outside} x.npy", r"x.npy has shape .* which is neither features nor images: give numbers of shape")
    assert not Path("a.html").exists()


@pytest.mark.parametrize("shape", [(3, 5), (3, 8, 9), (3, 3, 8, 9), (3, 8, 9, 4), (3, 1, 8, 9)])
def test_arrays_that_can_be_shown_are(outside, shape):
    np.save("x.npy", np.random.default_rng(0).normal(size=shape))
    assert call(f"{outside} x.npy -q") == 0
    found = packed("a.html")
    assert all((found["rows"] or found["pictures"]).values())

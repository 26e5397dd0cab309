"""The result pages say what the result lines say."""

from __future__ import annotations

from pathlib import Path

import pytest

from crust.experiments import read
from crust.experiments.pages import PAGES

RESULTS = Path(__file__).parents[2] / "docs" / "results"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_its_lines_make_it(name):
    assert (RESULTS / name).read_text() == PAGES[name](read(RESULTS)), "run python -m crust.experiments.pages"

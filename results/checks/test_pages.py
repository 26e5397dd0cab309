"""The result pages say what the result lines say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from results.generate_pages import PAGES

from crust.experiments import read_results

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
LINES = read_results(ROOT / "results")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_its_lines_make_it(name, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert (ROOT / "docs" / name).read_text() == PAGES[name](LINES), "run python -m results.generate_pages"


def test_the_pictures_of_a_page_are_there():
    for page in (RESULTS / "figure1.md", RESULTS / "regret.md"):
        for name in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.read_text()):
            assert (page.parent / name).is_file()


def test_seconds_are_left_out_where_machines_were_shared():
    assert "seconds" not in (RESULTS / "table1.md").read_text().splitlines()[4]

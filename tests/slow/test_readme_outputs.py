"""What the README shows below its commands is what they print today, but for the numbers."""

import re
from pathlib import Path

import pytest
from tools.readme_outputs import BLOCK, todays

pytestmark = pytest.mark.slow

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def said(text: str) -> list[str]:
    """The lines of the shown blocks, without numbers and without the rows of tables, which are data."""
    lines = "\n".join(match[3] for match in BLOCK.finditer(text)).splitlines()
    return [re.sub(r"[\d.,]+", "N", " ".join(line.split())) for line in lines if not re.match(r"\s+\d", line)]


def test_the_readme_shows_what_is_printed():
    shown = said(README)
    assert sum(line.startswith("$ crust ") for line in shown) == 3
    assert said(todays(README)) == shown

"""Every method has a page in docs/methods, and the page says what the code says."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from crust.cli.methods import setting_rows
from crust.methods import METHODS

FOLDER = Path(__file__).parents[1] / "docs" / "methods"
SECTIONS = ["Idea", "Update rule", "Settings", "What it needs to know", "Where it fails", "How it did here"]
HEAD = ["setting", "default", "source"]
PAGES = {path.stem: path for path in sorted(FOLDER.glob("*.md")) if path.stem not in ("README", "TEMPLATE")}


def sections(text: str) -> dict[str, str]:
    """The text below each second heading."""
    parts = re.split(r"^## +(.+?) *$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def settings_table(text: str) -> list[list[str]]:
    """The cells of the first Markdown table, its head first; code marks are left out."""
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith("|")]
    cells = [re.split(r"(?<!\\)\|", line.strip("|")) for line in lines]
    rows = [[cell.strip().replace("`", "").replace("\\|", "|") for cell in row] for row in cells]
    return [row for row in rows if not all(set(cell) <= set("-: ") for cell in row)]


def complaints(text: str, name: str, needs: str, settings: type) -> list[str]:
    """What is wrong with a page."""
    found = []
    if text.splitlines()[0] != f"# `{name}`":
        found.append(f"its first line is not # `{name}`")
    parts = sections(text)
    if list(parts) != SECTIONS:
        return [*found, f"its sections are {list(parts)}, not {SECTIONS}"]
    found += [f"the section {section} is empty" for section, body in parts.items() if not body.strip()]
    if needs.lower() not in parts["What it needs to know"].lower():
        found.append(f"it does not say that it needs to know: {needs}")
    table = settings_table(parts["Settings"])
    if table and table[0] != HEAD:
        return [*found, f"the head of its settings is {table[0]}, not {HEAD}"]
    shown = [tuple(row[:2]) for row in table[1:]]
    expected = [(setting, default) for setting, default, *_ in setting_rows(settings)]
    found += [
        f"{setting} = {default} is not on the page" for setting, default in expected if (setting, default) not in shown
    ]
    found += [f"the page says {' = '.join(row)}, the code does not" for row in shown if row not in expected]
    if not found and shown != expected:
        found.append("settings come twice or in another order than in the code")
    found += [f"{row[0]} has no source" for row in table[1:] if len(row) != 3 or not row[2]]
    return found


def test_every_method_has_a_page():
    missing = sorted(set(METHODS) - set(PAGES))
    assert not missing, f"methods without a page in docs/methods, written from TEMPLATE.md: {', '.join(missing)}"


def test_every_page_has_a_method_and_a_line_in_the_index():
    unknown = sorted(set(PAGES) - set(METHODS))
    assert not unknown, f"pages in docs/methods without a method: {', '.join(unknown)}"
    linked = re.findall(
        r"^\| \[`(.+?)`\]\((.+?)\.md\)", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert all(name == page for name, page in linked)
    missing = sorted(set(PAGES) - {page for _, page in linked})
    assert not missing, f"pages without a line in docs/methods/README.md: {', '.join(missing)}"


@pytest.mark.parametrize("name", [name for name in METHODS if name in PAGES])
def test_page_says_what_the_code_says(name):
    kind = METHODS[name]
    text = PAGES[name].read_text(encoding="utf-8")
    assert not complaints(text, name, kind.needs, kind.Settings)


class OneSetting(BaseModel):
    """The settings of the template's method."""

    alpha: float = 1.0


def test_the_template_has_the_form_that_is_asked_for():
    text = (FOLDER / "TEMPLATE.md").read_text(encoding="utf-8")
    assert not complaints(text, "name", "nothing", OneSetting)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("| `alpha` | 1 |", "| `alpha` | 2 |", "alpha = 1 is not on the page"),
        ("| `alpha` | 1 |", "| `alfa` | 1 |", "the page says alfa = 1"),
        ("| `alpha` | 1 | the paper, section 4.1: what it does |", "| `alpha` | 1 | |", "alpha has no source"),
        ("| setting |", "| name |", "the head of its settings"),
        ("## Where it fails", "## Limits", "its sections are"),
        ("Nothing beyond", "It needs", "needs to know: nothing"),
        ("# `name`", "# name", "its first line"),
    ],
)
def test_a_stale_page_is_noticed(old, new, complaint):
    text = (FOLDER / "TEMPLATE.md").read_text(encoding="utf-8")
    assert old in text
    found = complaints(text.replace(old, new, 1), "name", "nothing", OneSetting)
    assert any(complaint in each for each in found)

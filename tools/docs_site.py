"""What the site does to the pages: README, CHANGELOG and CONTRIBUTING come in, links out of docs/ become names."""

from __future__ import annotations

import logging
import posixpath
import re
from pathlib import Path
from typing import Any

import griffe
from mkdocs.structure.files import File, Files

LOG = logging.getLogger("mkdocs.docs_site")  # a warning here fails a strict build
ROOT = Path(__file__).parents[1]
FROM_THE_ROOT = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\]\([^)]*\))*)\]\(([^)\s]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the three pages that stand in the repository's root."""
    for source, page in FROM_THE_ROOT.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links so that they hold on the site."""
    home = {target: source for source, target in FROM_THE_ROOT.items()}.get(page.file.src_uri)
    here = home or f"docs/{page.file.src_uri}"
    return LINK.sub(lambda match: site_link(match, here, page.file.src_uri), markdown)


def site_link(match: re.Match[str], here: str, page: str) -> str:
    """A link as the site has it; what is no page or picture of the site becomes the name of a file."""
    mark, words, target = match.groups()
    path, _, anchor = target.partition("#")
    if not path or re.match(r"[a-z]+:", target):
        return match[0]
    wanted = posixpath.normpath(posixpath.join(posixpath.dirname(here), path))
    inside = FROM_THE_ROOT.get(wanted) or (wanted.removeprefix("docs/") if wanted.startswith("docs/") else None)
    if inside == "methods":
        inside = "methods/README.md"
    if inside is None or not re.search(r"\.(md|png)$", inside):
        if not (ROOT / wanted).exists():
            LOG.warning("%s links to %s, which is not there", here, target)
        return words if wanted in words else f"{words} (`{wanted}`)"
    relative = posixpath.relpath(inside, posixpath.dirname(page) or ".")
    return f"{mark}[{words}]({relative}{'#' + anchor if anchor else ''})"


class ExamplesAsCode(griffe.Extension):
    """Docstrings have one Example; the parser knows Examples."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rename the section before it is parsed."""
        if obj.docstring:
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE)

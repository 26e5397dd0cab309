"""What the site does to the pages: README, CHANGELOG and CONTRIBUTING come in, links out of docs/ become names.

The page of the commands is what their --help says.
"""

from __future__ import annotations

import logging
import posixpath
import re
from pathlib import Path
from typing import Any

import griffe
import typer
from mkdocs.structure.files import File, Files

from crust.cli.app import COMMANDS, app

LOG = logging.getLogger("mkdocs.docs_site")  # a warning here fails a strict build
ROOT = Path(__file__).parents[1]
FROM_THE_ROOT = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
NOT_ON_THE_SITE = ("methods/TEMPLATE.md",)  # exclude_docs in mkdocs.yml
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\]\([^)]*\))*)\]\(([^)\s]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the three pages that stand in the repository's root."""
    for source, page in FROM_THE_ROOT.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    files.append(File.generated(config, "api/commands.md", content=commands_page()))
    return files


def commands_page() -> str:
    """Every command with its arguments, options and examples."""
    parts = ["# Commands\n\nWhat `crust COMMAND --help` says."]
    for name, command in typer.main.get_command(app).commands.items():
        lines = "\n".join(COMMANDS[name][1])
        parts += [f"## crust {name}", command.help or "", f"```text\n{lines}\n```", "| option | meaning |\n|---|---|"]
        for each in command.params:
            words = each.opts + each.secondary_opts if each.param_type_name == "option" else [each.metavar or each.name]
            value = each.metavar if each.param_type_name == "option" and not each.is_flag and each.metavar else ""
            shown = " ".join(f"`{word}`" for word in [*words, *filter(None, [value])])
            default = each.default
            usual = "" if default in (None, False, ()) or callable(default) else f" Default: {default}."
            row = f"| {shown} | {(each.help or '').replace('|', chr(92) + '|')}{usual} |"
            parts[-1] += f"\n{row}"
    return "\n\n".join(parts) + "\n"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links so that they hold on the site."""
    home = {target: source for source, target in FROM_THE_ROOT.items()}.get(page.file.src_uri)
    if page.parent is None:
        page.meta["hide"] = ["navigation"]  # a list of one page
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
    if inside in NOT_ON_THE_SITE or inside is None or not re.search(r"\.(md|png)$", inside):
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

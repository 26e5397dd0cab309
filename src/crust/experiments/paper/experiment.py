"""What an experiment of the paper is: entries at a scale, how many seeds, and how it is written down."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crust.errors import InputError, choices
from crust.experiments.outputs import figures, table_markdown
from crust.experiments.outputs.table_summary import Reported, ResultIndex, Summary, TableCellSpec, specs_of, summarise
from crust.experiments.paper.published import SOURCE
from crust.experiments.results_file import write_pages
from crust.experiments.specs import MOST_SEEDS, SCALES


@dataclass(frozen=True)
class Experiment:
    """A table or a figure of the paper.

    Args:
        name: as on the command line.
        title: in one line.
        entries: what is run, by scale.
        seeds: how many, by scale; a scale that is not there is not defined.
        protocols: how the runs are made, by scale.
        reported: the paper's numbers by row and column.
        panels: of a figure: names of curves and their titles.
        digits: behind the decimal point.
        why_not: why a scale is not defined.
    """

    name: str
    title: str
    entries: Callable[[str], list[TableCellSpec]]
    seeds: Mapping[str, int]
    protocols: Mapping[str, str]
    reported: Mapping[tuple[str, str], Reported] = field(default_factory=dict)
    panels: Mapping[str, str] = field(default_factory=dict)
    digits: int = 1
    why_not: str = ""

    @property
    def scales(self) -> tuple[str, ...]:
        """Where it is defined."""
        return tuple(self.seeds)

    def specs(self, scale: str, seeds: int | Iterable[int] | None = None) -> list[dict[str, Any]]:
        """The runs it is made of, seed after seed, none twice.

        Args:
            scale: `paper`, `full`, `cpu` or `smoke`.
            seeds: how many, or which; by default as many as the scale has.
        """
        return specs_of(self.entries(self.check(scale)), scale, self._seeds(scale, seeds))

    def _seeds(self, scale: str, seeds: int | Iterable[int] | None) -> Sequence[int]:
        if seeds is None:
            seeds = self.seeds[scale]
        if isinstance(seeds, int) and seeds > MOST_SEEDS:
            raise InputError(
                f"seeds are {seeds}: give at most {MOST_SEEDS}, or a list of whole numbers from 0 on",
                code="seeds-range",
            )
        found = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
        if not found or min(found) < 0:
            raise InputError(
                f"seeds are {seeds!r}: give how many, at least 1, or a list of whole numbers from 0 on",
                code="seeds-range",
            )
        return found

    def summary(
        self, lines: Iterable[dict[str, Any]] | ResultIndex, scale: str, seeds: int | Iterable[int] | None = None
    ) -> Summary:
        """What result lines say, as a table; those of other runs do no harm."""
        self.check(scale)
        return summarise(
            self.name,
            self.title,
            self.protocols[scale],
            self.entries(scale),
            lines if isinstance(lines, ResultIndex) else ResultIndex(lines),
            scale,
            self._seeds(scale, seeds),
            self.reported,
            self.digits,
        )

    def write(
        self,
        lines: Iterable[dict[str, Any]],
        scale: str,
        folder: str | Path,
        *,
        seeds: int | Iterable[int] | None = None,
    ) -> list[Path]:
        """Write what the result lines say to a folder; what is missing is shown as missing.

        Args:
            lines: from `read_results`.
            scale: `paper`, `full`, `cpu` or `smoke`.
            folder: made where it is not there.
            seeds: those that are asked for, as for `specs`.

        Returns:
            The files: Markdown and CSV, of a figure also PNG.
        """
        summary = self.summary(lines, scale, seeds)
        files = {f"{self.name}.md": self.page(summary).encode()}
        if self.panels:
            files[f"{self.name}.csv"] = figures.figure_csv(summary, self.panels).encode()
            files |= figures.figure_pngs(summary, self.panels)
        else:
            files[f"{self.name}.csv"] = table_markdown.table_csv(summary).encode()
        return write_pages(folder, files)

    def page(self, summary: Summary) -> str:
        """Its page in Markdown."""
        if self.panels:
            return figures.figure_page(summary, self.panels)
        return table_markdown.table_page(summary, SOURCE if self.reported else "")

    def check(self, scale: str) -> str:
        """The scale, or one sentence."""
        choices(scale, SCALES, "scale")
        if scale not in self.seeds:
            raise InputError(f"{self.name} is not defined at scale {scale}: {self.why_not}", code="undefined-scale")
        return scale

"""`crust select`: from a file of vectors to a coreset."""

from __future__ import annotations

import logging
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crust.cli.messages import show_log
from crust.cli.words import check_output, parse_budget

if TYPE_CHECKING:
    import numpy as np

FILES = "Data"
HOW = "How to select"
MEANS = "Means"


def select(
    features: Annotated[
        str,
        typer.Argument(help="Vectors, one row a point: .npy, file.npz:key, .parquet, .csv, .tsv or .safetensors."),
    ],
    k: Annotated[
        str, typer.Option("-k", help="How many: a count (500), or a share with a decimal point (0.1).", metavar="K")
    ],
    groups: Annotated[
        str | None, typer.Option(help="File with one group name a row; each group is covered by its own.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the coreset here (.parquet).", rich_help_panel=FILES)
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the result here (.png, .pdf or .svg).", rich_help_panel=FILES)
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="Columns of a table to use, as in a,b,c; default: numeric ones.", rich_help_panel=FILES),
    ] = None,
    group_column: Annotated[
        str | None,
        typer.Option(help="Column with the groups: of the --groups file, else of the vectors.", rich_help_panel=FILES),
    ] = None,
    algorithm: Annotated[
        str,
        typer.Option(
            help="greedy, lazy, stochastic, sieve, greedi, central or random.", metavar="NAME", rich_help_panel=HOW
        ),
    ] = "greedy",
    metric: Annotated[
        str,
        typer.Option(
            help="euclidean, sqeuclidean, cosine, or precomputed for a square matrix of distances.",
            metavar="NAME",
            rich_help_panel=HOW,
        ),
    ] = "euclidean",
    min_per_group: Annotated[
        int, typer.Option(help="What every group gets at least, where K allows it.", rich_help_panel=HOW)
    ] = 1,
    epsilon: Annotated[
        float, typer.Option(help="How far stochastic and sieve may fall short.", rich_help_panel=HOW)
    ] = 0.1,
    seed: Annotated[int, typer.Option(help="Same seed, same answer.", rich_help_panel=HOW)] = 0,
    device: Annotated[
        str | None, typer.Option(help="cpu, cuda, cuda:1, ... ; default: the CPU kernels.", rich_help_panel=MEANS)
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Threads; default: all cores.", rich_help_panel=MEANS)] = None,
    memory_limit: Annotated[
        str | None,
        typer.Option(help="Such as 500MB or 2GiB; default: a quarter of what is free.", rich_help_panel=MEANS),
    ] = None,
    engine: Annotated[
        str | None, typer.Option(help="Where greedi runs its shards: local.", rich_help_panel=MEANS)
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would cost, and stop.", rich_help_panel=MEANS)
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing but errors.", rich_help_panel=MEANS)
    ] = False,
) -> None:
    """Select the K points that represent all others best: medoids, with the sizes of their clusters as weights."""
    budget = parse_budget(k)
    check_output(output, "-o", (".parquet",), [features, groups])
    check_output(plot, "--plot", (".png", ".pdf", ".svg"))
    show_log(logging.WARNING if quiet else logging.INFO)

    # Everything heavy is imported here, so that `crust --help` answers at once.
    import crust
    from crust.selection.options import check_options

    options: dict[str, Any] = {
        "algorithm": algorithm,
        "metric": metric,
        "epsilon": epsilon,
        "device": device,
        "threads": threads,
        "memory_limit": memory_limit,
        "seed": seed,
    }
    options = asdict(check_options(**options))  # a misspelt name should not wait for a large file to be read
    options |= {"min_per_group": min_per_group, "engine": engine}
    vectors, names = _read(features, columns, groups, group_column)
    if dry_run:
        _print_estimate(vectors.shape, budget, names, options)
        return
    coreset = crust.select(vectors, budget, groups=names, progress=not quiet, **options)
    if output is not None:
        coreset.save(output)
    if plot is not None:
        from crust.cli.plots import draw

        draw(plot, vectors, coreset, metric=metric, seed=seed)
    if not quiet:
        _print_result(coreset, output, plot)


def _read(
    features: str, columns: str | None, groups: str | None, group_column: str | None
) -> tuple[np.ndarray, np.ndarray | None]:
    from crust.data.vectors import read_column, read_matrix

    wanted = None if columns is None else [name.strip() for name in columns.split(",") if name.strip()]
    inside = group_column if groups is None else None  # groups that stand beside the vectors in the same table
    vectors = read_matrix(features, wanted, skip=[inside] if inside else [])
    if groups is None and group_column is None:
        return vectors, None
    return vectors, read_column(features if groups is None else groups, group_column)


def _print_estimate(shape: tuple[int, ...], budget: int | float, names: np.ndarray | None, options: dict) -> None:
    import numpy as np

    import crust
    from crust.errors import InputError

    n, d = shape
    if names is not None and len(names) != n:
        raise InputError(f"there are {len(names)} groups for {n} points: give one group name a point")
    sizes = None if names is None else np.unique(names, return_counts=True)[1].tolist()
    kept = {name: value for name, value in options.items() if name != "engine"}
    typer.echo(str(crust.estimate(n, d, budget, groups=sizes, **kept)))


def _print_result(coreset: Any, output: Path | None, plot: Path | None) -> None:
    from rich.console import Console

    from crust.cli.tables import group_table

    console = Console(highlight=False)
    console.print(group_table(coreset))
    n, k = len(coreset.assignment), len(coreset.indices)
    console.print(f"{k:,} of {n:,} points selected; sum of distances to the nearest one: {coreset.objective:,.6g}")
    if output is not None:
        console.print(f"coreset: {output}  (read it with crust.Coreset.load)", soft_wrap=True)
    if plot is not None:
        console.print(f"picture: {plot}", soft_wrap=True)
    if output is None:
        console.print("not kept: add -o coreset.parquet to write it to a file")

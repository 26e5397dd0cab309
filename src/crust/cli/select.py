"""`crust select`: from a file of vectors to a coreset."""

from __future__ import annotations

import logging
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crust._util.output_files import check_output
from crust.cli.formatting import show_log
from crust.errors import InputError

if TYPE_CHECKING:
    import numpy as np

FILES = "Data"
HOW = "How to select"
MEANS = "Means"


def select_command(
    features: Annotated[
        str,
        typer.Argument(
            help="Vectors, one row a point: .npy, file.npz:key, .parquet, .csv, .tsv, .safetensors, or a folder of .npy"
        ),
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
        str | None,
        typer.Option(
            help="greedy, lazy, stochastic, sieve, greedi, central or random; default: greedy, for a folder or with an "
            "engine greedi.",
            metavar="NAME",
            rich_help_panel=HOW,
        ),
    ] = None,
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
        str | None, typer.Option(help="Where greedi runs its shards: local or ray.", rich_help_panel=MEANS)
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(help="Of a Ray cluster; default: $RAY_ADDRESS, else one on this machine.", rich_help_panel=MEANS),
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
    from crust.selection.input_checks import check_options

    folder = _is_folder(features, engine)
    options: dict[str, Any] = {
        "algorithm": algorithm or ("greedi" if folder or engine is not None else "greedy"),
        "metric": metric,
        "epsilon": epsilon,
        "device": device,
        "threads": threads,
        "memory_limit": memory_limit,
        "seed": seed,
    }
    options = asdict(check_options(**options))  # a misspelt name should not wait for a large file to be read
    options |= {"min_per_group": min_per_group, "engine": _engine(engine, address, threads)}
    vectors, names = _read_vectors(features, columns, groups, group_column, folder)
    if folder and plot is not None:
        raise InputError(f"--plot needs all vectors at once: leave it out for the folder {features}")
    if dry_run:
        _print_estimate(_shape_of(vectors), budget, names, options)
        return
    coreset = crust.select(vectors, budget, groups=names, progress=not quiet, **options)
    if output is not None:
        coreset.save(output)
    if plot is not None:
        from crust.cli.select_output import draw

        draw(plot, vectors, coreset, metric=metric, seed=seed)
    if not quiet:
        _print_result(coreset, output, plot)


def parse_budget(text: str) -> int | float:
    """`-k`: a whole number is a count, a decimal point makes it a share.

    Example:
        >>> parse_budget("1"), parse_budget("1.0"), parse_budget(".1")
        (1, 1.0, 0.1)
    """
    word = text.strip()
    if re.fullmatch(r"[+-]?\d+", word):
        return int(word)
    if re.fullmatch(r"[+-]?(\d+\.\d*|\.\d+)([eE][+-]?\d+)?", word):
        return float(word)
    raise InputError(
        f"-k {text} is not a number: give a count such as 500, or a share with a decimal point such as 0.1"
    )


def _is_folder(features: str, engine: str | None) -> bool:
    """Whether a folder is meant; one that only the machines of a cluster have cannot be seen from here."""
    path = Path(features)
    return path.is_dir() or (engine == "ray" and not path.exists() and not path.suffix and ":" not in features)


def _engine(engine: str | None, address: str | None, threads: int | None) -> Any:
    """An engine by name, or at an address."""
    if address is None:
        return engine
    if engine != "ray":
        raise InputError("--address is that of a Ray cluster: add --engine ray")
    from crust.selection import Ray

    return Ray(address, threads)


def _shape_of(vectors: Any) -> tuple[int, ...]:
    if isinstance(vectors, str):
        from crust.selection.npy_shards import find_files

        return find_files(vectors).shape
    shape: tuple[int, ...] = vectors.shape
    return shape


def _read_vectors(
    features: str, columns: str | None, groups: str | None, group_column: str | None, folder: bool
) -> tuple[Any, np.ndarray | None]:
    from crust.data.matrix_io import read_column, read_matrix

    if folder:
        if columns is not None or (group_column is not None and groups is None):
            raise InputError(f"{features} is a folder of arrays without columns: leave out the columns")
        return features, None if groups is None else read_column(groups, group_column)
    wanted = None if columns is None else [name.strip() for name in columns.split(",") if name.strip()]
    inside = group_column if groups is None else None  # groups that stand beside the vectors in the same table
    vectors = read_matrix(features, wanted, skip=[inside] if inside else [])
    if groups is None and group_column is None:
        return vectors, None
    return vectors, read_column(features if groups is None else groups, group_column)


def _print_estimate(shape: tuple[int, ...], budget: int | float, names: np.ndarray | None, options: dict) -> None:
    import numpy as np

    import crust

    n, d = shape
    if names is not None and len(names) != n:
        raise InputError(f"there are {len(names)} groups for {n} points: give one group name a point")
    sizes = None if names is None else np.unique(names, return_counts=True)[1].tolist()
    kept = {name: value for name, value in options.items() if name != "engine"}
    typer.echo(str(crust.estimate_cost(n, d, budget, groups=sizes, **kept)))


def _print_result(coreset: Any, output: Path | None, plot: Path | None) -> None:
    from rich.console import Console

    from crust.cli.select_output import group_table

    console = Console(highlight=False)
    console.print(group_table(coreset))
    n, k = len(coreset.assignment), len(coreset.indices)
    console.print(f"{k:,} of {n:,} points selected; sum of distances to the nearest one: {coreset.objective:,.6g}")
    if output is not None:
        console.print(f"coreset: {output}  (read it with crust.Coreset.load)", soft_wrap=True)
    if plot is not None:
        console.print(f"picture: {plot}", soft_wrap=True)
    if output is None:
        console.print("not kept; next: the same command with -o coreset.parquet, to write it to a file")

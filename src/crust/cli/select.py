"""`crust select`: from a file of vectors to a coreset."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crust._util.output_files import check_output
from crust.cli.formatting import show_log, text_table
from crust.errors import InputError, require

if TYPE_CHECKING:
    import numpy as np

FILES = partial(typer.Option, rich_help_panel="Data")
HOW = partial(typer.Option, rich_help_panel="How to select")
MEANS = partial(typer.Option, rich_help_panel="Means")
ROWS = 20  # of the table


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
    output: Annotated[Path | None, FILES("-o", "--output", help="Write the coreset here (.parquet).")] = None,
    plot: Annotated[Path | None, FILES(help="Draw the result here (.png, .pdf or .svg).")] = None,
    columns: Annotated[str | None, FILES(help="Columns of a table to use, as in a,b,c; default: numeric ones.")] = None,
    group_column: Annotated[
        str | None, FILES(help="Column with the groups: of the --groups file, else of the vectors.")
    ] = None,
    algorithm: Annotated[
        str | None,
        HOW(
            help="greedy, lazy, stochastic, sieve, greedi, central or random; default: greedy, for a folder or with an "
            "engine greedi.",
            metavar="NAME",
        ),
    ] = None,
    metric: Annotated[
        str,
        HOW(help="euclidean, sqeuclidean, cosine, or precomputed for a square matrix of distances.", metavar="NAME"),
    ] = "euclidean",
    min_per_group: Annotated[int, HOW(help="What every group gets at least, where K allows it.")] = 1,
    epsilon: Annotated[float, HOW(help="How far stochastic and sieve may fall short.")] = 0.1,
    seed: Annotated[int, HOW(help="Same seed, same answer.")] = 0,
    device: Annotated[str | None, MEANS(help="cpu, cuda, cuda:1, ... ; default: the CPU kernels.")] = None,
    threads: Annotated[int | None, MEANS(help="Threads; default: all cores.")] = None,
    memory_limit: Annotated[
        str | None, MEANS(help="Such as 500MB or 2GiB; default: a quarter of what is free.")
    ] = None,
    engine: Annotated[str | None, MEANS(help="Where greedi runs its shards: local or ray.")] = None,
    address: Annotated[
        str | None, MEANS(help="Of a Ray cluster; default: $RAY_ADDRESS, else one on this machine.")
    ] = None,
    dry_run: Annotated[bool, MEANS("--dry-run", help="Say what it would cost, and stop.")] = False,
    as_json: Annotated[bool, MEANS("--json", help="Print the result as JSON, for a machine to read.")] = False,
    quiet: Annotated[bool, MEANS("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Select the K points that represent all others best: medoids, with the sizes of their clusters as weights."""
    budget = parse_budget(k)
    check_output(output, "-o", (".parquet",), [features, groups])
    check_output(plot, "--plot", (".png", ".pdf", ".svg"))
    if plot is not None:
        require("matplotlib", extra="plot")
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
        raise InputError(
            f"--plot needs all vectors at once: leave it out for the folder {features}", code="options-exclude"
        )
    if dry_run:
        if folder:
            from crust.selection.npy_shards import find_files

            vectors = find_files(vectors)
        _print_estimate(vectors.shape, budget, names, options)
        return
    coreset = crust.select(vectors, budget, groups=names, progress=not quiet, **options)
    if output is not None:
        coreset.save(output)
    if plot is not None:
        from crust.cli.select_plot import draw

        draw(plot, vectors, coreset, metric=metric, seed=seed)
    if as_json:
        found = {"points": len(coreset.assignment), "objective": coreset.objective, "output": output, "plot": plot}
        lists = {name: getattr(coreset, name).tolist() for name in ("indices", "weights", "gains")}
        typer.echo(json.dumps({**found, **lists}, default=str))
    elif not quiet:
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
        f"-k {text} is not a number: give a count such as 500, or a share with a decimal point such as 0.1",
        code="bad-k",
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
        raise InputError("--address is that of a Ray cluster: add --engine ray", code="options-exclude")
    from crust.selection import Ray

    return Ray(address, threads)


def _read_vectors(
    features: str, columns: str | None, groups: str | None, group_column: str | None, folder: bool
) -> tuple[Any, np.ndarray | None]:
    from crust.data.matrix_io import read_column, read_matrix

    if folder:
        if columns is not None or (group_column is not None and groups is None):
            raise InputError(
                f"{features} is a folder of arrays without columns: leave out the columns", code="options-exclude"
            )
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
        raise InputError(
            f"there are {len(names)} groups for {n} points: give one group name a point", code="groups-length"
        )
    sizes = None if names is None else np.unique(names, return_counts=True)[1].tolist()
    kept = {name: value for name, value in options.items() if name != "engine"}
    typer.echo(str(crust.estimate_cost(n, d, budget, groups=sizes, **kept)))


def _print_result(coreset: Any, output: Path | None, plot: Path | None) -> None:
    from rich.console import Console

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


def group_table(coreset: Any) -> Any:
    """The coreset in numbers, group by group: the first groups, and what it comes to."""
    import numpy as np

    if coreset.groups is None:
        names, of_medoid = np.array(["all"]), np.zeros(len(coreset.indices), dtype=np.int64)
    else:
        names, of_medoid = np.unique(np.asarray(coreset.groups), return_inverse=True)
    of_point = of_medoid[coreset.assignment]
    points = np.bincount(of_point, minlength=len(names))
    medoids = np.bincount(of_medoid, minlength=len(names))
    distance = np.bincount(of_point, weights=np.asarray(coreset.distances, dtype=np.float64), minlength=len(names))
    largest = np.zeros(len(names), dtype=np.int64)
    np.maximum.at(largest, of_medoid, coreset.weights)

    def row(name: str, points: Any, medoids: Any, distance: Any, largest: Any) -> list[str]:
        return [name, f"{points:,}", f"{medoids:,}", f"{distance / points:.4g}", f"{largest:,}"]

    heads = ("group", "points", "medoids", "mean distance", "largest cluster")
    rows = [row(*cells) for cells in zip(map(str, names), points, medoids, distance, largest, strict=True)]
    if len(rows) > ROWS:
        rows = [*rows[:ROWS], [f"… and {len(rows) - ROWS:,} more groups", "", "", "", ""]]
    total = row("all", points.sum(), medoids.sum(), distance.sum(), largest.max())
    return text_table(heads, rows, left=["group"], footer=total if len(names) > 1 else ())

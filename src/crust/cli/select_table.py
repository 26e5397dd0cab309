"""What a coreset looks like in numbers, group by group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from rich.table import Table

ROWS = 20


class GroupRow(NamedTuple):
    """One group of a coreset."""

    name: str
    points: int
    medoids: int
    mean_distance: float
    largest_cluster: int


def group_rows(coreset: Any) -> list[GroupRow]:
    """Count points and medoids of every group, in the order of the coreset."""
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
    return [
        GroupRow(str(names[g]), int(points[g]), int(medoids[g]), float(distance[g] / points[g]), int(largest[g]))
        for g in range(len(names))
    ]


def group_table(coreset: Any) -> Table:
    """The same as a table for the terminal: the first groups, and the sum of all."""
    from rich import box
    from rich.table import Table

    rows = group_rows(coreset)
    table = Table(box=box.SIMPLE_HEAD, show_footer=len(rows) > 1)
    n = sum(row.points for row in rows)
    total = GroupRow(
        "all",
        n,
        sum(row.medoids for row in rows),
        sum(row.mean_distance * row.points for row in rows) / n,
        max(row.largest_cluster for row in rows),
    )
    for head, footer in zip(
        ("group", "points", "medoids", "mean distance", "largest cluster"), _cells(total), strict=True
    ):
        table.add_column(head, footer=footer, justify="left" if head == "group" else "right")
    for row in rows[:ROWS]:
        table.add_row(*_cells(row))
    if len(rows) > ROWS:
        table.add_row(f"… and {len(rows) - ROWS:,} more groups")
    return table


def _cells(row: GroupRow) -> list[str]:
    from rich.markup import escape

    return [
        escape(row.name),
        f"{row.points:,}",
        f"{row.medoids:,}",
        f"{row.mean_distance:.4g}",
        f"{row.largest_cluster:,}",
    ]

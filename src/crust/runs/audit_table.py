"""The audit of a run, read from its folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from crust.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_audit", "read_table"]

LISTS = ("medoids", "medoid_labels")
NEEDED = ("index", "given_label", "predicted_label", "predicted_prob", "label_quality", "selection_rate", "is_held_out")


def read_table(path: str | Path) -> pd.DataFrame:
    """An audit's table as it was written: Parquet gives lists back as arrays.

    Example:
        >>> import tempfile, pandas as pd
        >>> path = Path(tempfile.mkdtemp()) / "audit.parquet"
        >>> pd.DataFrame({"index": [0], "medoids": [[4, 2]]}).to_parquet(path)
        >>> read_table(path)["medoids"].tolist()
        [[4, 2]]
    """
    import pandas as pd

    table = pd.read_parquet(path)
    for name in LISTS:
        if name in table:
            table[name] = [list(row) if isinstance(row, list) else row.tolist() for row in table[name]]
    return table


def read_audit(run_dir: str | Path) -> tuple[pd.DataFrame, list[Any]]:
    """The table that a finished run has left, and the names of the classes.

    Args:
        run_dir: the run's folder.

    Returns:
        What `audit_table` returned, and the classes in the order of their numbers.

    Example:
        >>> read_audit("nowhere")
        Traceback (most recent call last):
        ...
        crust.errors.InputError: there is no folder nowhere: give the folder of a run
    """
    import yaml

    folder = Path(run_dir)
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}: give the folder of a run")
    if not (folder / "config.yaml").is_file():
        raise InputError(f"{folder} holds no run: give the folder of one")
    if not (folder / "audit.parquet").is_file():
        raise InputError(f"{folder} holds no audit yet: let the run end with crust train --resume -o {folder}")
    try:
        table = read_table(folder / "audit.parquet")
        classes = list(yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))["classes"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError) as error:
        raise InputError(f"the audit in {folder} cannot be read: {' '.join(str(error).split())}") from None
    _check(table, classes, folder)
    return table, classes


def _check(table: pd.DataFrame, classes: list[Any], folder: Path) -> None:
    """Refuse a table that no run has left."""
    again = "copy audit.parquet and config.yaml from the same run again"
    lacking = [name for name in NEEDED if name not in table]
    if lacking:
        raise InputError(f"the audit in {folder} has no column {lacking[0]!r}: {again}")
    if not len(table):
        raise InputError(f"the audit in {folder} has no rows: {again}")
    for name in ("given_label", "predicted_label"):
        odd = table[name][~table[name].isin(classes)]
        if len(odd):
            found = f"the {name} {str(odd.iloc[0])!r}, which is none of the run's classes"
            raise InputError(f"the audit in {folder} has {found}: {again}")

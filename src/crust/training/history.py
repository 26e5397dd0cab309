"""The history of a run: one JSON line an epoch, on disk before the next epoch begins."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crust.errors import InputError
from crust.files import write_whole


class History:
    """Epochs as dictionaries, in order.

    Example:
        >>> history = History([{"epoch": 0, "test_accuracy": 0.5}, {"epoch": 1, "test_accuracy": 0.7}])
        >>> history["test_accuracy"]
        [0.5, 0.7]
        >>> history.accuracy()["last"]
        0.7
    """

    def __init__(self, lines: list[dict[str, Any]] | None = None):
        self.lines = list(lines or [])

    def __len__(self) -> int:
        return len(self.lines)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.lines)

    def __getitem__(self, key: str) -> list[Any]:
        """One quantity over the epochs; None where it was not measured."""
        return [line.get(key) for line in self.lines]

    def append(self, line: dict[str, Any]) -> None:
        self.lines.append(line)

    def accuracy(self, key: str = "test_accuracy") -> dict[str, float | None]:
        """Last epoch, mean of the last ten, and best (which is to be read as what it is: chosen on the test set)."""
        lines = [line for line in self.lines if line.get("counts", True)]
        if not lines and self.lines:  # stopped before the stage that counts
            lines = [line for line in self.lines if line.get("stage") == self.lines[-1].get("stage")]
        found = [line[key] for line in lines if line.get(key) is not None]
        if not found:
            return {"last": None, "last10": None, "best": None}
        return {"last": found[-1], "last10": sum(found[-10:]) / len(found[-10:]), "best": max(found)}

    def save(self, path: Path) -> None:
        """Write all lines, atomically."""
        text = "".join(json.dumps(line) + "\n" for line in self.lines)
        write_whole(path, text.encode())

    @classmethod
    def load(cls, path: Path) -> History:
        try:
            return cls([json.loads(line) for line in path.read_text().splitlines()])
        except (OSError, ValueError) as error:
            raise InputError(f"{path} is no history of a run: {error}") from None

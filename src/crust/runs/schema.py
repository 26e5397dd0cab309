"""What the plain files of a run's folder may hold: they may come from somebody else, or have been edited.

Only what other code relies on is named; what is there besides stays as it is.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator

from crust.errors import InputError

ClassName = str | bool | int | FiniteFloat
Classes = Annotated[list[ClassName], Field(min_length=1)]
Sides = Annotated[list[Annotated[int, Field(ge=0, le=2**31)]], Field(max_length=4)]
Scale = list[FiniteFloat] | tuple[FiniteFloat, ...] | None


class _File(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")


class _Tokens(_File):
    words: int = Field(400, ge=1)
    buckets: int = Field(1, ge=1, le=2**31)


class _Inputs(_File):
    kind: str | None = None
    shape: Sides = []
    mean: Scale = None
    std: Scale = None
    tokens: _Tokens | None = None


class _Config(_File):
    """config.yaml; runs of other frameworks that crust has only watched have no more than method and classes."""

    method: str
    model: str = ""
    built: bool = False
    parameters: int = 0
    inputs: _Inputs | None = None
    experiment: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    validation: FiniteFloat | int = 0
    classes: Classes
    data: str | None = None


class _Number(_File):
    kind: Literal["number"]
    name: str
    median: FiniteFloat
    mean: FiniteFloat
    std: Annotated[FiniteFloat, Field(gt=0)]
    indicator: bool


class _Category(_File):
    kind: Literal["category"]
    name: str
    levels: list[str]
    indicator: bool


class _List(_File):
    kind: Literal["list"]
    name: str
    mean: list[FiniteFloat]
    std: list[FiniteFloat]


class _Encoding(_File):
    """encoding.json."""

    format: Literal["images", "features", "table"]
    classes: Classes
    shape: Sides
    mean: Scale = None
    std: Scale = None
    label_column: str | None = None
    text_column: str | None = None
    tokens: _Tokens | None = None
    folders: dict[str, str] = {}
    resize: int | None = Field(None, ge=1)
    columns: list[Annotated[_Number | _Category | _List, Field(discriminator="kind")]] | None = None

    @model_validator(mode="after")
    def _complete(self) -> _Encoding:
        if self.format == "images" and (len(self.shape) != 3 or (self.mean is None) != (self.std is None)):
            raise ValueError("images have a shape of three sides, and mean and std or none")
        if self.format == "table" and (self.label_column is None or (self.columns is None) == (self.tokens is None)):
            raise ValueError("a table has a label_column, and columns or tokens")
        return self


class _Line(_File):
    """One epoch in history.jsonl."""

    epoch: int = Field(ge=0)
    seconds: dict[str, float] = {}


class _Estimate(_File):
    value: FiniteFloat
    low: FiniteFloat
    high: FiniteFloat


class _Point(_File):
    threshold: FiniteFloat
    flagged: int
    precision: _Estimate
    recall: _Estimate


class _Injected(_File):
    count: int
    share: FiniteFloat
    seed: int
    seconds: FiniteFloat


class _Transitions(_File):
    value: list[list[FiniteFloat]]
    low: list[list[FiniteFloat]]
    high: list[list[FiniteFloat]]


class _Verified(_File):
    """verified.json."""

    noise_rate: _Estimate | None
    transitions: _Transitions | None
    curve: list[_Point]
    cut: _Point | None
    cannot_say: str | None
    notes: list[str]
    injected: _Injected
    classes: list[ClassName] = []


def checked_file(kind: Literal["config", "encoding", "history", "verified"], found: Any, where: str, code: str) -> Any:
    """The content of a file, refused in a sentence where code that opens it could not rely on it."""
    model: Any = {"config": _Config, "encoding": _Encoding, "history": _Line, "verified": _Verified}[kind]
    try:
        model.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"] if not str(part).startswith("function-"))
        what = f"{place or 'it'}: {first['msg'].removeprefix('Value error, ')}"
        raise InputError(
            f"{where} is not as crust has written it ({what}): copy it from the run again", code=code
        ) from None
    return found

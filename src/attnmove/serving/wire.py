"""What goes over the wire: the shapes of questions and answers, as the OpenAPI description shows them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, FailFast, Field, StrictFloat, StrictInt, StrictStr, ValidationError
from pydantic_core import from_json

from attnmove.filling.fill import MOST_PLACES
from attnmove.filling.policy import Policy, parse_length
from attnmove.serving.refusals import Malformed, TooLarge, WrongShape

NOBODY = "somebody"
"""The user of points that name none."""
LONGEST_NAME = 200
"""Characters of a user; a user that is a number has 64 bits."""
_MOST_MINUTES = 10**9

Degrees = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Share = Annotated[float, Field(strict=True, ge=0, le=1)]
MaxGap = Annotated[StrictStr, Field(max_length=40)] | Annotated[StrictInt, Field(ge=1, le=_MOST_MINUTES)]


class Point(BaseModel):
    """A fix: who was where and when. Further members are ignored."""

    user: Annotated[StrictStr, Field(max_length=LONGEST_NAME)] | Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)] = (
        NOBODY
    )
    time: StrictStr | StrictInt | Annotated[StrictFloat, Field(allow_inf_nan=False)] = Field(
        description="ISO 8601 text, or seconds, milliseconds, … since 1970; text without an offset is in the run's zone"
    )
    lon: Degrees
    lat: Degrees


class Options(BaseModel):
    """What is left missing, and how much is told about each slot."""

    model_config = ConfigDict(extra="forbid")

    max_gap: MaxGap | None = Field(None, description="leave longer gaps missing: 4h, 90m, 1d, or minutes")
    min_confidence: Share | None = Field(None, description="leave answers of a lower probability missing")
    precision: Share | None = Field(None, description="the same, from the confidence that was right this often")
    top: Annotated[StrictInt, Field(ge=1, le=MOST_PLACES)] = Field(5, description="places a recovered slot has")
    origins: bool = Field(True, description="say where answers come from")

    def policy(self) -> Policy:
        """Raises ConfigError when the options do not go together."""
        minutes = parse_length(self.max_gap) if isinstance(self.max_gap, str) else self.max_gap
        return Policy(minutes, self.min_confidence, self.precision)


class Question(Options):
    """Points whose days are to be filled."""

    points: Annotated[list[Point], FailFast()]


class Alternative(BaseModel):
    """Another place the person may have been."""

    location: str | None
    lon: float | None
    lat: float | None
    probability: float


class Origin(BaseModel):
    """What an answer leans on: shares, and the sighting of the place that counted most."""

    kind: Literal["day", "past", "others", "space"] | None
    day: float
    past: float
    others: float
    space: float
    date: str | None
    slot: int | None


class Slot(BaseModel):
    """One slot of a day."""

    slot: int
    start: str
    location: str | None
    lon: float | None
    lat: float | None
    status: Literal["observed", "recovered", "left_missing"]
    reason: str | None
    probability: float | None
    alternatives: list[Alternative] | None
    origin: Origin | None


class Day(BaseModel):
    """A local day of one user, every slot of it."""

    user: str
    date: str
    timezone: str
    slot_minutes: int
    slots: list[Slot]


class Used(BaseModel):
    """What became of the points."""

    used: int
    refused: dict[str, int]
    """By reason."""


class Recovery(BaseModel):
    """Every day of which anything is known, by user and date."""

    days: list[Day]
    points: Used


class Fault(BaseModel):
    """Why a request was refused."""

    code: str
    message: str
    where: str | None = None


class Refusal(BaseModel):
    """The one shape of every error."""

    error: Fault


def read_question(body: bytes, most: int) -> tuple[list[Point], dict[str, Any]]:
    """The points of a JSON body, at most so many, and the options it names.

    Raises Malformed, WrongShape or TooLarge. What is wrong is told of the first fault: a list of all would be a
    thousand times as large as the body.
    """
    try:
        content = from_json(body)
    except ValueError as error:
        raise Malformed(f"the body is not JSON ({error})") from None
    if isinstance(content, dict):
        unknown = next((name for name in content if name not in Question.model_fields), None)
        if unknown is not None:
            raise WrongShape(f"{unknown[:LONGEST_NAME]}: there is no such option", unknown[:LONGEST_NAME])
        points = content.get("points")
        check_number(len(points) if isinstance(points, list) else 0, most)
    try:
        question = Question.model_validate(content)
    except ValidationError as error:
        raise _explained(error) from None
    named = question.model_fields_set - {"points"}
    return question.points, {name: getattr(question, name) for name in named}


def check_number(n: int, most: int) -> None:
    """Raise TooLarge for more points than allowed."""
    if n > most:
        raise TooLarge(f"more than {most:,} points; send fewer at a time")


def options_of(named: Mapping[str, Any]) -> Options:
    """The options, checked. Raises WrongShape."""
    try:
        return Options.model_validate(dict(named))
    except ValidationError as error:
        raise _explained(error) from None


def schema_of_question() -> dict[str, Any]:
    """The JSON schema of a question, in one piece."""
    schema = Question.model_json_schema()
    schema["properties"]["points"]["items"] = schema.pop("$defs")["Point"]
    return schema


def _explained(error: ValidationError) -> WrongShape:
    errors = error.errors(include_url=False, include_input=False, include_context=False)
    where = _where(errors[0]["loc"])
    here = [one for one in errors if _where(one["loc"]) == where]
    # Of a union, the branch that has the right type says more than those that have not.
    first = next((one for one in here if not one["type"].endswith("_type")), here[0])
    return WrongShape(f"{where}: {first['msg'][:1].lower()}{first['msg'][1:]}", where)


def _where(loc: tuple[int | str, ...]) -> str:
    # A union names the branch it tried; people know the member only.
    parts = [str(part) for part in loc if not re.search(r"[\[\]-]|^(str|int|float)$", str(part))]
    return ".".join(parts) or "body"

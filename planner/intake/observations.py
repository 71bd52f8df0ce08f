"""Tables of measurements (CSV, one row a figure) as observations."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from planner.errors import Fault, InputError, shorten
from planner.intake.files import read_text
from planner.spec.observation import Observation

LARGEST = 64 * 1024 * 1024
"""Bytes of the largest table that is read."""
MOST_FAULTS = 20
"""Faults that a message lists."""


def read(path: Path) -> tuple[Observation, ...]:
    """Read a table of measurements.

    Raises
    ------
    InputError
        With the faults of the table: file, line, column, value, and what would be right.

    """
    text = read_text(path, LARGEST, "table of figures (CSV)")
    lines = csv.DictReader(text.splitlines(), strict=True)
    faults = list(_columns(path, lines.fieldnames or ()))
    rows = []
    if not faults:
        try:
            for row in lines:
                try:
                    rows.append(Observation.model_validate(row))
                except ValidationError as error:
                    faults += list(_faults(path, lines.line_num, error))
        except csv.Error as error:
            faults.append(Fault(str(path), lines.line_num, "", "", f"is not CSV: {error}"))
    if not faults and not rows:
        faults.append(Fault(str(path), None, "", "", "holds no rows; the first line names the columns"))
    if faults:
        left = len(faults) - MOST_FAULTS
        more = [Fault(str(path), None, "", "", f"and {left} faults more")] if left > 0 else []
        raise InputError([*faults[:MOST_FAULTS], *more])
    return tuple(rows)


def _columns(path: Path, names: Sequence[str]) -> Iterator[Fault]:
    """Find columns that are missing, unknown or there twice."""
    known = Observation.model_fields
    needed = [name for name, field in known.items() if field.is_required()]
    for name in needed:
        if name not in names:
            yield Fault(str(path), 1, name, "", f"the column {name!r} is missing; needed are {', '.join(needed)}")
    for index, name in enumerate(names):
        if name not in known:
            problem = f"there is no column {shorten(name)}; known are {', '.join(known)}"
            yield Fault(str(path), 1, "", shorten(name), problem)
        elif name in names[:index]:
            yield Fault(str(path), 1, name, shorten(name), f"the column {name!r} is there twice")


def _faults(path: Path, line: int, error: ValidationError) -> Iterator[Fault]:
    for detail in error.errors(include_url=False):
        field, value = str(detail["loc"][0] if detail["loc"] else ""), detail["input"]
        if field == "None" or not isinstance(value, str | float | int | type(None)):
            yield Fault(str(path), line, "", "", "has more cells than there are columns")
            continue
        words = detail["msg"].replace("Input should be", "should be")
        yield Fault(str(path), line, field, shorten(value), f"{shorten(value)} {words}")

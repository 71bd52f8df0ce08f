"""Parts of a document that do not fit together: faults with the places that a check of several parts has in mind."""

from collections.abc import Iterable
from typing import NamedTuple

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from planner.spec.text import Location

MISFIT = "misfit"
"""Type of these errors, for who puts them into words."""


class Misfit(NamedTuple):
    """One thing that does not fit."""

    location: Location
    """Place below the part that checks."""
    problem: str
    """What is wrong and what would be right; repeats the value."""


def misfit(faults: Iterable[Misfit]) -> ValidationError:
    """Return what a validator raises so that each fault is told at its own place, not at that of the whole part."""
    # pydantic puts the place of the part in front, as it does with its own errors.
    errors = [
        InitErrorDetails(
            type=PydanticCustomError(MISFIT, "{problem}", {"problem": fault.problem}), loc=fault.location, input=None
        )
        for fault in faults
    ]
    return ValidationError.from_exception_data(MISFIT, errors)

"""What can go wrong by no fault of the program: input that cannot be read, and questions without a plan."""

from collections.abc import Iterable
from dataclasses import dataclass

LONGEST_VALUE = 60
"""Characters of an offending value that a message repeats."""
LONGEST_FILE = 255
"""Characters of a path that a message repeats."""


def shorten(value: object, longest: int = LONGEST_VALUE) -> str:
    """Value as one line of bounded length, for a message.

    >>> shorten("80 GiB")
    "'80 GiB'"
    >>> shorten([1] * 1000, longest=12)
    '[1, 1, ...1]'
    """
    text = repr(value) if isinstance(value, str) else " ".join(str(value).split())
    if len(text) <= longest:
        return text
    head = longest - 5
    return f"{text[:head]}...{text[-2:]}"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with one document."""

    file: str
    """Path as the user gave it, or the empty string where the input is no file."""
    line: int | None
    """Line, counted from 1."""
    field: str
    """Path of the field, joined by dots (``workloads.0.promise.ttft``), or the empty string for the whole file."""
    value: str
    """The offending value, cut to a readable length, or the empty string where something is missing."""
    problem: str
    """What is wrong and what would be right; repeats the value."""

    def __str__(self) -> str:
        """One line: ``file:line: field: problem``."""
        file = self.file if len(self.file) <= LONGEST_FILE else f"{self.file[:20]}...{self.file[23 - LONGEST_FILE :]}"
        place = f"{file}:{self.line}" if file and self.line else file
        return ": ".join(part for part in (place, self.field, self.problem) if part)


class PlannerError(Exception):
    """Base of all errors that planner raises on purpose."""

    exit_status = 1


class InputError(PlannerError):
    """The input is at fault. Holds every fault that was found; its text has one line for each."""

    exit_status = 2

    def __init__(self, faults: Iterable[Fault]) -> None:
        """Keep the faults in the order in which they were found."""
        self.faults: tuple[Fault, ...] = tuple(faults)
        super().__init__(self.faults)

    def __str__(self) -> str:
        """One line for each fault."""
        return "\n".join(str(fault) for fault in self.faults)

    @classmethod
    def of(cls, problem: str, *, field: str = "", value: object = "", file: str = "") -> "InputError":
        """Return an error with a single fault, for input that is not a document, such as an option."""
        return cls([Fault(file=file, line=None, field=field, value=str(value), problem=problem)])


class NoPlanError(PlannerError):
    """The input is sound, but nothing fulfils it."""

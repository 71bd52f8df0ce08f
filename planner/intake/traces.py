"""Traces of requests: when each came and how long it was; some also say when its tokens came.

Formats, told apart by their columns: Azure's public traces (CSV: TIMESTAMP, ContextTokens, GeneratedTokens), those of
Mooncake (JSON lines: timestamp in milliseconds, input_length, output_length), replays of vLLM with its own clock (JSON
lines: arrival_time, input_toks, output_toks, queued_ts, first_token_ts, last_token_ts in seconds), and any CSV with the
columns arrival, input and output in seconds and tokens.
"""

import csv
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from planner.errors import Fault, InputError, shorten
from planner.intake.files import json_lines, read_text
from planner.numeric import Floats, Ints

LARGEST = 1024 * 1024 * 1024
"""Bytes of the largest trace that is read."""
MOST_FAULTS = 20
MILLISECOND = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Requests in the order of their arrival; (n,) columns."""

    arrival: Floats
    """From the first one on [s]."""
    input: Ints
    output: Ints
    first: Floats | None
    """Measured time to the first token [s]; None where the trace does not say."""
    last: Floats | None
    """Measured time to the last token [s]; None where the trace does not say."""

    def __len__(self) -> int:
        """Count the requests."""
        return len(self.arrival)


Row = Mapping[str, object]


def _stamp(text: object) -> float:
    """Read a moment as Azure writes it, with seven digits of a second [s]."""
    moment, _, digits = str(text).strip().partition(".")
    seconds = datetime.fromisoformat(moment.replace(" ", "T") + "+00:00").timestamp()
    return seconds + (float(f"0.{digits}") if digits else 0.0)


def _number(value: object) -> float:
    number = float(str(value))
    if not math.isfinite(number):
        msg = "not finite"
        raise ValueError(msg)
    return number


@dataclass(frozen=True, slots=True)
class Format:
    """A way to write a trace."""

    arrival: str
    input: str
    output: str
    moment: Callable[[object], float] = _number
    scale: float = 1.0
    """Seconds in a unit of ``arrival``."""


FORMATS = (
    Format("TIMESTAMP", "ContextTokens", "GeneratedTokens", _stamp),
    Format("timestamp", "input_length", "output_length", scale=MILLISECOND),
    Format("arrival_time", "input_toks", "output_toks"),
    Format("arrival", "input", "output"),
)
MEASURED = ("queued_ts", "first_token_ts", "last_token_ts")


def read_trace(path: Path) -> Trace:
    """Read a trace.

    Raises
    ------
    InputError
        With the faults of the file: file, line, field, value, and what would be right.

    """
    rows = list(_rows(path))
    if not rows:
        raise InputError.of("holds no requests", file=str(path))
    found = next((one for one in FORMATS if {one.arrival, one.input, one.output} <= set(rows[0][1])), None)
    if found is None:
        known = "; ".join(f"{one.arrival}, {one.input}, {one.output}" for one in FORMATS)
        raise InputError([Fault(str(path), rows[0][0], "", "", f"is no trace that is known; columns are {known}")])
    faults: list[Fault] = []
    arrival = np.array([_value(path, at, row, found.arrival, found.moment, faults) for at, row in rows]) * found.scale
    lengths = [
        np.array([_value(path, at, row, name, _tokens, faults) for at, row in rows], np.int64)
        for name in (found.input, found.output)
    ]
    measured = _measured(path, rows, faults) if set(MEASURED) <= set(rows[0][1]) else (None, None)
    if faults:
        raise InputError(faults[:MOST_FAULTS])
    order = np.argsort(arrival, kind="stable")
    first, last = (None if one is None else one[order] for one in measured)
    return Trace(arrival[order] - arrival.min(), lengths[0][order], lengths[1][order], first, last)


def _tokens(value: object) -> float:
    number = _number(value)
    if number < 1 or number != int(number):
        msg = "not a count"
        raise ValueError(msg)
    return number


def _value(path: Path, line: int, row: Row, name: str, read: Callable[[object], float], faults: list[Fault]) -> float:
    """Read one cell; a fault counts as 1."""
    try:
        return read(row[name])
    except (KeyError, ValueError, TypeError):
        shown = shorten(row.get(name, ""))
        right = "a whole number from 1 on" if read is _tokens else "a moment" if read is _stamp else "a number"
        faults.append(Fault(str(path), line, name, shown, f"{name}: {shown} should be {right}"))
        return 1.0


def _measured(path: Path, rows: list[tuple[int, Row]], faults: list[Fault]) -> tuple[Floats, Floats]:
    """Measured times to the first and the last token."""
    queued, first, last = (
        np.array([_value(path, at, row, name, _number, faults) for at, row in rows]) for name in MEASURED
    )
    return first - queued, last - queued


def _rows(path: Path) -> Iterator[tuple[int, Row]]:
    """Lines of a file as rows, each with its number."""
    text = read_text(path, LARGEST, "trace")
    if text.lstrip()[:1] != "{":
        lines = csv.DictReader(text.splitlines())
        try:
            for row in lines:
                yield lines.line_num, {str(key): value for key, value in row.items()}
        except csv.Error as error:
            raise InputError([Fault(str(path), lines.line_num, "", "", f"is not CSV: {error}")]) from error
        return
    for number, value in json_lines(path, text):
        if not isinstance(value, dict):
            raise InputError([Fault(str(path), number, "", shorten(value), "is no request")])
        yield number, value

"""Files of text, and of JSON a line, with what is wrong of them in one place."""

import json
from collections.abc import Iterator
from pathlib import Path

from planner.errors import Fault, InputError

MEBIBYTE = 2**20


def read_text(path: Path, largest: int, kind: str) -> str:
    """Read a file of at most ``largest`` bytes; ``kind`` is what it should be.

    Raises :class:`planner.errors.InputError` where it cannot be read, is larger, or is not text.
    """
    try:
        if path.stat().st_size > largest:
            msg = f"larger than {largest // MEBIBYTE} MiB, which is no {kind}"
            raise InputError.of(msg, file=str(path))
        return path.read_text("utf-8-sig")
    except OSError as error:
        msg = f"cannot be read: {error.strerror or error}"
        raise InputError.of(msg, file=str(path)) from error
    except UnicodeDecodeError as error:
        msg = f"is not UTF-8 text, for example a {kind}"
        raise InputError.of(msg, file=str(path)) from error


def json_lines(path: Path, text: str) -> Iterator[tuple[int, object]]:
    """Yield the JSON value of each line that is not blank, with its number; ``Infinity`` counts as a number.

    Raises :class:`planner.errors.InputError` at the first line that is not JSON.
    """
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (json.JSONDecodeError, RecursionError) as error:
                why = error.msg if isinstance(error, json.JSONDecodeError) else "too deeply nested"
                raise InputError([Fault(str(path), number, "", "", f"is not JSON: {why}")]) from error

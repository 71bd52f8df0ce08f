"""Where an answer goes: standard output, or a file that is whole or untouched."""

import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import TypedDict

import typer

from planner.errors import LONGEST_FILE, InputError, shorten

WIDTH = 120
"""Columns where no terminal says how many it has, in a file for example."""


NARROWEST = 40
"""Columns below which words and figures lose letters; a narrower terminal breaks the lines itself."""


class Look(TypedDict):
    """How text is drawn."""

    width: int
    colour: bool


def look(output: Path | None) -> Look:
    """Width and colour that suit where an answer goes: the terminal's own, or plain text for files and pipes."""
    shown = output is None or str(output) == "-"
    colour = shown and sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    columns = shutil.get_terminal_size((WIDTH, 24)).columns if shown else WIDTH
    return Look(width=max(NARROWEST, columns), colour=colour)


def write(text: str, output: Path | None) -> None:
    """Write an answer to a file, or to standard output where there is none (or it is ``-``).

    A reader that closes standard output early (``| head``) ends the writing, not the command: its exit status still
    tells what the answer is. Raises :class:`planner.errors.InputError` where the file cannot be written.
    """
    text = text if text.endswith("\n") else f"{text}\n"
    if output is not None and str(output) != "-":
        try:
            _replace(output, text)
        except OSError as error:
            problem = f"cannot write {shorten(str(output), LONGEST_FILE)}: {error.strerror or error}"
            raise InputError.of(problem, value=str(output)) from error
        return
    try:
        typer.echo(text, nl=False)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _replace(output: Path, text: str) -> None:
    """Write a file under another name and rename it, so that nobody ever reads half an answer."""
    if output.exists() and not output.is_file():
        # A device or a named pipe takes the text itself; a folder fails here with the system's own words.
        output.write_text(text, encoding="utf-8")
        return
    target = Path(os.path.realpath(output))
    draft = target.with_name(f".{target.name}.{os.getpid()}.part")
    # "x": a file that someone else put there is not ours to overwrite.
    stream = draft.open("x", encoding="utf-8")
    try:
        with stream:
            stream.write(text)
        if target.exists():
            shutil.copymode(target, draft)
        draft.replace(target)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise

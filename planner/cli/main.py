"""Entry point: run one command and turn what comes of it into an exit status."""

import gc
import io
import os
import sys
from collections.abc import Sequence
from typing import TextIO

RARELY = 200_000
"""Allocations between two collections."""
INPUT_AT_FAULT = 2
PROGRAM_AT_FAULT = 70
"""EX_SOFTWARE of sysexits.h: a defect must not look like the answer 'no such plan', which is 1."""
INTERRUPTED = 130
"""128 + SIGINT, as shells report it."""


def main() -> None:
    """Run the command that the process was started with, and end the process."""
    # Half a second of imports makes many objects and no garbage; collecting it at every turn costs 5 % of the whole.
    gc.set_threshold(RARELY)
    _replace_closed_streams()
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit status.

    Errors of the user become lines ``planner: ...`` on standard error, never a traceback.
    """
    try:
        _tolerate_narrow_encodings()
        status = _dispatch(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has seen enough. What is left in the buffer must not fail again when the process ends.
        _discard(sys.stdout)
        return 0
    except OSError as error:
        complain(f"cannot use {error.filename or 'standard output'}: {error.strerror or error}")
        _forget_standard_output()
        return INPUT_AT_FAULT
    return status


def complain(message: str) -> None:
    """Write a message for the user on standard error, each line marked as ours.

    Where nobody can read it, the exit status says what happened, and only that.
    """
    try:
        for line in message.splitlines() or [""]:
            print(f"planner: {line}", file=sys.stderr)
    except OSError:
        _discard(sys.stderr)


def _dispatch(arguments: Sequence[str]) -> int:
    import typer
    from typer.exceptions import TyperException

    from planner.cli.app import app
    from planner.errors import PlannerError

    try:
        status = app(arguments, prog_name="planner", standalone_mode=False)
    except PlannerError as error:
        complain(str(error))
        return error.exit_status
    except typer.Abort:
        return INTERRUPTED
    except TyperException as error:
        complain(error.format_message().replace("Value error, ", ""))  # pydantic's word for it says nothing
        context = getattr(error, "ctx", None)
        if context is not None:
            complain(f"'{context.command_path} --help' shows what is possible")
        return INPUT_AT_FAULT
    except OSError:
        raise
    except SystemExit as end:
        # The command line's library ends the process with 1, the status of "no such plan", where a reader of help left.
        raise BrokenPipeError from end
    except Exception:  # noqa: BLE001 - the last resort, which must set its own exit status
        import traceback
        from contextlib import suppress

        with suppress(OSError):
            traceback.print_exc()
        complain("this is a defect of planner, not of your input: please report it with the lines above")
        return PROGRAM_AT_FAULT
    return status if isinstance(status, int) else 0


def _tolerate_narrow_encodings() -> None:
    """Write a question mark for what the terminal's encoding lacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _replace_closed_streams() -> None:
    """Write nowhere where the caller closed a stream (``>&-``): the exit status still tells what the answer is."""
    # Python knows a closed stream as None, and print(file=None) would write complaints among the answers. The first
    # files that are opened take the numbers of the closed ones, so that no document or socket gets them.
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            mode = "r" if number == 0 else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - open until the end


def _discard(stream: TextIO) -> None:
    """Let what is left in a stream's buffer go nowhere, so that it does not fail again when the process ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _forget_standard_output() -> None:
    """Keep the interpreter from failing once more on a full disk when it flushes at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        _discard(sys.stdout)

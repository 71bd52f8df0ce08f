"""The command-line reference, written from the commands themselves.

``python -m planner.cli.reference > docs/reference/cli.md`` writes it anew; a test compares.
"""

from collections.abc import Iterator

import typer
from typer.core import TyperGroup

from planner.cli.app import HELP, app

WIDTH = 100
PREAMBLE = """\
# Command line

Written from the commands themselves by `just docs`; do not edit.

`recommend` ends with status 0 where there is a plan within all budgets, 1 where there is none or a budget is missed,
and 2 where the input is at fault. The other commands end with 0 once they have answered, and 2 where the input is at
fault. Every command writes its answer to standard output and everything else to standard error.
"""


def contexts() -> Iterator[typer.Context]:
    """Yield every command in the order of the help text, with what it was called as; the root comes first."""
    yield from _below(
        typer.Context(
            typer.main.get_command(app),
            info_name="planner",
            terminal_width=WIDTH,
            max_content_width=WIDTH,
            help_option_names=HELP,
        )
    )


def command_paths() -> list[str]:
    """Return what is typed for each command, without the groups.

    >>> "planner recommend" in command_paths()
    True
    """
    return [context.command_path for context in contexts() if not isinstance(context.command, TyperGroup)]


def reference() -> str:
    """Return the reference as Markdown: one heading and help text for each command."""
    parts = [PREAMBLE]
    for context in contexts():
        text = "\n".join(line.rstrip() for line in context.get_help().splitlines())
        parts.append(f"## `{context.command_path}`\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


def _below(context: typer.Context) -> Iterator[typer.Context]:
    """Yield a command and those below it; width and help options are handed down."""
    yield context
    if isinstance(context.command, TyperGroup):
        for name, command in context.command.commands.items():
            yield from _below(typer.Context(command, info_name=name, parent=context))


if __name__ == "__main__":
    print(reference(), end="")

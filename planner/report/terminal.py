"""Documents on a terminal. Rich draws; what does not fit beside is put below, never cut."""

from io import StringIO
from typing import Literal

from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from planner.report.blocks import Block, Cell, Document, Facts, Heading, Paragraph, Table, Tone

STYLES = {
    Tone.PLAIN: "",
    Tone.STRONG: "bold",
    Tone.QUIET: "dim",
    Tone.GOOD: "green",
    Tone.WARN: "yellow",
    Tone.BAD: "bold red",
}
GAP = 2
"""Spaces between columns."""


def draw(document: Document, width: int = 120, *, colour: bool = False) -> str:
    """Write a document in lines of at most ``width`` characters, with colours only where asked for."""
    out = StringIO()
    console = Console(
        file=out,
        width=width,
        height=100,
        force_terminal=colour,
        color_system="standard" if colour else None,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
        _environ={},
    )
    for position, block in enumerate(document.blocks):
        if position and not isinstance(document.blocks[position - 1], Heading):
            console.print()
        _put(console, block)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _put(console: Console, block: Block) -> None:
    match block:
        case Heading(line, _) | Paragraph(line):
            console.print(_text((line,)))
        case Facts(rows):
            console.print(_facts(rows, console.width))
        case Table():
            for position, part in enumerate(_beside(block, console.width)):
                if position:
                    console.print()
                console.print(_grid(block, part))


def _text(lines: Cell) -> Text:
    return Text("\n").join(Text(line.text, STYLES[line.tone]) for line in lines)


def _facts(rows: tuple[tuple[str, Cell], ...], width: int) -> Grid:
    grid = Grid.grid(padding=(0, GAP, 0, 0))
    longest = max((len(label) for label, _ in rows), default=0)
    grid.add_column(style="dim", width=max(9, min(longest, width * 2 // 5)), overflow="fold")
    grid.add_column()
    for label, lines in rows:
        grid.add_row(label, _text(lines))
    return grid


def _widths(table: Table) -> list[int]:
    heads = [max(map(len, column.head.splitlines()), default=0) for column in table.columns]
    cells = [
        max((len(line.text) for row in table.rows for line in row[index]), default=0) for index in range(len(heads))
    ]
    return [max(pair) for pair in zip(heads, cells, strict=True)]


def _beside(table: Table, width: int) -> list[list[int]]:
    """Split columns into groups that fit the width; each repeats the first column, which names the row."""
    widths = _widths(table)
    parts: list[list[int]] = [[0]]
    used = widths[0]
    for index in range(1, len(widths)):
        if used + GAP + widths[index] > width and len(parts[-1]) > 1:
            parts.append([0])
            used = widths[0]
        parts[-1].append(index)
        used += GAP + widths[index]
    return parts


def _grid(table: Table, part: list[int]) -> Grid:
    tall = any(len(row[index]) > 1 for row in table.rows for index in part)
    # The box itself puts one space between columns.
    grid = Grid(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, GAP - 1, 0, 0), pad_edge=False, header_style="dim")
    for index in part:
        column = table.columns[index]
        side: Literal["left", "right"] = "right" if column.figures else "left"
        grid.add_column(column.head, justify=side, vertical="top", overflow="fold")
    for position, row in enumerate(table.rows):
        if tall and position:
            grid.add_row()
        grid.add_row(*(_text(row[index]) for index in part))
    return grid

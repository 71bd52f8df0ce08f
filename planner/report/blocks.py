"""What a report is made of, whatever its form: headings, paragraphs, facts and tables."""

from dataclasses import dataclass
from enum import StrEnum


class Tone(StrEnum):
    """How a line is meant. A form may colour it; the words alone must say it too."""

    PLAIN = "plain"
    STRONG = "strong"
    QUIET = "quiet"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text."""

    text: str
    tone: Tone = Tone.PLAIN


Cell = tuple[Line, ...]
"""Lines under each other."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; level 1 is the title."""

    line: Line
    level: int = 2


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text."""

    line: Line


@dataclass(frozen=True, slots=True)
class Facts:
    """Short labels, each with what there is to say."""

    rows: tuple[tuple[str, Cell], ...]


@dataclass(frozen=True, slots=True)
class Column:
    """Head of a column; figures stand to the right."""

    head: str
    figures: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under columns; the first column names the row."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


Block = Heading | Paragraph | Facts | Table


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report."""

    blocks: tuple[Block, ...]


def cell(text: str, tone: Tone = Tone.PLAIN, under: str = "") -> Cell:
    """Make a cell of one line, and of a quiet second one where there is text for it.

    >>> [line.text for line in cell("312 of 500 ms", under="290 to 335")]
    ['312 of 500 ms', '290 to 335']
    """
    first = Line(text, tone)
    return (first, Line(under, Tone.QUIET)) if under else (first,)


def heading(text: str, level: int = 2) -> Heading:
    """Make a heading."""
    return Heading(Line(text, Tone.STRONG), level)


def table(heads: tuple[str, ...], rows: list[list[str]], figures: tuple[str, ...] = ()) -> Table:
    """Make a table of plain text; the columns whose heads are in ``figures`` hold figures.

    >>> table(("Kind", "Bytes"), [["weights", "41 GiB"]], figures=("Bytes",)).columns[1]
    Column(head='Bytes', figures=True)
    """
    columns = tuple(Column(head, head in figures) for head in heads)
    return Table(columns, tuple(tuple(cell(text) for text in row) for row in rows))

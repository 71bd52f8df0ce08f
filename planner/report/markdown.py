"""Documents as Markdown for pull requests and wikis. Tabulate draws the tables."""

from tabulate import tabulate

from planner.report.blocks import Block, Cell, Document, Facts, Heading, Paragraph, Table


def write(document: Document) -> str:
    """Write a document as GitHub-flavoured Markdown."""
    return "\n\n".join(_block(block) for block in document.blocks) + "\n"


def _block(block: Block) -> str:
    match block:
        case Heading(line, level):
            return f"{'#' * level} {_escaped(line.text)}"
        case Paragraph(line):
            return _escaped(line.text)
        case Facts(rows):
            return "\n".join(f"- **{_escaped(label)}:** {_lines(lines, '; ')}" for label, lines in rows)
        case Table():
            return _table(block)


def _table(block: Table) -> str:
    rows = [[_lines(item, "<br>") for item in row] for row in block.rows]
    heads = [_escaped(" ".join(column.head.splitlines())) for column in block.columns]
    align = ["right" if column.figures else "left" for column in block.columns]
    return tabulate(rows, heads, tablefmt="pipe", colalign=align, disable_numparse=True)


def _lines(lines: Cell, joint: str) -> str:
    return joint.join(_escaped(line.text) for line in lines)


def _escaped(text: str) -> str:
    """Take their meaning from the characters that Markdown would read."""
    for mark in "\\`*_<>|[]":
        text = text.replace(mark, f"\\{mark}")
    return text

"""The forms in which an answer is written."""

from typing import TYPE_CHECKING, Literal

from planner.plan.answer import Recommendation, to_json
from planner.plan.explanation import Explanation
from planner.report.blocks import Document

if TYPE_CHECKING:
    from planner.check.accuracy import Accuracy
    from planner.check.calibration import CalibrationFound
    from planner.check.simulated import Simulation
    from planner.check.single import Prediction

Form = Literal["terminal", "markdown", "json"]
"""How an answer is written."""
WIDTH = 120
"""Characters of a line where the caller does not know the terminal."""


def render(
    answer: "Recommendation | Explanation | Accuracy | Prediction | CalibrationFound | Simulation",
    form: Form,
    *,
    explain: bool = False,
    width: int | None = None,
    colour: bool = False,
) -> str:
    """Write an answer; the text ends with a line break.

    Parameters
    ----------
    answer
        What ``recommend``, ``explain``, ``predict``, ``accuracy``, ``calibrate`` or ``simulate`` found.
    form
        ``terminal``, ``markdown`` or ``json``. JSON always holds everything.
    explain
        Whether all details are wanted.
    width
        Characters of a terminal's line.
    colour
        Whether the terminal shows colours.

    """
    if form == "json":
        return to_json(answer) + "\n"
    from planner.report.document import compose  # noqa: PLC0415 - JSON needs no words

    return write(compose(answer, explain=explain), form, width=width, colour=colour)


def write(
    document: Document, form: Literal["terminal", "markdown"], *, width: int | None = None, colour: bool = False
) -> str:
    """Write a document; see :func:`render`."""
    if form == "markdown":
        from planner.report import markdown  # noqa: PLC0415 - a terminal needs no tabulate

        return markdown.write(document)
    from planner.report import terminal  # noqa: PLC0415 - rich takes most of the time of a report

    return terminal.draw(document, width or WIDTH, colour=colour)

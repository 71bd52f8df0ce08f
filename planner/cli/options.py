"""Options that several commands share. Plain types only: nothing here may slow ``planner --help`` down."""

from pathlib import Path
from typing import Annotated, Literal

import typer

REFERENCE = "orbit"
"""Scenario that is meant where none is named."""

Form = Literal["terminal", "json", "markdown"]
"""What an answer is written in."""
Objective = Literal["cost", "nodes", "power", "goodput"]
"""What a plan minimises, or maximises in the case of goodput."""

ScenarioArgument = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="A scenario file, or the name of a shipped scenario.")
]
FormOption = Annotated[Form, typer.Option("--format", "-f", help="What to write the answer in.")]
CardsOption = Annotated[
    list[Path] | None,
    typer.Option("--cards", metavar="DIR", help="Folder of your own cards, found before shipped ones."),
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write the answer to this file instead of standard output."),
]

"""``planner accuracy``: how far predictions are from measurements."""

from pathlib import Path
from typing import Annotated

import typer

from planner.cli.options import CardsOption, FormOption, OutputOption

BY = ("hardware", "model", "engine", "kind", "source")
"""What rows may be grouped by."""


def accuracy(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="A table of measurements (CSV); absent: the one that ships."),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="|".join(BY), help="Group the errors by this too; may be given several times."),
    ] = None,
    form: FormOption = "terminal",
    output: OutputOption = None,
    cards: CardsOption = None,
) -> None:
    """Hold predictions against measurements, row by row, through the step times that plans are made of.

    Exit status: 0 once answered; 2 the input is at fault.
    """
    from planner import __version__
    from planner.check.accuracy import accuracy as judge
    from planner.cli.output import look, write
    from planner.errors import InputError
    from planner.intake.observations import read
    from planner.report.render import render
    from planner.spec.bands import shipped_bands
    from planner.spec.catalog import Catalog, shipped
    from planner.spec.complaints import did_you_mean

    for name in by or ():
        if name not in BY:
            msg = f"cannot group by {name!r}; {did_you_mean(name, BY)}"
            raise InputError.of(msg, field="--by", value=name)
    rows = read(file or shipped() / "hardware" / "measurements" / "published.csv")
    answer = judge(rows, Catalog(tuple(cards or ())), shipped_bands(), by or (), version=__version__)  # type: ignore[arg-type]
    write(render(answer, form, **look(output)), output)

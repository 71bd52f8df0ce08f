"""``planner calibrate``: a site's own measurements become an efficiency card."""

from pathlib import Path
from typing import Annotated

import typer

from planner.cli.options import CardsOption, FormOption


def calibrate(  # noqa: PLR0913, PLR0917 - what was measured, on what, and where the card goes
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILES...", help="Tables of measurements (CSV), or result files of load generators."),
    ],
    hardware: Annotated[str, typer.Option("--hardware", metavar="HARDWARE", help="A hardware card.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Write the card to this file.")],
    engine: Annotated[str, typer.Option("--engine", help="An engine, with its version: vllm@0.19.")] = "vllm",
    name: Annotated[
        str | None, typer.Option("--name", help="What to call the calibration; absent: after the pair.")
    ] = None,
    serve: Annotated[
        list[str] | None,
        typer.Option(
            "--serve",
            metavar="COMMAND",
            help="The command that served while a result file was made: one for all, or one for each in order.",
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="CARD", help="Efficiency card to start from; absent: that of the pair (HARDWARE--ENGINE)."
        ),
    ] = None,
    form: FormOption = "terminal",
    cards: CardsOption = None,
) -> None:
    """Make an efficiency card from your own measurements, with residuals and the range that it holds in.

    Use it with --cards DIR, where DIR is the folder that holds the card.

    Exit status: 0 once written; 2 the input is at fault, or the measurements identify no parameter.
    """
    from planner import __version__
    from planner.check.calibrate import calibrate as fit
    from planner.check.calibrated import answer, finished
    from planner.check.material import material, target
    from planner.cli.output import look, write
    from planner.report.render import render
    from planner.spec.catalog import Catalog
    from planner.spec.writing import as_yaml

    catalog = Catalog(tuple(cards or ()))
    of = target(hardware, engine, start, catalog)
    given = material(files, serve or (), of, catalog)
    found = fit(given.rows, of.card, given.unused, carried=of.carried)
    card = finished(found, of, given, name or f"{of.card.hardware}--{of.card.engine}")
    report = render(answer(found, card, given, __version__, str(output)), form, **look(None))
    write(as_yaml(card), output)
    write(report, None)

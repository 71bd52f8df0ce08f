"""The commands, put together."""

from typing import Annotated

import typer

from planner import __version__
from planner.cli import accuracy, calibrate, cards, explain, predict, recommend, simulate

HELP = ["-h", "--help"]
"""Options that show the help of a command."""

app = typer.Typer(
    name="planner",
    help="Plan a cluster that serves large language models: layouts, replicas, pools and nodes, with the reasons.",
    # Both would import rich, which doubles the time that `planner --help` takes.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": HELP, "max_content_width": 100},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"planner {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    del version  # its callback has answered
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command()(recommend.recommend)
app.command()(explain.explain)
app.command()(predict.predict)
app.command()(accuracy.accuracy)
app.command()(calibrate.calibrate)
app.command()(simulate.simulate)
app.add_typer(cards.app, name="cards")

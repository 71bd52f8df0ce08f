"""``planner simulate``: the plan of a scenario, replayed request by request."""

from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.options import REFERENCE, CardsOption, FormOption, OutputOption, ScenarioArgument

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from planner.check.simulation import Watch


def simulate(
    scenario: ScenarioArgument = REFERENCE,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the random numbers.")] = 1,
    hours: Annotated[
        float | None, typer.Option("--hours", min=0.01, max=1000.0, help="Hours to replay at the busiest hour's rate.")
    ] = None,
    form: FormOption = "terminal",
    output: OutputOption = None,
    cards: CardsOption = None,
) -> None:
    """Replay the plan of a scenario, iteration by iteration, beside what the closed forms say of it.

    Exit status: 0 every promise holds in the replay; 1 one does not, or there is no plan; 2 the input is at fault.
    """
    from planner import __version__
    from planner.cli.case import load
    from planner.cli.output import look, write

    case = load(scenario, cards)
    from planner.check.simulation import simulate as replay
    from planner.report.render import render

    with _progress() as watch:
        answer = replay(case, __version__, seed, hours, watch)
    write(render(answer, form, **look(output)), output)
    raise typer.Exit(0 if all(one.holds for one in answer.workloads) else 1)


def _progress() -> "AbstractContextManager[Watch | None]":
    """Show on a terminal how far the replay is; on standard error, so that nothing mixes with the answer."""
    import sys
    from contextlib import contextmanager

    @contextmanager
    def shown() -> "Iterator[Watch | None]":
        if not sys.stderr.isatty():
            yield None
            return
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("replaying")
            yield lambda done, count: bar.update(task, completed=done, total=count)

    return shown()

"""``planner simulate``: the plan of a scenario, replayed request by request."""

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.options import REFERENCE, CardsOption, FormOption, OutputOption, ScenarioArgument

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.check.simulation import Watch


def simulate(
    scenario: ScenarioArgument = REFERENCE,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the random numbers.")] = 1,
    hours: Annotated[
        float | None, typer.Option("--hours", min=0.01, max=1000.0, help="Hours to replay at the busiest hour's rate.")
    ] = None,
    trace: Annotated[
        list[str] | None,
        typer.Option(
            "--trace",
            metavar="[WORKLOAD=]FILE",
            help="Replay the requests of a trace instead of drawn ones: Azure's CSV, Mooncake's JSON lines, or a CSV "
            "with arrival, input and output.",
        ),
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
    from planner.intake.traces import read_trace
    from planner.report.render import render

    traces = {}
    for said in trace or ():
        name, file = _named(said, [one.name for one in case.scenario.workloads if one.promise.deadline is None])
        traces[name] = read_trace(file)
    with _progress() as watch:
        answer = replay(case, __version__, seed, hours, watch, traces)
    write(render(answer, form, **look(output)), output)
    raise typer.Exit(0 if all(one.holds for one in answer.workloads) else 1)


def _named(said: str, workloads: list[str]) -> "tuple[str, Path]":
    """Read which workload a trace is of; it need not be said where there is one alone."""
    from planner.errors import InputError
    from planner.spec.complaints import did_you_mean

    name, equals, file = said.partition("=")
    if not equals:
        if len(workloads) != 1:
            example = f"--trace {workloads[0]}={said}" if workloads else "a scenario with interactive work"
            problem = f"--trace does not say which workload it is of, for example {example}"
            raise InputError.of(problem, field="--trace", value=said)
        name, file = workloads[0], said
    if name not in workloads:
        problem = f"there is no interactive workload {name!r}; {did_you_mean(name, workloads)}"
        raise InputError.of(problem, field="--trace", value=name)
    return name, Path(file)


@contextmanager
def _progress() -> "Iterator[Watch | None]":
    """Show on a terminal how far the replay is; on standard error, so that nothing mixes with the answer."""
    import sys

    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("replaying")
        yield lambda done, count: bar.update(task, completed=done, total=count)

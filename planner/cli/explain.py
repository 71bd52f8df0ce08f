"""``planner explain``: why a workload is served as it is."""

from typing import Annotated

import typer

from planner.cli.options import REFERENCE, CardsOption, FormOption, OutputOption
from planner.errors import InputError, shorten

MOST_NAMES = 2


def explain(
    names: Annotated[
        list[str],
        typer.Argument(metavar="[SCENARIO] WORKLOAD", help="A workload of Orbit, or of the scenario named before it."),
    ],
    form: FormOption = "terminal",
    output: OutputOption = None,
    cards: CardsOption = None,
) -> None:
    """Explain the choice for one workload: what was tried, what was rejected, and where the time goes.

    Exit status: 0 once answered; 2 the input is at fault.
    """
    if len(names) > MOST_NAMES:
        problem = f"{names[MOST_NAMES]!r} is one name too many, for example 'planner explain {names[0]} {names[1]}'"
        raise InputError.of(problem, value=names[MOST_NAMES])
    from planner.cli.case import load
    from planner.cli.output import look, write

    *scenario, workload = names
    case = load(scenario[0] if scenario else REFERENCE, cards)
    known = [work.name for work in case.scenario.workloads]
    if workload not in known:
        from planner.spec.complaints import did_you_mean

        problem = f"there is no workload {shorten(workload)} in {case.scenario.name}; {did_you_mean(workload, known)}"
        raise InputError.of(problem, value=workload)
    from planner.plan.explain import explain as trace
    from planner.report.render import render

    write(render(trace(case, workload), form, **look(output)), output)

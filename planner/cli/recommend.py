"""``planner recommend``: the plan for a scenario."""

from typing import Annotated

import typer

from planner.cli.options import REFERENCE, CardsOption, FormOption, Objective, OutputOption, ScenarioArgument


def recommend(
    scenario: ScenarioArgument = REFERENCE,
    form: FormOption = "terminal",
    explain: Annotated[bool, typer.Option("--explain", help="Show where the time goes, and why.")] = False,
    objective: Annotated[Objective, typer.Option("--objective", help="Minimise this (maximise goodput).")] = "cost",
    confident: Annotated[
        bool, typer.Option("--confident", help="Plan with all times at the long end of their 80 % band.")
    ] = False,
    output: OutputOption = None,
    cards: CardsOption = None,
) -> None:
    """Recommend layouts, replicas, pools and nodes for a scenario.

    Exit status: 0 a plan within all budgets; 1 no such plan, or a budget is missed; 2 the input is at fault.
    """
    from dataclasses import replace

    from planner.cli.case import load
    from planner.cli.output import look, write

    case = load(scenario, cards)  # before the imports below: what is at fault is told at once
    from planner.plan.recommend import recommend as plan
    from planner.report.render import render

    answer = plan(replace(case, confident=confident), objective=objective)
    write(render(answer, form, explain=explain, **look(output)), output)
    raise typer.Exit(0 if answer.feasible and answer.within_budgets else 1)

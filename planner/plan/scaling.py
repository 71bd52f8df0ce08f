"""The goodput objective: the largest common multiple of all rates that the inventory carries."""

from dataclasses import replace

from planner.plan.options import Choice
from planner.plan.search import options, search, stocks
from planner.plan.solve import solve
from planner.spec.catalog import Case

PRECISION = 0.02
"""Relative width to which the multiple is found."""
LEAST = 2.0**-40
"""A case that is not carried at this multiple is taken for one that no rate helps."""
MOST = 2.0**60
"""Doubling ends here, so that the search ends whatever the case; every inventory binds long before."""


def scaled(case: Case, multiple: float) -> Case:
    """Return the case with all rates and document counts times ``multiple``."""
    works = []
    for work in case.scenario.workloads:
        if work.traffic is not None:
            traffic = work.traffic.model_copy(update={"rate": work.traffic.rate * multiple})
            works.append(work.model_copy(update={"traffic": traffic}))
        elif work.batch is not None:
            documents = max(1, round(work.batch.documents * multiple))
            works.append(work.model_copy(update={"batch": work.batch.model_copy(update={"documents": documents})}))
    scenario = case.scenario.model_copy(update={"workloads": tuple(works)})
    return replace(case, scenario=scenario)


def carried(case: Case) -> bool:
    """Whether the inventory carries the case."""
    found = search(case)
    names = tuple(member.spec.name for member in found.members)
    table = options(found)
    if {name for option in table for name in option.workloads} != set(names):
        return False
    # Any plan will do, so the search may stop at the first.
    return isinstance(solve(table, stocks(case), names, case.scenario.reserve.nodes, "cost", gap=1.0), Choice)


def largest_multiple(case: Case) -> tuple[float, Case]:
    """Find the multiple by doubling and bisection; 0, with the case as it is, where not even ``LEAST`` is carried."""
    low, high = 1.0, 1.0
    if carried(case):
        while high < MOST and carried(scaled(case, high * 2.0)):
            high *= 2.0
        low, high = high, high * 2.0
    elif not carried(scaled(case, LEAST)):
        return 0.0, case
    else:
        low = 0.5
        while low > LEAST and not carried(scaled(case, low)):
            low, high = low / 2.0, low
    while high / low > 1.0 + PRECISION:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if carried(scaled(case, middle)) else (low, middle)
    return low, scaled(case, low)

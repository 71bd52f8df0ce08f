"""Budgets held against a plan: each limit gives one check, with the figure, its margin, and whether it is met."""

from collections.abc import Sequence

from planner.errors import Fault, InputError
from planner.plan.answer import CheckItem, ClusterUse, WorkloadPlan
from planner.spec.budget import Limit, Metric, misfits
from planner.spec.catalog import Case

ROUNDING = 1e-9
"""Relative excess over a limit that is taken for rounding."""
Figures = tuple[float | None, ...]
"""Values of a metric, the worst of which counts; None where there should be one and none is known."""


def read_budgets(case: Case) -> tuple[Limit, ...]:
    """Read all limits of a scenario, in its order.

    Raises
    ------
    InputError
        Where a budget asks a workload for what it does not have. Documents are held to this when they are read
        (:func:`planner.spec.catalog.resolve`), with file and line.

    """
    interactive = [work.name for work in case.scenario.workloads if work.promise.deadline is None]
    faults = [
        Fault(file="", line=None, field=f"budgets.{index}.{name}", value=value, problem=problem)
        for index, name, value, problem in misfits(case.scenario.budgets, interactive)
    ]
    if faults:
        raise InputError(faults)
    return tuple(limit for budget in case.scenario.budgets for limit in budget.limits())


def check_budgets(case: Case, cluster: ClusterUse, plans: Sequence[WorkloadPlan]) -> tuple[CheckItem, ...]:
    """Hold a plan against the budgets of its scenario.

    Without a workload a budget limits the total (nodes, accelerators, cost and power), else the worst of all workloads
    that have the metric. A figure that is not known misses its limit, and so do all figures of the cluster where a
    workload has no plan: a plan for some costs less than one for all.

    Raises
    ------
    InputError
        As :func:`read_budgets`.

    """
    whole = len(plans) == len(case.scenario.workloads)
    return tuple(_check(limit, _value(limit, cluster, plans, whole=whole)) for limit in read_budgets(case))


def _check(limit: Limit, value: float | None) -> CheckItem:
    margin, met = None, False
    if value is not None:
        room = value - limit.value if limit.lower else limit.value - value
        met = room >= -ROUNDING * limit.value
        # A limit of 0 has no relative distance; the absolute one has the right sign.
        margin = (max(room, 0.0) if met else room) / (limit.value or 1.0)
    return CheckItem(
        metric=limit.metric,
        workload=limit.workload,
        severity=limit.severity,
        min=limit.value if limit.lower else None,
        max=None if limit.lower else limit.value,
        value=value,
        margin=margin,
        met=met,
    )


def _value(limit: Limit, cluster: ClusterUse, plans: Sequence[WorkloadPlan], *, whole: bool) -> float | None:
    """Return the figure that a limit is held against."""
    if limit.workload is not None:
        figures = [_figures(limit.metric, plan, plans) for plan in plans if plan.name == limit.workload]
        return _worst([value for some in figures for value in some], lower=limit.lower)
    if not whole:
        return None
    totals: dict[Metric, float | None] = {
        "nodes": float(cluster.nodes_used),
        "accelerators": float(cluster.accelerators_used),
        "cost_per_hour": cluster.cost_per_hour,
        "power": cluster.power_watts,
    }
    if limit.metric in totals:
        return totals[limit.metric]
    return _worst([value for plan in plans for value in _figures(limit.metric, plan, plans)], lower=limit.lower)


def _worst(figures: Sequence[float | None], *, lower: bool) -> float | None:
    """Return the figure nearest to the wrong side of a limit; None where one is not known, or there is none."""
    known = [value for value in figures if value is not None]
    if not known or len(known) < len(figures):
        return None
    return min(known) if lower else max(known)


def _figures(metric: Metric, plan: WorkloadPlan, plans: Sequence[WorkloadPlan]) -> Figures:
    """Values of a metric for one workload; none where its kind of promise does not have it."""
    if metric.startswith(("ttft", "tpot")):
        latency = plan.predicted.ttft if metric.startswith("ttft") else plan.predicted.tpot
        if latency is None:
            return ()
        level = metric[-3:]
        return ({"p50": latency.p50, "p90": latency.p90, "p95": latency.p95, "p99": latency.p99}[level],)
    if metric in {"goodput_share", "headroom", "availability", "load"}:
        return _of_promise(metric, plan, plans) if plan.predicted.deadline is None else ()
    return _of_pools(metric, plan)


def _of_promise(metric: Metric, plan: WorkloadPlan, plans: Sequence[WorkloadPlan]) -> Figures:
    if metric == "goodput_share":
        return (plan.predicted.goodput_share,)
    if metric == "headroom":
        return (_headroom(plan, plans),)
    if metric == "availability":
        return (plan.failure.availability,)
    return tuple(pool.load for pool in plan.pools)


def _of_pools(metric: Metric, plan: WorkloadPlan) -> Figures:
    if metric == "nodes":
        return (sum(pool.nodes for pool in plan.pools),)
    if metric == "accelerators":
        return (float(sum(pool.accelerators for pool in plan.pools)),)
    if metric == "utilisation":
        return tuple(pool.utilisation for pool in plan.pools)
    if metric == "memory_margin":
        return tuple(pool.memory.kv / pool.memory.capacity for pool in plan.pools)
    costs: dict[Metric, float | None] = {
        "cost_per_hour": plan.cost.per_hour,
        "cost_per_million_output_tokens": plan.cost.per_million_output_tokens,
        "cost_per_successful_task": plan.cost.per_successful_task,
    }
    return (costs[metric],)


def _headroom(plan: WorkloadPlan, plans: Sequence[WorkloadPlan]) -> float | None:
    """By how much the rate may grow, relative to what is offered: until the promise breaks, or until saturation.

    The signal is a rate of the whole pool, so it is held against what all its interactive workloads offer.
    """
    sharing = {plan.name, *(name for pool in plan.pools for name in pool.shared_with)}
    offered = sum(one.predicted.offered_rps for one in plans if one.name in sharing and one.predicted.deadline is None)
    breaks = [signal.threshold for signal in plan.revisit_when if signal.unit == "req/s"]
    if breaks and offered > 0.0:
        return min(breaks) / offered - 1.0
    load = max((pool.load for pool in plan.pools), default=0.0)
    return 1.0 / load - 1.0 if load > 0.0 else None

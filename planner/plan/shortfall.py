"""Why there is no plan: what binds for each workload, and the nearest change that would free it."""

import numpy as np

from planner.engine.reasons import Reason
from planner.fleet.goodput import idle, workload_bins
from planner.fleet.pools import rows_of
from planner.numeric import Floats
from planner.plan.answer import Change, Infeasible
from planner.plan.offers import infeasible_reason
from planner.plan.search import Search
from planner.plan.subjects import Member, subject
from planner.replica.candidates import Replicas, evaluate
from planner.spec.catalog import Case


def _quantile(base: Floats, share: Floats, level: float) -> Floats:
    """Quantile of each row's bins, (n,)."""
    order = np.argsort(base, axis=1)
    reached = np.cumsum(share[order], axis=1)
    place = np.argmax(reached + 1e-9 >= level, axis=1)
    return np.take_along_axis(base, order, axis=1)[np.arange(len(base)), place]


def _too_slow(replicas: Replicas, member: Member, reason: Reason) -> Infeasible:
    """TTFT or TPOT that even an idle replica misses: the best there is, and the promise that it would keep."""
    alive = np.flatnonzero((replicas.rejected & ~int(Reason.DOMINATED)) == 0)
    rows = rows_of(replicas, alive)
    state = idle(rows)
    share, part, _ = workload_bins(rows.traffic, 0)
    base, step = state.base[:, part], state.step
    if reason is Reason.TTFT:
        value, limit, name = float(_quantile(base, share, member.numbers.share).min()), member.numbers.ttft or 0.0, "ttft"
        kept = float((np.where(base <= limit, 1.0, 0.0) @ share).max())
    else:
        value, limit, name, kept = float(step.min()), member.numbers.tpot or 0.0, "tpot", 0.0
    field = f"workloads.{member.spec.name}.promise"
    nearest = [Change(field=f"{field}.{name}", from_=limit, to=value * 1.01, unit="s")]
    if kept > 0.0:
        nearest.append(Change(field=f"{field}.share", from_=member.numbers.share, to=kept, unit=""))
    return Infeasible(
        workload=member.spec.name, binding=str(reason.name).lower(), value=value, limit=limit, nearest=tuple(nearest)
    )


def without_offer(case: Case, found: Search, member: Member) -> Infeasible:
    """Say what binds for a workload that no candidate can serve."""
    name = member.spec.name
    reason = infeasible_reason(found.by_group[(name,)].rejected)
    if member.interactive and reason in {Reason.TTFT, Reason.TPOT}:
        stock = case.scenario.cluster.inventory[0]
        return _too_slow(evaluate(subject(case, stock, [member]), "mixed"), member, reason)
    stock = case.scenario.cluster.inventory[0]
    nodes = stock.nodes
    nearest: tuple[Change, ...] = (
        Change(field=f"cluster.inventory.{stock.hardware}.nodes", from_=float(nodes), to=_nodes_for(case, member), unit=""),
    )
    if reason in {Reason.SHARE, Reason.LINK_RATE} and nearest[0].to is None:
        nearest = (Change(field=f"workloads.{name}.promise.share", from_=member.numbers.share, to=0.9, unit=""),)
    if nearest[0].to is None:
        nearest = ()
    return Infeasible(workload=name, binding=str(reason.name).lower(), value=None, limit=None, nearest=nearest)


def _nodes_for(case: Case, member: Member) -> float | None:
    """Nodes of the first inventory with which the workload alone has a plan, by doubling; None up to 64 times as many."""
    from planner.plan.search import search  # noqa: PLC0415 - search again on a larger cluster

    cluster = case.scenario.cluster
    first = cluster.inventory[0]
    for factor in (2, 4, 8, 16, 32, 64):
        larger = first.model_copy(update={"nodes": first.nodes * factor})
        inventory = (larger, *cluster.inventory[1:])
        scenario = case.scenario.model_copy(
            update={"cluster": cluster.model_copy(update={"inventory": inventory}), "workloads": (member.spec,)}
        )
        other = Case(scenario, case.models, case.hardware, case.engine, case.behaviour, case.efficiencies)
        offers = search(other).offers
        if offers:
            per_node = case.hardware[first.hardware].node.accelerators
            return float(-(-min(offer.accelerators for offer in offers) // per_node))
    return None

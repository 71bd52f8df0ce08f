"""Why a workload is served as it is: where its milliseconds and bytes go, and what lies next to the choice."""

import numpy as np

from planner import __version__
from planner.errors import InputError
from planner.fleet.goodput import CENTRE, states, tpot_mean, workload_bins
from planner.fleet.percentiles import Stage, joint
from planner.plan.anatomy import explained_pool, loads
from planner.plan.answer import Decision
from planner.plan.assumptions import assumptions
from planner.plan.basis import efficiencies
from planner.plan.explanation import Basis, Explanation, TtftParts, Variant
from planner.plan.neighbours import Neighbour, cheapest, neighbours
from planner.plan.night import free_rate
from planner.plan.offers import Offer, PoolChoice
from planner.plan.options import Choice, Shortfall
from planner.plan.predict import stage
from planner.plan.recommend import choose
from planner.plan.search import Search, stocks
from planner.plan.subjects import Group, Member, subject
from planner.replica.candidates import bench, judge
from planner.spec.catalog import Case
from planner.spec.complaints import did_you_mean


def explain(case: Case, workload: str) -> Explanation:
    """Explain the plan of one workload: the choice of ``recommend`` at least cost, taken apart, and its neighbours.

    Replicas, accelerators and costs are without spares, so that plans compare; of a pool that workloads share, they are
    of the whole pool. Where the cluster has no plan, the workload's own plan with the fewest accelerators is explained.

    Raises
    ------
    InputError
        Where the scenario has no such workload.

    """
    known = [work.name for work in case.scenario.workloads]
    if workload not in known:
        problem = f"there is no workload {workload!r} in {case.scenario.name}; {did_you_mean(workload, known)}"
        raise InputError.of(problem, value=workload)
    found, choice = choose(case)
    member = next(one for one in found.members if one.spec.name == workload)
    offer = _chosen(found, choice, member, case.scenario.reserve.nodes)
    if offer is None:
        reason = found.by_group[(workload,)].binding
        nothing = Offer(Group((member,)), case.scenario.cluster.inventory[0].hardware, "together", ())
        chosen = Neighbour("chosen", nothing, (str(reason.name).lower(),), sized=False)
    else:
        chosen = Neighbour("chosen", offer)
    beside = neighbours(case, found, offer, member) if offer else ()
    rest = (
        Basis(name=item.name, value=item.value, unit=item.unit, basis="assumed", source=item.source)
        for item in assumptions(case, ())
    )
    return Explanation(
        schema_version="1",
        planner_version=__version__,
        scenario=case.scenario.name,
        workload=workload,
        model=member.spec.model,
        chosen=_variant(case, chosen, member),
        neighbours=tuple(_variant(case, one, member) for one in beside),
        assumptions=(*efficiencies(case, chosen.offer), *rest),
    )


def _chosen(found: Search, choice: Choice | Shortfall | None, member: Member, reserve: int) -> Offer | None:
    """Return the chosen offer of a workload; where nothing was chosen, its own with the fewest accelerators."""
    name = member.spec.name
    taken = [found.offers[index] for index in choice.options] if isinstance(choice, Choice) else []
    for offer in taken:
        if name in offer.group.names:
            return offer
    able = [offer for offer in found.offers if name in offer.group.names]
    own = [offer for offer in able if len(offer.group.members) == 1]
    return cheapest(own or able, reserve)


def _variant(case: Case, of: Neighbour, member: Member) -> Variant:
    """Evaluate a plan for one workload."""
    offer, out = of.offer, bool(of.rejected)
    price = next(one.price for one in stocks(case) if one.hardware == offer.hardware)
    decision: Decision = "split" if offer.decision == "split" else "together"
    views = [_view(case, offer, pool, member) for pool in offer.pools]
    timed = member.interactive and bool(views) and all(loads(pool) for pool in offer.pools)
    ttft, tpot, share = _latencies(offer, member) if timed and of.sized else (None, None, None)
    accelerators = None if out else offer.accelerators
    return Variant(
        change=of.change,
        decision=decision,
        pools=tuple(explained_pool(pool, batch, case.engine.name, sized=of.sized) for pool, batch in views),
        ttft=ttft,
        tpot=tpot,
        goodput_share=share,
        accelerators=accelerators,
        cost_per_hour=None if accelerators is None else accelerators * price,
        rejected=of.rejected,
    )


def _view(case: Case, offer: Offer, pool: PoolChoice, member: Member) -> tuple[PoolChoice, float]:
    """Pool as the workload meets it, and the sequences that one replica decodes then; 0 in a prefill pool.

    Deadline work meets a shared pool in the hours in which a replica is free: with its own contexts, at its own batch.
    """
    of, i = pool.replicas, pool.index
    limit = max(float(of.operating.batch_limit[i]), 1.0)
    if of.role == "prefill":
        return pool, 0.0
    if not offer.group.interactive:
        return pool, limit
    rate = of.subject.traffic.peak_rate / pool.count
    if not member.interactive and loads(pool):
        stock = next(one for one in case.scenario.cluster.inventory if one.hardware == offer.hardware)
        work = subject(case, stock, [member])
        rate = free_rate(pool, work)
        row, first = of.row[[i]], np.zeros(1, np.int64)
        rows = first, of.budget[[i]], of.limit[[i]]
        of = judge(bench(work, of.machine.layouts.rows(row), first), "mixed", rows)
        pool, i = PoolChoice(of, 0, pool.count, 0), 0
        limit = max(float(of.operating.batch_limit[0]), 1.0)
    batch = float(of.operating.at(np.full(len(of), rate))[i])
    return pool, min(max(batch, 1.0), limit)


def _latencies(offer: Offer, member: Member) -> tuple[TtftParts, float | None, float]:
    """Mean TTFT in parts, mean TPOT, and the share within the promise, all in the busiest hour."""
    stages = tuple(stage(pool) for pool in offer.pools)
    index = [work.name for work in stages[0].rows.traffic.workloads].index(member.spec.name)
    first, last = (_steady(one) for one in (stages[0], stages[-1]))
    seen, state = states(stages[-1].rows, np.array([stages[-1].count]))
    _, _, output = workload_bins(stages[-1].rows.traffic, index)
    tpot = float(seen @ tpot_mean(state, output)) if last else None
    return _ttft(stages[0], index, steady=first), tpot, float(joint(stages)[index])


def _steady(of: Stage) -> bool:
    """Whether the load is low enough for a queue to settle."""
    return bool(of.rows.traffic.peak_rate < CENTRE * of.count * of.rows.op.saturation[0])


def _ttft(of: Stage, index: int, *, steady: bool) -> TtftParts:
    """Parts of the mean of :func:`planner.fleet.percentiles.ttft`, over the states of the moving rate."""
    share, part, _ = workload_bins(of.rows.traffic, index)
    seen, state = states(of.rows, np.array([of.count]))
    residual = float(seen @ state.residual)
    return TtftParts(
        wait=float(seen @ state.wait) if steady else None,
        step_residual=residual,
        prefill=float(seen @ (state.base[:, part] @ share)) - residual,
        transfer=float(of.rows.transfer[0, part] @ share),
    )

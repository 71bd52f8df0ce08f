"""Why a plan is as it is, in one line each."""

from collections.abc import Sequence

from planner.plan.answer import Change, Infeasible
from planner.plan.describe import Service
from planner.plan.offers import Offer
from planner.plan.options import Shortfall, Stock
from planner.plan.search import Search
from planner.plan.subjects import Member
from planner.plan.today import Today


def _fewest(offers: Sequence[Offer], decision: str, reserve: int) -> Offer | None:
    """Return the offer of a decision with the fewest accelerators, spares included, the first of equals."""
    of = [offer for offer in offers if offer.decision == decision]
    return min(of, key=lambda offer: offer.spared(reserve), default=None)


def _pools(offer: Offer) -> str:
    return " + ".join(f"{pool.count} x {pool.layout}" for pool in offer.pools)


def reasons(found: Search, service: Service, member: Member, now: Sequence[Today], reserve: int) -> tuple[str, ...]:
    """Reasons for the plan of one workload, the weightiest first."""
    offer, name = service.offer, member.spec.name
    out = []
    rivals = found.of(tuple(one.spec.name for one in offer.group.interactive) or (name,))
    if offer.group.interactive and offer.group.deadline:
        run = offer.group.deadline[0].spec.name
        own = _fewest(found.of((run,)), "together", reserve)
        extra = offer.pools[0].count - offer.interactive_count
        more = f"{extra} more replicas" if extra else "no further replica"
        instead = f", instead of {own.accelerators} accelerators of its own" if own else ""
        out.append(f"{run} runs in the hours that the others leave: {more}{instead}")
    spares = " and spares" if reserve else ""
    if offer.group.interactive:
        other_way = "split" if offer.decision == "together" else "together"
        other = _fewest(rivals, other_way, reserve)
        rival = f"no plan {other_way} keeps the promise"
        if other is not None:
            rival = f"{other_way} takes {other.spared(reserve)} ({_pools(other)}{spares})"
        taken = sum(pool.accelerators for pool in service.pools)
        out.append(f"{_pools(offer)}{spares} take {taken} accelerator{'' if taken == 1 else 's'}; {rival}")
    elif not out:
        out.append(f"{_pools(offer)} finish in time at their largest batch")
    out += [pool.line(name) for pool in now if name in pool.workloads]
    return tuple(out)


def nodes_short(short: Shortfall, stock: Sequence[Stock]) -> list[Infeasible]:
    """Say how many nodes are missing, and what each workload needs at least."""
    have = {one.hardware: one.nodes for one in stock}
    nearest = tuple(
        Change(
            field=f"cluster.inventory.{hardware}.nodes",
            from_=float(have[hardware]),
            to=float(have[hardware] + more),
            unit="",
        )
        for hardware, more in short.nodes_short.items()
        if more
    )
    needed = None if short.nodes_needed is None else float(short.nodes_needed)
    limit = float(sum(have.values()))
    out = [Infeasible(workload=None, binding="nodes", value=needed, limit=limit, nearest=nearest)]
    for name, nodes in short.least.items():
        out.append(Infeasible(workload=name, binding="nodes", value=float(nodes), limit=limit, nearest=()))
    return out

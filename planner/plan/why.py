"""Why a plan is as it is, in one line each."""

from collections.abc import Sequence

from planner.plan.answer import Change, Infeasible
from planner.plan.describe import Service
from planner.plan.offers import Offer
from planner.plan.options import Shortfall, Stock
from planner.plan.search import Search
from planner.plan.subjects import Member
from planner.plan.today import Today


def _fewest(offers: Sequence[Offer], decision: str) -> Offer | None:
    """Return the offer of a decision with the fewest accelerators, the first of equals."""
    of = [offer for offer in offers if offer.decision == decision]
    return min(of, key=lambda offer: offer.accelerators, default=None)


def reasons(found: Search, service: Service, member: Member, now: Sequence[Today]) -> tuple[str, ...]:
    """Reasons for the plan of one workload, the weightiest first."""
    offer, name = service.offer, member.spec.name
    out = []
    needed = " + ".join(f"{pool.choice.count} x {pool.choice.layout}" for pool in service.pools)
    rivals = found.of(tuple(one.spec.name for one in offer.group.interactive) or (name,))
    if offer.group.interactive and offer.group.deadline:
        run = offer.group.deadline[0].spec.name
        own = _fewest(found.of((run,)), "together")
        extra = offer.pools[0].count - offer.interactive_count
        more = f"{extra} more replicas" if extra else "no further replica"
        instead = f" instead of {own.accelerators} accelerators of its own" if own else ""
        out.append(f"{run} runs in the hours that the others leave: {more}{instead}")
    if offer.group.interactive:
        other = _fewest(rivals, "split" if offer.decision == "together" else "together")
        rival = "no {} plan keeps the promise".format("split" if offer.decision == "together" else "shared")
        if other is not None:
            pools = " + ".join(f"{pool.count} x {pool.layout}" for pool in other.pools)
            rival = f"{'split' if other.decision == 'split' else 'together'} needs {other.accelerators} ({pools})"
        own_count = sum(pool.choice.accelerators for pool in service.pools)
        out.append(f"{needed} need {own_count} accelerators without spares; {rival}")
    elif not out:
        out.append(f"{needed} finish in time at their largest batch")
    out += [pool.line(name) for pool in now if name in pool.workloads]
    return tuple(out)


def nodes_short(short: Shortfall, stock: Sequence[Stock]) -> list[Infeasible]:
    """Say how many nodes are missing, and what each workload needs at least."""
    have = {one.hardware: one.nodes for one in stock}
    nearest = tuple(
        Change(field=f"cluster.inventory.{hardware}.nodes", from_=float(have[hardware]), to=float(have[hardware] + more), unit="")
        for hardware, more in short.nodes_short.items()
        if more
    )
    needed = None if short.nodes_needed is None else float(short.nodes_needed)
    limit = float(sum(have.values()))
    out = [Infeasible(workload=None, binding="nodes", value=needed, limit=limit, nearest=nearest)]
    for name, nodes in short.least.items():
        out.append(Infeasible(workload=name, binding="nodes", value=float(nodes), limit=limit, nearest=()))
    return out

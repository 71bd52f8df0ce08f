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
    spares = " and spares" if reserve and offer.group.interactive else ""
    taken = sum(pool.accelerators for pool in service.pools)
    chosen = f"{_pools(offer)}{spares} take {taken} accelerator{'' if taken == 1 else 's'}"
    if not offer.group.interactive:
        first = f"{chosen} and finish in time at their largest batch"
    elif offer.group.deadline:
        first = f"{chosen} and run {offer.group.deadline[0].spec.name} in the hours that the others leave; "
        first += _apart(found, offer, reserve)
    else:
        first = f"{chosen}; {_rival(found, offer, reserve)}"
    return (first, *(pool.line(name) for pool in now if name in pool.workloads))


def _rival(found: Search, offer: Offer, reserve: int) -> str:
    """Say what the other decision would take."""
    way = "split" if offer.decision == "together" else "together"
    other = _fewest(found.of(offer.group.names), way, reserve)
    if other is None:
        return f"no plan {way} keeps the promise"
    return f"{way} takes {_bound(reserve)}{other.spared(reserve)} ({_pools(other)}{' and spares' if reserve else ''})"


def _bound(reserve: int) -> str:
    """Say that a number with spares is the least: how many it takes depends on the nodes, and was not packed."""
    return "at least " if reserve else ""


def _apart(found: Search, offer: Offer, reserve: int) -> str:
    """Say what the interactive work and the run would take in pools of their own."""
    awake = tuple(member.spec.name for member in offer.group.interactive)
    alone = min(found.of(awake), key=lambda one: one.spared(reserve), default=None)
    run = _fewest(found.of(tuple(member.spec.name for member in offer.group.deadline)), "together", reserve)
    if alone is None or run is None:
        return "neither has a plan of its own"
    total = alone.spared(reserve) + run.accelerators
    return (
        f"apart they take {_bound(reserve)}{total} ({_pools(alone)}{' and spares' if reserve else ''}, {_pools(run)})"
    )


def nodes_short(short: Shortfall, stock: Sequence[Stock]) -> list[Infeasible]:
    """Say how many nodes are missing, and what each workload needs at least, each beside the nodes of the same kinds.

    Where all nodes together would do but those of a kind do not, the need is of the kinds to be added to.
    """
    have = {one.hardware: one.nodes for one in stock}
    lacking = {hardware: more for hardware, more in short.nodes_short.items() if more}
    nearest = tuple(
        Change(
            field=f"cluster.inventory.{hardware}.nodes",
            from_=float(have[hardware]),
            to=float(have[hardware] + more),
            unit="",
        )
        for hardware, more in lacking.items()
    )
    needed, limit = short.nodes_needed, sum(have.values())
    if needed is not None and needed <= limit and lacking:
        limit = sum(have[hardware] for hardware in lacking)
        needed = limit + sum(lacking.values())
    value = None if needed is None else float(needed)
    out = [Infeasible(workload=None, binding="nodes", value=value, limit=float(limit), nearest=nearest)]
    for name, nodes in short.least.items():
        kinds = short.by_kind.get(name) or {tuple(have): nodes}
        need, room = min(
            ((each, sum(have[one] for one in kind)) for kind, each in kinds.items()),
            key=lambda one: (max(one[0] - one[1], 0), one[0]),
        )
        out.append(Infeasible(workload=name, binding="nodes", value=float(need), limit=float(room), nearest=()))
    return out

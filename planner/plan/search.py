"""All offers for a case: every group of workloads on every kind of accelerator, together, split, or in the night."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from planner.engine.layouts import LARGEST
from planner.plan import night
from planner.plan.offers import Count, Offer, Room, split, together
from planner.plan.options import Need, Option, Stock, caps
from planner.plan.subjects import Group, Member, groups, members, subject
from planner.spec.catalog import Case
from planner.spec.hardware import HardwareCard
from planner.spec.scenario import Inventory

NODE_POWER = 1.5
"""Power of a node over that of its accelerators, where the card has none: fans, processors, network."""


@dataclass(slots=True)
class Search:
    """Offers, and what was tried on the way."""

    members: tuple[Member, ...]
    offers: list[Offer] = field(default_factory=list)
    """What the programme chooses among."""
    dearer: list[Offer] = field(default_factory=list)
    """Splits that save nothing against one pool (:func:`taken`): kept for comparison, never chosen."""
    count: Count = field(default_factory=Count)
    by_group: dict[tuple[str, ...], Count] = field(default_factory=dict)
    """Candidates of each group."""

    def add(self, whole: Sequence[Offer], parts: Sequence[Offer], site: "Site") -> None:
        """Add plans of one pool, and splits: for the programme where they save, or no plan of one pool fits."""
        least = min((taken(offer, site) for offer in whole), default=inf)
        pays = [least == inf or taken(offer, site) < least for offer in parts]
        self.offers += [*whole, *(offer for offer, saves in zip(parts, pays, strict=True) if saves)]
        self.dearer += [offer for offer, saves in zip(parts, pays, strict=True) if not saves]

    def of(self, names: tuple[str, ...]) -> list[Offer]:
        """All offers of one group, those that are only compared with included."""
        return [offer for offer in (*self.offers, *self.dearer) if offer.group.names == names]


def largest(case: Case, stock: Inventory) -> int:
    """Most accelerators of one replica that are tried on an inventory."""
    return min(LARGEST, stock.nodes * case.hardware[stock.hardware].node.accelerators)


@dataclass(frozen=True, slots=True)
class Site:
    """Nodes of one kind on which offers are compared."""

    nodes: int
    accelerators: int
    """Of one node."""
    reserve: int
    """Nodes that may be lost."""


def taken(offer: Offer, site: Site) -> float:
    """Accelerators that an offer takes with its true spares where it has the site to itself; infinite if too few.

    Where there are not nodes enough for one replica on each, a loss takes several, and there are as many more spares.
    Exact for one pool; of two it is the least, each spread as if the other were not there.
    """
    total = 0
    for pool in offer.pools:
        need = Need("", offer.hardware, pool.size, pool.count, bool(offer.group.interactive))
        ways = caps(need, site.accelerators, site.reserve)  # the fewest spares first
        cap = next((way for way in ways if way.least_nodes + way.whole_nodes <= site.nodes), None)
        if cap is None:
            return inf
        total += pool.size * (pool.count + cap.spares)
    return float(total) if total <= site.nodes * site.accelerators else inf


def search(case: Case) -> Search:
    """Evaluate all groups on all inventories; the order of offers is fixed and breaks ties."""
    found = Search(members(case))
    for group in groups(case, found.members):
        count = Count()
        for stock in case.scenario.cluster.inventory:
            accelerators = stock.nodes * case.hardware[stock.hardware].node.accelerators
            room = Room(accelerators, largest(case, stock), case.scenario.reserve.nodes)
            if not group.deadline:
                served = subject(case, stock, group.members)
                whole, parts = together(served, group, room, count), split(served, group, room, count)
                site = Site(stock.nodes, case.hardware[stock.hardware].node.accelerators, room.reserve)
                found.add(whole, parts, site)
            elif not group.interactive:
                served = subject(case, stock, group.members)
                found.offers += night.alone(served, group, room, count)
            elif len(group.deadline) == 1:
                _in_the_night(found, case, group, stock.hardware, accelerators)
        found.by_group[group.names] = count
        found.count.tried += count.tried
        found.count.rejected.update(count.rejected)
    return found


def _in_the_night(found: Search, case: Case, group: Group, hardware: str, accelerators: int) -> None:
    """Add offers in which deadline work runs in the hours that the interactive members leave."""
    stock = next(one for one in case.scenario.cluster.inventory if one.hardware == hardware)
    work = subject(case, stock, group.deadline)
    awake = tuple(member.spec.name for member in group.interactive)
    for offer in found.of(awake):
        if offer.hardware == hardware and offer.decision == "together":
            both = night.shared(offer, group, work, accelerators)
            if both is not None:
                found.offers.append(both)


def pool_key(offer: int, place: int) -> str:
    """Name of a pool in the programme: the pool at ``place`` of an offer."""
    return f"{offer}.{place}"


def options(found: Search) -> list[Option]:
    """Offers as options of the programme."""
    out = []
    for index, offer in enumerate(found.offers):
        spared = bool(offer.group.interactive)
        needs = tuple(
            Need(pool_key(index, place), offer.hardware, pool.size, pool.count, spared)
            for place, pool in enumerate(offer.pools)
        )
        out.append(Option(str(index), offer.group.names, offer.kind, needs))
    return out


def node_power(card: HardwareCard) -> float:
    """Power of one node [W]."""
    return card.node.power or NODE_POWER * card.tdp * card.node.accelerators


def stocks(case: Case) -> list[Stock]:
    """Inventories with their prices and power."""
    out = []
    for one in case.scenario.cluster.inventory:
        card = case.hardware[one.hardware]
        power = node_power(card) / card.node.accelerators
        out.append(Stock(one.hardware, one.nodes, card.node.accelerators, one.price or card.price.per_hour, power))
    return out

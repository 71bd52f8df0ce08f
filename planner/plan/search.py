"""All offers for a case: every group of workloads on every kind of accelerator, together, split, or in the night."""

from dataclasses import dataclass, field

from planner.engine.layouts import LARGEST
from planner.plan import night
from planner.plan.offers import Count, Offer, Room, split, together
from planner.plan.options import Need, Option, Stock
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
    """Splits that save nothing against one pool: kept for comparison. Topology is changed only where it pays."""
    count: Count = field(default_factory=Count)
    by_group: dict[tuple[str, ...], Count] = field(default_factory=dict)
    """Candidates of each group."""

    def of(self, names: tuple[str, ...]) -> list[Offer]:
        """All offers of one group, those that are only compared with included."""
        return [offer for offer in (*self.offers, *self.dearer) if offer.group.names == names]


def largest(case: Case, stock: Inventory) -> int:
    """Most accelerators of one replica that are tried on an inventory."""
    return min(LARGEST, stock.nodes * case.hardware[stock.hardware].node.accelerators)


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
                least = min((offer.spared(room.reserve) for offer in whole), default=accelerators + 1)
                saving = [offer for offer in parts if offer.spared(room.reserve) < least]
                found.offers += whole + saving
                found.dearer += [offer for offer in parts if offer.spared(room.reserve) >= least]
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

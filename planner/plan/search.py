"""All offers for a case: every group of workloads on every kind of accelerator, together, split, or in the night."""

from dataclasses import dataclass, field

from planner.engine.layouts import LARGEST
from planner.plan import night
from planner.plan.offers import Count, Offer, split, together
from planner.plan.options import Need, Option, Stock
from planner.plan.subjects import Group, Member, groups, members, subject
from planner.spec.catalog import Case
from planner.spec.hardware import HardwareCard

NODE_POWER = 1.5
"""Power of a node over that of its accelerators, where the card has none: fans, processors, network."""


@dataclass(slots=True)
class Search:
    """Offers, and what was tried on the way."""

    members: tuple[Member, ...]
    offers: list[Offer] = field(default_factory=list)
    count: Count = field(default_factory=Count)
    by_group: dict[tuple[str, ...], Count] = field(default_factory=dict)
    """Candidates of each group."""

    def of(self, names: tuple[str, ...]) -> list[Offer]:
        """Offers of one group."""
        return [offer for offer in self.offers if offer.group.names == names]


def search(case: Case) -> Search:
    """Evaluate all groups on all inventories; the order of offers is fixed and breaks ties."""
    found = Search(members(case))
    for group in groups(case, found.members):
        count = Count()
        for stock in case.scenario.cluster.inventory:
            accelerators = stock.nodes * case.hardware[stock.hardware].node.accelerators
            largest = min(LARGEST, accelerators)
            if not group.deadline:
                served = subject(case, stock, group.members)
                found.offers += together(served, group, accelerators, count, largest)
                found.offers += split(served, group, accelerators, count, largest)
            elif not group.interactive:
                served = subject(case, stock, group.members)
                found.offers += night.alone(served, group, accelerators, count, largest)
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
            Need(pool_key(index, place), offer.hardware, pool.size, pool.count, spared) for place, pool in enumerate(offer.pools)
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

"""What lies next to a chosen plan: the same plan with one thing changed, sized anew, or the reasons why it is out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.engine.layouts import LARGEST, Layouts, legality
from planner.engine.reasons import Reason
from planner.fleet.deadline import dedicated
from planner.fleet.percentiles import joint
from planner.fleet.pools import Ask, size
from planner.plan.night import run_end, shared
from planner.plan.offers import LINKS, Count, Offer, PoolChoice, Room, split, together
from planner.plan.predict import stage
from planner.plan.search import Search
from planner.plan.subjects import Group, Member, subject
from planner.replica.candidates import bench, judge
from planner.spec.catalog import Case

FACTORS = ((0.5, "halved"), (2.0, "doubled"))


@dataclass(frozen=True, slots=True, eq=False)
class Neighbour:
    """A plan beside the chosen one."""

    change: str
    offer: Offer
    """Its pools; one that no number of replicas makes a plan has as many as the inventory holds."""
    rejected: tuple[str, ...] = ()
    """Names of the reasons why it is no plan."""
    sized: bool = True
    """Whether the pools have the replicas that they would run."""


def names(rejected: int) -> tuple[str, ...]:
    """Names of the reasons in a bit mask, in their order.

    >>> names(int(Reason.HEADS | Reason.MEMORY))
    ('heads', 'memory')
    """
    return tuple(str(reason.name).lower() for reason in Reason if rejected & int(reason))


def accelerators_of(case: Case, hardware: str) -> int:
    """Accelerators of one kind in the inventory."""
    nodes = next(one.nodes for one in case.scenario.cluster.inventory if one.hardware == hardware)
    return nodes * case.hardware[hardware].node.accelerators


def neighbours(case: Case, found: Search, offer: Offer, member: Member) -> Iterator[Neighbour]:
    """Yield the neighbours of an offer, in a fixed order: TP, the other decision, token budget, one replica fewer."""
    for place, pool in enumerate(offer.pools):
        role = f"{pool.replicas.role} " if len(offer.pools) > 1 else ""
        for factor, word in FACTORS:
            layout = _with_tp(pool, factor)
            if layout is not None:
                yield _resized(case, offer, place, f"{role}TP {word}", (layout, _budget(pool)))
    yield from _otherwise(case, found, offer, member)
    for place, pool in enumerate(offer.pools):
        role = f"{pool.replicas.role} " if len(offer.pools) > 1 else ""
        if pool.replicas.role != "decode":
            for factor, word in FACTORS:
                change = f"{role}token budget {word}"
                yield _resized(case, offer, place, change, (_layout(pool), max(int(_budget(pool) * factor), 1)))
    for place, pool in enumerate(offer.pools):
        role = f"{pool.replicas.role} " if len(offer.pools) > 1 else ""
        if pool.count > 1:
            yield _one_fewer(case, offer, place, f"one {role}replica fewer")


def _layout(pool: PoolChoice) -> tuple[int, int, int, int]:
    table, row = pool.replicas.machine.layouts, pool.replicas.row[pool.index]
    return int(table.tp[row]), int(table.pp[row]), int(table.dp[row]), int(table.ep[row])


def _budget(pool: PoolChoice) -> int:
    return int(pool.replicas.budget[pool.index])


def _with_tp(pool: PoolChoice, factor: float) -> tuple[int, int, int, int] | None:
    """Layout with other TP; experts that were spread stay spread. None below 1."""
    tp, pp, dp, ep = _layout(pool)
    other = int(tp * factor)
    if other < 1 or other * pp * dp > LARGEST:
        return None
    return other, pp, dp, (max(int(ep * factor), 1) if ep > 1 else 1)


def _links(pool: PoolChoice) -> int:
    """Links that move the KV of one request to or from a pool."""
    tp, pp, _, _ = _layout(pool)
    return min(tp * pp, LINKS)


def _part(offer: Offer, place: int) -> float:
    """Share of the allowed misses that the other pools of an offer leave to the one at ``place``."""
    rest = tuple(stage(pool) for other, pool in enumerate(offer.pools) if other != place)
    if not rest:
        return 1.0
    kept = joint(rest)
    want = np.array([work.share for work in rest[0].rows.traffic.workloads])
    left = (1.0 - want / np.maximum(kept, 1e-12)) / (1.0 - want)
    return float(np.clip(left.min(), 1e-6, 1.0))


def _resized(case: Case, offer: Offer, place: int, change: str, of: tuple[tuple[int, int, int, int], int]) -> Neighbour:
    """Judge one pool of an offer with another (layout, token budget), and size it anew beside the others."""
    layout, budget = of
    old = offer.pools[place]
    served, role = old.replicas.subject, old.replicas.role
    table = Layouts.of([layout])
    rows = np.zeros(1, np.int64), np.array([budget]), old.replicas.limit[[old.index]]
    legal = legality(served.model, served.checkpoint, table, served.chip, served.engine.parallelism)
    one = judge(bench(served, table, legal), role, rows)
    pool = PoolChoice(one, 0, 1, old.width)
    whole = accelerators_of(case, offer.hardware)
    others = [other for index, other in enumerate(offer.pools) if index != place]
    room = max(whole - sum(other.accelerators for other in others), 0)
    if role == "prefill":
        pool = replace(pool, width=_links(pool))
    count, rejected = _count(offer, place, pool, room)
    if len(offer.pools) > 1 and not rejected:
        sides = [pool if index == place else other for index, other in enumerate(offer.pools)]
        if _links(sides[1]) < sides[0].width:
            count, rejected = None, int(Reason.LINK_RATE)
    if count is not None and offer.group.interactive and offer.group.deadline:
        both = _with_run(case, offer, replace(pool, count=count), whole)
        count, rejected = (both, 0) if both else (None, int(Reason.NODES))
    pool = replace(pool, count=count or max(room // pool.size, 1))
    pools = tuple(pool if index == place else other for index, other in enumerate(offer.pools))
    changed = replace(offer, pools=pools, interactive_count=min(offer.interactive_count, pool.count))
    return Neighbour(change, changed, names(rejected), sized=count is not None)


def _count(offer: Offer, place: int, pool: PoolChoice, room: int) -> tuple[int | None, int]:
    """Least replicas that keep a pool's part of the promise on ``room`` accelerators, or the reasons against it."""
    one, most = pool.replicas, room // pool.size
    if offer.group.interactive:
        width = pool.width if one.role == "prefill" else 0
        ask = Ask(np.zeros(1, np.int64), np.array([most]), np.array([_part(offer, place)]), np.array([width]))
        _, count, rejected = size(one, ask)
        return (int(count[0]) if len(count) else None), int(rejected[0])
    if int(one.rejected[0]):
        return None, int(one.rejected[0])
    run = offer.group.deadline[0].numbers
    documents, deadline = float(run.documents or 0), float(run.deadline or 0.0)
    need = int(dedicated(one.operating, one.subject.traffic, documents, deadline, np.array([most]))[0])
    return (need, 0) if need <= most else (None, int(Reason.NODES))


def _with_run(case: Case, offer: Offer, pool: PoolChoice, accelerators: int) -> int | None:
    """Replicas with which a pool also finishes the deadline work of its group."""
    stock = next(one for one in case.scenario.cluster.inventory if one.hardware == offer.hardware)
    awake = Offer(Group(offer.group.interactive), offer.hardware, offer.decision, (pool,))
    both = shared(awake, offer.group, subject(case, stock, offer.group.deadline), accelerators)
    return both.pools[0].count if both else None


def _one_fewer(case: Case, offer: Offer, place: int, change: str) -> Neighbour:
    """Take one replica from a pool; the plan is out where a promise of its group breaks."""
    fewer = replace(offer.pools[place], count=offer.pools[place].count - 1)
    pools = tuple(fewer if index == place else pool for index, pool in enumerate(offer.pools))
    changed = replace(offer, pools=pools, interactive_count=min(offer.interactive_count, fewer.count))
    broken = False
    if offer.group.interactive:
        kept = joint(tuple(stage(pool) for pool in pools))
        want = [member.numbers.share for member in offer.group.interactive]
        broken = bool((kept < np.array(want)).any())
    for member in offer.group.deadline:
        stock = next(one for one in case.scenario.cluster.inventory if one.hardware == offer.hardware)
        end = run_end(changed, member, subject(case, stock, [member]))
        broken = broken or end > float(member.numbers.deadline or 0.0)
    return Neighbour(change, changed, names(int(Reason.SHARE)) if broken else ())


def _otherwise(case: Case, found: Search, offer: Offer, member: Member) -> Iterator[Neighbour]:
    """Yield the best plan of the other decision, and of a pool of its own for a workload that shares one."""
    if member.interactive:
        group = Group(offer.group.interactive)
        decision = "split" if offer.decision == "together" else "together"
        change = "prefill and decode apart" if decision == "split" else "prefill and decode together"
        if offer.group.deadline:
            change += f", {' and '.join(run.spec.name for run in offer.group.deadline)} not beside"
        rivals = [rival for rival in found.of(group.names) if rival.decision == decision]
        best = cheapest(rivals, case.scenario.reserve.nodes)
        yield Neighbour(change, best) if best else _no_offer(case, offer, group, decision, change)
    if len(offer.group.members) > 1:
        alone = cheapest(found.of((member.spec.name,)), case.scenario.reserve.nodes)
        if alone:
            yield Neighbour("in pools of its own", alone)


def cheapest(offers: Sequence[Offer], reserve: int) -> Offer | None:
    """Return the offer with the fewest accelerators, spares included; the first of equals."""
    return min(offers, key=lambda offer: offer.spared(reserve), default=None)


def _no_offer(case: Case, offer: Offer, group: Group, decision: str, change: str) -> Neighbour:
    """Say why a decision has no offer: what struck the candidates that came furthest."""
    count = Count()
    accelerators = accelerators_of(case, offer.hardware)
    stock = next(one for one in case.scenario.cluster.inventory if one.hardware == offer.hardware)
    kind = split if decision == "split" else together
    room = Room(accelerators, min(LARGEST, accelerators), case.scenario.reserve.nodes)
    kind(subject(case, stock, group.members), group, room, count)
    nothing = Offer(group, offer.hardware, decision, ())
    reason = count.binding
    return Neighbour(change, nothing, (str(reason.name).lower(),), sized=False)

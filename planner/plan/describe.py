"""From a chosen offer to the parts of the public answer: pools, KV verdict, failures, cost, reasons."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.fleet.cost import divide, per_successful_task
from planner.fleet.failures import availability
from planner.fleet.goodput import CENTRE
from planner.fleet.percentiles import joint
from planner.fleet.pools import kv_bytes_per_token
from planner.plan.answer import Cost, Failure, Kv, Layout, Memory, NodeLost, Pool, Signal
from planner.plan.offers import Offer, PoolChoice
from planner.plan.predict import Point, point, stage
from planner.plan.subjects import Member
from planner.replica.passes import BATCHES
from planner.spec.catalog import Case

REACH = 16.0
"""Largest multiple of the rates that is tried."""
CONGESTION = 2.0
"""Moving must win by so much: measured transfers fall short of the link (Mooncake, FAST 2025, figure 13)."""


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A pool with its spares and its place."""

    id: str
    choice: PoolChoice
    spares: int
    price: float
    """Of one accelerator [USD/h]."""
    node_accelerators: int

    @property
    def replicas(self) -> int:
        """All that run."""
        return self.choice.count + self.spares

    @property
    def accelerators(self) -> int:
        """Accelerators of all replicas."""
        return self.replicas * self.choice.size

    @property
    def cost(self) -> float:
        """Cost of all replicas [USD/h]."""
        return self.accelerators * self.price


@dataclass(frozen=True, slots=True, eq=False)
class Service:
    """A chosen offer, placed."""

    offer: Offer
    pools: tuple[Placed, ...]
    held: tuple[tuple[int, ...], ...]
    """Replicas of each pool that are lost with a node, for every node that differs."""

    @property
    def cost(self) -> float:
        """Cost of all pools [USD/h]."""
        return sum(pool.cost for pool in self.pools)


def layout_of(choice: PoolChoice) -> Layout:
    """Degrees of parallelism of a pool's replicas."""
    table, row = choice.replicas.machine.layouts, choice.replicas.row[choice.index]
    tp, pp, dp, ep = (int(axis[row]) for axis in (table.tp, table.pp, table.dp, table.ep))
    return Layout(tp=tp, pp=pp, ep=ep, dp=dp, ffn="1d")


def memory_of(choice: PoolChoice) -> Memory:
    """Memory of one accelerator; adapters are counted with the weights."""
    held, row = choice.replicas.memory, choice.index
    weights, adapters = float(held.weights[row]), float(held.adapters[row])
    return Memory(
        weights=weights + adapters,
        kv=float(held.kv[row]),
        activations=float(held.activations[row]),
        reserve=float(held.reserve[row]),
        capacity=float(held.capacity[row]),
    )


def pool_part(placed: Placed, service: Service, name: str, engine: str) -> Pool:
    """Describe one pool under the workload ``name``."""
    choice = placed.choice
    of, row = choice.replicas, choice.index
    where: Point = point(choice, deadline=not service.offer.group.interactive)
    return Pool(
        id=placed.id,
        shared_with=tuple(other for other in service.offer.group.names if other != name),
        role=of.role,
        hardware=service.offer.hardware,
        engine=engine,
        weights_dtype=of.subject.chip.weights,
        kv_dtype=of.subject.chip.kv,
        layout=layout_of(choice),
        replicas=placed.replicas,
        spare_replicas=placed.spares,
        accelerators_per_replica=choice.size,
        accelerators=placed.accelerators,
        nodes=placed.accelerators / placed.node_accelerators,
        max_batch=None if of.role == "prefill" else int(of.limit[row]),
        token_budget=None if of.role == "decode" else int(of.budget[row]),
        utilisation=where.busy,
        load=where.load,
        answerable_below_rps=CENTRE * where.saturation,
        memory=memory_of(choice),
    )


def kv_part(service: Service, member: Member) -> Kv:
    """Judge whether moving KV beats computing it again: B* = KV bytes per token / prefill seconds per token.

    B* and its use: Qin et al., *Mooncake*, FAST 2025, equation 2. The link is that of one replica's accelerators to
    another node. Moving must win by :data:`CONGESTION`. Without a split and without reuse nothing is moved.
    """
    choice = service.pools[0].choice
    of, row = choice.replicas, choice.index
    chip = of.subject.chip
    each = kv_bytes_per_token(of)
    table = of.machine.layouts
    links = int(table.tp[of.row[row]] * table.pp[of.row[row]])
    link = links * chip.scale_out.bandwidth * chip.scale_out_link
    if of.work is None or each <= 0.0:
        return Kv(decision="none", break_even_bandwidth=None, link_bandwidth=link, bytes_per_token=each)
    traffic = of.subject.traffic
    fresh = max(float(traffic.input.share @ (traffic.input.value - traffic.cached)), 1.0)
    pair = of.pair[row]
    # All lanes of a replica compute and share its links.
    seconds = float(of.work.added_mean[pair, 0] / of.work.lanes[pair]) / fresh
    even = each / seconds
    moves = service.offer.decision == "split" or member.numbers.hit_rate > 0.0
    decision = "none" if not moves else ("move" if link > CONGESTION * even or len(service.pools) > 1 else "recompute")
    return Kv(decision=decision, break_even_bandwidth=even, link_bandwidth=link, bytes_per_token=each)


def failure_part(case: Case, service: Service, member: Member, nodes: int) -> Failure:
    """Describe the loss of the node that hurts most, and how often more nodes are down than the reserve covers."""
    reserve = case.scenario.reserve
    deadline = not service.offer.group.interactive
    batches = [point(pool.choice, deadline=deadline).batch for pool in service.pools]
    lost = max(sum(count * batch for count, batch in zip(held, batches, strict=True)) for held in service.held)
    rests = [
        tuple(pool.replicas - count for pool, count in zip(service.pools, held, strict=True)) for held in service.held
    ]
    share = min(_share_left(service, member, rest) for rest in rests) if member.interactive else None
    capacity = min(left / pool.replicas for rest in rests for left, pool in zip(rest, service.pools, strict=True))
    known = reserve.mtbf is not None and reserve.mttr is not None
    up = (
        availability(nodes, reserve.nodes, reserve.mtbf or 1.0, reserve.mttr or 1.0)
        if known and member.interactive
        else None
    )
    return Failure(
        one_node_lost=NodeLost(goodput_share=share, capacity_share=capacity, requests_lost=lost), availability=up
    )


def _share_left(service: Service, member: Member, left: Sequence[int]) -> float:
    """Share of a workload's requests that keeps the promise with ``left`` replicas of each pool."""
    if min(left) == 0:
        return 0.0
    stages = tuple(stage(pool.choice, rest) for pool, rest in zip(service.pools, left, strict=True))
    return float(joint(stages)[_place(service, member)])


def _place(service: Service, member: Member) -> int:
    """Place of an interactive workload in the traffic of its pools."""
    return [one.spec.name for one in service.offer.group.interactive].index(member.spec.name)


def seconds_used(service: Service, member: Member) -> float:
    """Accelerator-seconds that a workload's day takes, for dividing the cost of a shared pool."""
    total = 0.0
    for pool in service.pools:
        of, row = pool.choice.replicas, pool.choice.index
        where = point(pool.choice, deadline=not service.offer.group.interactive)
        batch = max(where.batch, 1.0)
        step = float(np.interp(batch, BATCHES, of.operating.tables.step[row]))
        per_request = max(member.numbers.output.mean - 1.0, 0.0) * step / batch
        if of.work is not None:
            pair = of.pair[row]
            added = float(of.work.added_mean[pair, 0] / of.work.lanes[pair])
            per_request += added * member.numbers.input.mean / of.subject.traffic.input.mean
        total += member.numbers.mean_rate * per_request * pool.choice.size
    return total


def costs(service: Service, shares: dict[str, float | None]) -> dict[str, Cost]:
    """Cost of each workload of a service; the parts sum to its whole cost."""
    group = service.offer.group.members
    parts = divide(service.cost, [seconds_used(service, member) for member in group])
    out = {}
    for member, hourly in zip(group, parts, strict=True):
        work = member.numbers
        requests = float(work.documents) if work.documents else work.mean_rate * 86400.0
        daily = hourly * 24.0
        each = daily / requests
        good = shares.get(member.spec.name)
        out[member.spec.name] = Cost(
            per_hour=hourly,
            per_million_output_tokens=daily / (requests * work.output.mean) * 1e6,
            per_request=each,
            per_successful_task=per_successful_task(each, member.spec.task.calls, 1.0 if good is None else good),
        )
    return out


def headroom(service: Service, member: Member) -> float | None:
    """Multiple of all rates of a service at which the promise of ``member`` breaks with today's replicas, spares down.

    Times k as long and rates k as high are one thing (homogeneity), so only the rate inside a share moves here.
    """
    if not member.interactive:
        return None
    index = _place(service, member)
    stages = tuple(stage(pool.choice) for pool in service.pools)
    low, high = 1.0, 1.5
    while high < REACH and float(joint(stages, rate=high)[index]) >= member.numbers.share:
        low, high = high, high * 1.5
    for _ in range(5):
        middle = (low * high) ** 0.5
        holds = float(joint(stages, rate=middle)[index]) >= member.numbers.share
        low, high = (middle, high) if holds else (low, middle)
    return low


def signals(service: Service, ratio: float | None) -> tuple[Signal, ...]:
    """Say what to watch for a workload: the rate, ``ratio`` times that offered, at which its replicas are too few."""
    if ratio is None:
        return ()
    rate = service.pools[0].choice.replicas.subject.traffic.peak_rate * ratio
    why = "beyond it the promise breaks on these replicas without spares"
    return (Signal(signal="requests per second in the busiest hour", threshold=rate, unit="req/s", why=why),)

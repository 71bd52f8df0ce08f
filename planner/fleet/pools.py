"""Pools: how many replicas of each candidate keep the promise, together or split into prefill and decode."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.engine.attention import WIDTH
from planner.engine.cache import sequence_bytes
from planner.engine.collectives import across
from planner.engine.reasons import Reason
from planner.fleet.goodput import CENTRE, idle_shares, shares
from planner.fleet.waiting import Rows
from planner.numeric import least

if TYPE_CHECKING:
    from planner.numeric import Bools, Floats, Ints
    from planner.replica.candidates import Replicas, Role
    from planner.workload.blend import Blend

OUTSTANDING = 64.0
"""Messages that a KV connector keeps in flight: their fixed costs overlap so many times."""
LINK_SHARE = 0.7
"""Share of a link's effective bandwidth that KV may take on average, so that transfers rarely queue."""


@dataclass(frozen=True, slots=True, eq=False)
class PoolPlan:
    """Sized pools, one row per candidate that can keep its part of the promise; (n,) columns."""

    replicas: "Replicas"
    index: "Ints"
    """Row in ``replicas``."""
    count: "Ints"
    """Replicas without spares."""
    width: "Ints"
    """Accelerators that move one request's KV in parallel; 0 where nothing moves."""

    def __len__(self) -> int:
        """Pools."""
        return len(self.index)

    @property
    def accelerators(self) -> "Ints":
        """Accelerators of the whole pool without spares."""
        return self.count * self.replicas.size[self.index]


def kv_bytes(replicas: "Replicas", tokens: "Floats") -> "Floats":
    """Cache and state of sequences of ``tokens`` (k,) tokens over the whole model, each byte once, (k,) [B]."""
    subject = replicas.subject
    bits, block = int(8 * WIDTH[subject.chip.kv]), subject.engine.caching.block
    return np.asarray(sequence_bytes(subject.model, np.rint(tokens).astype(np.int64), bits, 1, block), float)


def kv_bytes_per_token(replicas: "Replicas") -> float:
    """Cache bytes that one more token of context needs over the whole model, beyond all windows [B]."""
    block = float(replicas.subject.engine.caching.block)
    short, long = kv_bytes(replicas, np.array([1024.0, 1025.0]) * 1024.0 * block)
    return float(long - short) / (1024.0 * block)


def transfer_time(replicas: "Replicas", tokens: "Floats", width: "Floats") -> "Floats":
    """Time to move the KV of ``tokens`` (k,) tokens over ``width`` (n, 1) links, (n, k) [s].

    Bytes over the effective bandwidth, plus the fixed cost of one message for each block of each layer, overlapped
    :data:`OUTSTANDING` times.
    """
    chip, m = replicas.subject.chip, replicas.machine
    blocks = np.ceil(tokens / replicas.subject.engine.caching.block)
    messages = 1.0 + blocks * m.model.depth / OUTSTANDING / width
    moved = kv_bytes(replicas, tokens) / width
    return across(moved, chip) + (messages - 1.0) * chip.scale_out.latency


def rows_of(replicas: "Replicas", chosen: "Ints", width: "Ints | None" = None) -> Rows:
    """View candidates ``chosen`` (n,) as goodput rows; ``width`` (n,) links carry their KV away."""
    traffic: Blend = replicas.subject.traffic
    work, op = replicas.work, replicas.operating
    transfer = np.zeros((1, len(traffic.input.value)))
    if width is not None:
        transfer = transfer_time(replicas, traffic.input.value, width[:, np.newaxis].astype(float))
    return Rows(
        traffic=traffic,
        op=type(op)(op.tables.rows(chosen), op.batch_limit[chosen], op.saturation[chosen]),
        work=None if work is None else work.rows(replicas.pair[chosen]),
        decodes=replicas.role != "prefill",
        mixed=replicas.role == "mixed" and replicas.subject.engine.scheduling.steps == "mixed",
        stages=replicas.stages[chosen],
        handling=replicas.subject.chip.overhead.per_prefill,
        transfer=transfer,
    )


def required(traffic: "Blend", part: float) -> "Floats":
    """Share that a pool must keep of each workload, (workloads,), if it may spend ``part`` of the misses."""
    return np.array([1.0 - (1.0 - work.share) * part for work in traffic.workloads])


def size(replicas: "Replicas", most: "Ints", part: float = 1.0, width: "Ints | None" = None) -> "tuple[PoolPlan, Ints]":
    """Least replicas of each candidate that keep the promise.

    Parameters
    ----------
    replicas
        Candidates.
    most : (n,)
        Replicas that the inventory could hold.
    part
        Share of the allowed misses that this pool may spend; 1 where it is alone.
    width : (n,)
        Links that carry each candidate's KV to another pool, if any.

    Returns
    -------
    tuple
        The pools that hold, and every candidate's reasons (n,).

    """
    rejected = replicas.rejected.copy()
    alive = np.flatnonzero((rejected == 0) & (most > 0))
    rejected = np.where((rejected == 0) & (most <= 0), int(Reason.NODES), rejected)
    want = required(replicas.subject.traffic, part)
    if len(alive):
        links = width[alive] if width is not None else None
        first, later = idle_shares(rows_of(replicas, alive, links))
        slack = 1e-9
        rejected[alive] |= np.where(first + slack < want.min(), int(Reason.TTFT), 0)
        rejected[alive] |= np.where(later + slack < want.min(), int(Reason.TPOT), 0)
        alive = alive[rejected[alive] == 0]
    if not len(alive):
        none = np.zeros(0, np.int64)
        return PoolPlan(replicas, none, none, none), rejected
    links = width[alive] if width is not None else None
    rows = rows_of(replicas, alive, links)
    peak = replicas.subject.traffic.peak_rate
    low = np.maximum(1, np.ceil(peak / np.maximum(CENTRE * rows.op.saturation, 1e-12) - 1e-9)).astype(np.int64)
    if links is not None:
        low = np.maximum(low, _link_replicas(replicas, alive, links))
    low = np.minimum(low, most[alive] + 1)
    high = np.maximum(most[alive], low)

    def holds(count: "Ints") -> "Bools":
        return np.asarray((shares(rows, count) >= want).all(axis=1))

    count = least(holds, low, high)
    fits = count <= most[alive]
    rejected[alive[~fits]] |= int(Reason.SHARE)
    kept = alive[fits]
    moved = width[kept] if width is not None else np.zeros(len(kept), np.int64)
    return PoolPlan(replicas, kept, count[fits], moved), rejected


def _link_replicas(replicas: "Replicas", chosen: "Ints", width: "Ints") -> "Ints":
    """Replicas whose links together carry the KV of the offered requests, (n,)."""
    traffic, chip = replicas.subject.traffic, replicas.subject.chip
    flow = traffic.peak_rate * float(traffic.input.share @ kv_bytes(replicas, traffic.input.value))
    lanes = replicas.machine.layouts.dp[replicas.row[chosen]] * width
    return np.ceil(flow / (lanes * chip.scale_out.bandwidth * chip.scale_out_link * LINK_SHARE)).astype(np.int64)


def cheapest_by_layout(plan: PoolPlan) -> PoolPlan:
    """Of each layout and transfer width, the row with the fewest replicas; ties go to the first."""
    if not len(plan):
        return plan
    layout = plan.replicas.row[plan.index]
    order = np.lexsort((np.arange(len(plan)), plan.count, plan.width, layout))
    first = np.ones(len(order), bool)
    first[1:] = (np.diff(layout[order]) != 0) | (np.diff(plan.width[order]) != 0)
    kept = np.sort(order[first])
    return PoolPlan(plan.replicas, plan.index[kept], plan.count[kept], plan.width[kept])


def role_of(plan: PoolPlan) -> "Role":
    """Role of the pools of a plan."""
    return plan.replicas.role

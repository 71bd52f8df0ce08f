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
    from planner.replica.candidates import Replicas
    from planner.workload.blend import Blend

OUTSTANDING = 64.0
"""Messages that a KV connector keeps in flight: their fixed costs overlap so many times."""
LINK_SHARE = 0.7
"""Share of a link's effective bandwidth that KV may take on average, so that transfers rarely queue."""


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
        op=op.rows(chosen),
        work=None if work is None else work.rows(replicas.pair[chosen]),
        decodes=replicas.role != "prefill",
        mixed=replicas.role == "mixed" and replicas.subject.engine.scheduling.steps == "mixed",
        stages=replicas.stages[chosen],
        handling=replicas.subject.chip.overhead.per_prefill,
        transfer=transfer,
    )


def required(traffic: "Blend", part: "Floats | float") -> "Floats":
    """Share that a pool must keep of each workload if it may spend ``part`` (n,) of the misses, (n, workloads)."""
    allowed = np.array([1.0 - work.share for work in traffic.workloads])
    share: Floats = 1.0 - np.asarray(part, float)[..., np.newaxis] * allowed
    return share


@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """Candidates to size; (n,) columns, a candidate may be asked for more than once."""

    index: "Ints"
    """Row of the candidate."""
    most: "Ints"
    """Replicas that the inventory could hold."""
    part: "Floats"
    """Share of the allowed misses that this pool may spend; 1 where it is alone."""
    width: "Ints"
    """Links that carry its KV to another pool; 0 where nothing moves."""

    def take(self, chosen: "Ints | Bools") -> "Ask":
        """Return the same with only the rows of ``chosen``."""
        return Ask(self.index[chosen], self.most[chosen], self.part[chosen], self.width[chosen])


def size(replicas: "Replicas", ask: Ask) -> "tuple[Ask, Ints, Ints]":
    """Least replicas of each candidate asked for that keep the promise.

    Returns
    -------
    tuple
        The rows of ``ask`` that hold, their replicas, and the reasons of every row of ``ask`` (n,).

    """
    rejected = replicas.rejected[ask.index].copy()
    rejected = np.where((rejected == 0) & (ask.most <= 0), int(Reason.NODES), rejected)
    alive = np.flatnonzero(rejected == 0)
    traffic = replicas.subject.traffic
    if len(alive):
        some = ask.take(alive)
        first, later = idle_shares(rows_of(replicas, some.index, _links(some)))
        want = required(traffic, some.part).min(axis=1) - 1e-9
        rejected[alive] |= np.where(first < want, int(Reason.TTFT), 0) | np.where(later < want, int(Reason.TPOT), 0)
        alive = alive[rejected[alive] == 0]
    if not len(alive):
        return ask.take(alive), np.zeros(0, np.int64), rejected
    some = ask.take(alive)
    rows, want = rows_of(replicas, some.index, _links(some)), required(traffic, some.part)
    low = np.maximum(1, np.ceil(traffic.peak_rate / np.maximum(CENTRE * rows.op.saturation, 1e-12) - 1e-9))
    low = np.maximum(low.astype(np.int64), _link_replicas(replicas, some))
    # Where the load alone needs more replicas than there are, nodes are missing; else it is the share.
    fits = low <= some.most
    rejected[alive[~fits]] |= int(Reason.NODES)
    count = low.copy()
    count[fits] = _least(rows.take(np.flatnonzero(fits)), want[fits], low[fits], some.most[fits])
    rejected[alive[fits & (count > some.most)]] |= int(Reason.SHARE)
    fits = count <= some.most
    return some.take(fits), count[fits], rejected


def _links(ask: Ask) -> "Ints | None":
    return ask.width if ask.width.any() else None


def _least(rows: Rows, want: "Floats", low: "Ints", most: "Ints") -> "Ints":
    """Least replicas, (n,): the search begins just above ``low``, where most rows end, and goes on for those left."""
    near = np.minimum(most, 2 * low + 2)

    def holds(count: "Ints") -> "Bools":
        return np.asarray((shares(rows, count) >= want).all(axis=1))

    count = least(holds, low, near)
    far = np.flatnonzero((count > near) & (near < most))
    if len(far):
        rest, wanted = rows.take(far), want[far]

        def later(number: "Ints") -> "Bools":
            return np.asarray((shares(rest, number) >= wanted).all(axis=1))

        count[far] = least(later, near[far] + 1, most[far])
    return count


def _link_replicas(replicas: "Replicas", ask: Ask) -> "Ints":
    """Replicas whose links together carry the KV of the offered requests, (n,); 0 where nothing moves."""
    if _links(ask) is None:
        return np.zeros(len(ask.index), np.int64)
    traffic, chip = replicas.subject.traffic, replicas.subject.chip
    flow = traffic.peak_rate * float(traffic.input.share @ kv_bytes(replicas, traffic.input.value))
    lanes = replicas.machine.layouts.dp[replicas.row[ask.index]] * np.maximum(ask.width, 1)
    carried = lanes * chip.scale_out.bandwidth * chip.scale_out_link * LINK_SHARE
    return np.where(ask.width > 0, np.ceil(flow / carried), 0.0).astype(np.int64)


def cheapest(replicas: "Replicas", index: "Ints", count: "Ints") -> "Ints":
    """Of each layout, the place in ``index`` (n,) with the fewest replicas ``count`` (n,); ties go to the first."""
    layout = replicas.row[index]
    order = np.lexsort((np.arange(len(index)), count, layout))
    first = np.ones(len(order), bool)
    first[1:] = np.diff(layout[order]) != 0
    return np.sort(order[first])

"""How long a prompt waits in a pool before its first step, and how long a request's tokens take, at one steady rate."""

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from planner.numeric import normal_cdf
from planner.queueing.bursts import STAY
from planner.replica.batching import Operating, spot, tpot
from planner.replica.passes import BATCHES
from planner.replica.prefill import latency

if TYPE_CHECKING:
    from planner.numeric import Bools, Floats, Ints
    from planner.replica.batching import Spot
    from planner.replica.prefill import Prefill
    from planner.workload.blend import Blend

BURST = STAY
"""How long the moving rate stays in one state [s]: while it is beyond saturation, the backlog grows in proportion."""
SHORTEST_QUEUE = 0.55
"""Mean wait under join-shortest-queue over that of one shared queue, less 1, at many servers (simulated, 8 servers at
load 0.8: 0.442 against 0.286 service times)."""
STIFFEST = 0.05
"""Least elasticity of the rate that is reckoned with: below, the batch fills up."""
RAREST = 1e-30
"""Least probability of waiting that is reckoned with."""
HALF = 0.5
"""Part of the way between two batches of the grid from which the chunks of the right one are taken."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Candidate pools of one role for one traffic; (n,) columns."""

    traffic: "Blend"
    op: "Operating"
    work: "Prefill | None"
    """None in a decode pool."""
    decodes: bool
    """False in a prefill pool."""
    mixed: bool
    """Whether prompts ride in decode steps."""
    stages: "Floats"
    """Pipeline stages."""
    handling: float
    """Fixed time of a request outside the engine's steps [s]."""
    transfer: "Floats"
    """Time to move the KV of each input bin, (n, k) or (1, k) [s]; 0 where nothing moves."""

    @property
    def steps(self) -> float:
        """Mean decode steps of a request here; 0 in a prefill pool."""
        return self.traffic.steps if self.decodes else 0.0

    def take(self, index: "Ints") -> "Rows":
        """Return the same pools with only the rows of ``index``, repeated as there."""
        return replace(
            self,
            op=self.op.rows(index),
            work=None if self.work is None else self.work.rows(index),
            stages=self.stages[index],
            transfer=self.transfer if len(self.transfer) == 1 else self.transfer[index],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Steady:
    """One pool at one rate; (n,) columns, (n, k) over input bins."""

    base: "Floats"
    """Time to first token without waiting, (n, k) [s]."""
    residual: "Floats"
    """Of that, the rest of the step in flight, (n,) [s]."""
    wait: "Floats"
    """Mean wait, (n,) [s]."""
    waits: "Floats"
    """Probability of waiting, (n,)."""
    step: "Floats"
    """Decode step at the batch, (n,) [s]."""
    spread: "Floats"
    """Standard deviation of the decode step as the batch moves, (n,) [s]."""
    stall: "Floats"
    """Mean time that one prompt adds, (n,) [s]."""
    stall_second: "Floats"
    """Second moment of it, (n,) [s^2]."""
    stalls: "Floats"
    """Prompts that add to a sequence's steps, (n,) [1/s]."""
    behind: "Floats"
    """Prompts that wait behind a request when its own prompt is done, (n,): they lengthen its first steps."""
    fills: "Floats"
    """Steps that a prompt fills, (n,); 0 where it has steps of its own."""
    tpot: "Floats"
    """Mean time per output token at a random moment, (n,) [s]."""
    batch: "Floats"
    """Sequences that decode in one replica, (n,)."""
    overloaded: "Bools"
    """Rows beyond saturation, (n,); their wait is that of the backlog that builds up meanwhile."""

    def take(self, index: "Ints") -> "Steady":
        """Return the same state with only the rows of ``index``, repeated as there."""
        return Steady(**{item.name: getattr(self, item.name)[index] for item in fields(self)})


def shared_queue(load: "Floats", servers: "Floats") -> "Floats":
    """Mean wait of c servers behind join-shortest-queue, over that of one server at the same load, any shape.

    Sakasegawa (1977): a common queue waits rho^(sqrt(2 (c + 1)) - 2) / c as long as one server; joining the shortest
    queue comes close to it. Exactly 1 for one server.

    >>> shared_queue(np.array([0.8, 0.8]), np.array([1.0, 8.0])).round(3)
    array([1.   , 0.112])
    """
    pooled = np.maximum(load, 1e-12) ** (np.sqrt(2.0 * (servers + 1.0)) - 2.0) / servers
    return pooled * (1.0 + SHORTEST_QUEUE * (1.0 - 1.0 / servers))


def delayed(load: "Floats", servers: "Floats", bursts: float) -> "Floats":
    """Probability of waiting for one of c servers, any shape.

    Sakasegawa's exponent (1977) on the root sigma of GI/M/1, which is the load for Poisson arrivals, and by heavy
    traffic 1 - 2 (1 - load) / (1 + ca^2) for bursts (Kingman 1962). Simulated for c = 8 at load 0.8, ca^2 = 4: 0.69.

    >>> delayed(np.array([0.8, 0.8]), np.array([1.0, 8.0]), 1.0).round(3)
    array([0.8  , 0.485])
    >>> delayed(np.array([0.8]), np.array([8.0]), 4.0).round(2)
    array([0.76])
    """
    root = 1.0 - 2.0 * (1.0 - np.minimum(load, 1.0)) / (1.0 + bursts)
    return np.asarray(np.maximum(root, 1e-12) ** (np.sqrt(2.0 * (servers + 1.0)) - 1.0))


def slot_wait(limit: "Floats", batch: "Floats", residence: "Floats", peakedness: float) -> "tuple[Floats, Floats]":
    r"""Probability of waiting for a decode slot, and mean wait of those who wait [s], any shape.

    Halfin and Whitt (1981), with the batch's variance ``peakedness`` times its mean:
    C = 1 / (1 + beta Phi(beta) / phi(beta)), beta = (limit - batch) / sqrt(peakedness * batch).
    """
    free = np.maximum(limit - batch, 1e-9)
    beta = free / np.sqrt(peakedness * np.maximum(batch, 1e-9))
    density = np.exp(-(np.minimum(beta, 37.0) ** 2) / 2.0) / np.sqrt(2.0 * np.pi)
    waits = 1.0 / (1.0 + beta * normal_cdf(beta) / np.maximum(density, 1e-300))
    return waits, residence * peakedness / free


def settled(rows: Rows, rate: "Floats", calm: "Floats") -> "Floats":
    """Rate that the batch has come to where the rate has moved from ``calm`` for :data:`BURST` seconds, (n,) [req/s].

    Sequences come and go with the time constant of their stay, so a short busy spell fills only part of the places.
    """
    op = rows.op
    place = spot(np.clip(op.at(np.minimum(calm, 0.999 * op.saturation)), BATCHES[0], BATCHES[-1]))
    stay = rows.steps * place.pick(op.pairs.step, op.pair)
    return calm + (rate - calm) * (1.0 - np.exp(-BURST / np.maximum(stay, 1e-3)))


def steady(rows: Rows, rate: "Floats", replicas: "Ints", bursts: float, calm: "Floats | None" = None) -> Steady:
    """Describe each row at pool rate ``rate`` (n,) [req/s] on ``replicas`` (n,).

    ``bursts`` is the squared coefficient of variation of fast arrivals, 1 for Poisson. Where the rate moves, ``calm``
    (n,) is its mean, and it stays at ``rate`` for :data:`BURST` seconds only.
    """
    op, work = rows.op, rows.work
    each = rate / replicas
    excess = np.maximum(each / np.maximum(op.saturation, 1e-300) - 1.0, 0.0)
    overloaded = excess > 0.0
    each = np.minimum(each, 0.999 * op.saturation)
    filled = each if calm is None else np.minimum(settled(rows, each, calm / replicas), 0.999 * op.saturation)
    batch = np.minimum(np.maximum(op.at(filled), BATCHES[0]), BATCHES[-1])
    place = spot(batch)
    step = place.pick(op.pairs.step, op.pair)
    if work is None:
        stall = second = wait = waits = residual = behind = fills = np.zeros_like(step)
        lanes, base = np.ones_like(step), np.zeros((len(step), 1))
    else:
        stall, second, lanes = (
            place.pick(work.added_mean, work.row),
            place.pick(work.added_second, work.row),
            work.lanes,
        )
        base, residual = _first_token(rows, each, step, place)
        wait, waits = _queue(rows, each, replicas, place, bursts, None if calm is None else calm / replicas)
        # As many are left behind as an arrival finds: one in its prefill, and the queue. Of those that come together in
        # a burst, half come behind, over all lanes.
        behind = waits + each / lanes * wait + (bursts - 1.0) / 2.0 / (replicas * lanes)
        fills = place.pick(work.fills, work.row) if rows.mixed else np.zeros_like(step)
    prompts = each / lanes if work is not None else np.zeros_like(step)
    per_token = tpot(step, stall / lanes, each)
    peakedness = (1.0 + bursts) / 2.0
    if rows.steps > 0:
        blocked, held = slot_wait(op.batch_limit, batch, rows.steps * per_token, peakedness)
        wait = wait + blocked * held
        waits = 1.0 - (1.0 - waits) * (1.0 - blocked)
    wait = wait + excess * BURST / 2.0
    waits = np.where(overloaded, 1.0, waits)
    above = np.minimum(batch * 1.05 + 1.0, BATCHES[-1])
    slope = np.maximum(spot(above).pick(op.pairs.step, op.pair) - step, 0.0) / np.maximum(above - batch, 1e-9)
    gain = _gain(op, batch, above)
    spread = slope * np.sqrt(peakedness * batch * gain) + 1e-9
    # A token sees the batch in proportion to it: by its variance over its mean more than a moment does. The one that
    # Poisson arrivals add is the sequence itself, which the batch counts; a burst is shared by all replicas.
    more = slope * (peakedness - 1.0) / replicas * gain
    step, per_token = step + more, per_token + more
    return Steady(
        base,
        residual,
        wait,
        waits,
        step,
        spread,
        stall,
        second,
        prompts,
        behind,
        fills,
        per_token,
        batch,
        overloaded,
    )


def _gain(op: Operating, batch: "Floats", above: "Floats") -> "Floats":
    """Return how much more the batch moves than it would if steps took as long at every batch, (n,).

    A larger batch slows its own leaving down. To first order its variance is that of infinitely many servers over the
    elasticity b lambda'(b) / lambda(b) of the rate that keeps b decoding (van Kampen, *Stochastic Processes in Physics
    and Chemistry*, 2007, chapter X: the linear noise approximation).
    """
    here, there = (spot(at).pick(op.pairs.rate, op.pair) for at in (batch, above))
    elasticity = (there - here) / np.maximum(above - batch, 1e-9) * batch / np.maximum(here, 1e-12)
    return 1.0 / np.clip(elasticity, STIFFEST, 1.0)


def _first_token(rows: Rows, each: "Floats", step: "Floats", place: "Spot") -> "tuple[Floats, Floats]":
    """Time to first token without waiting (n, k), and of it the rest of the step in flight (n,), E[T^2] / 2 E[T]."""
    work = rows.work
    if work is None:
        raise ValueError("a decode pool has no first token")
    added = place.pick(work.added, work.row)
    chunks = work.chunks[work.row, place.left + (place.part > HALF)]
    riding = step if rows.mixed else np.zeros_like(step)
    own = latency(chunks, riding[:, np.newaxis], added, rows.stages[:, np.newaxis])
    mean_added, mean_chunks = added @ work.shares, chunks @ work.shares
    occupied = np.minimum(each / work.lanes * (mean_chunks * riding + mean_added), 1.0)
    residual = (1.0 - occupied) * step / 2.0
    if rows.mixed:
        residual = residual + occupied * (step + mean_added / np.maximum(mean_chunks, 1.0)) / 2.0
    if not rows.decodes:
        residual = np.zeros_like(step)
    return own + (residual + rows.handling)[:, np.newaxis], residual


def _queue(
    rows: Rows, each: "Floats", replicas: "Ints", place: "Spot", bursts: float, calm: "Floats | None"
) -> "tuple[Floats, Floats]":
    """Mean wait (n,) and probability of waiting (n,) in the prefill queue.

    M/G/1 by Pollaczek and Khinchine with the variance of arrivals after Allen and Cunneen, over the lanes of all
    replicas. Where the rate has moved from ``calm`` the queue has no longer than :data:`BURST` to grow beyond what it
    was: at most as a reflected Brownian motion without drift does on average, 2/3 sqrt(2 v t / pi) for v the variance
    of the work that comes in a second (Harrison, *Brownian Motion and Stochastic Flow Systems*, 1985, section 1.9).
    """
    work = rows.work
    if work is None:
        raise ValueError("a decode pool has no prefill queue")
    served, second = place.pick(rows.op.pairs.served, rows.op.pair), place.pick(work.work_second, work.row)
    load = np.minimum(each * served, 0.999)
    mean = np.maximum(served * work.lanes, 1e-12)
    scv = np.maximum(second / mean**2 - 1.0, 0.0)
    variance = each / work.lanes * second * (bursts + scv) / (1.0 + scv)
    alone = variance / (2.0 * (1.0 - load))
    if calm is not None:
        usual = np.minimum(calm * served, 0.999)
        before = variance * calm / np.maximum(each, 1e-12) / (2.0 * (1.0 - usual))
        alone = np.minimum(alone, before + 2.0 / 3.0 * np.sqrt(2.0 * variance * BURST / np.pi))
    servers = replicas * work.lanes
    waits = delayed(load, servers, bursts)
    # Of many servers hardly ever all are busy, and how much more often with bursts is of no account.
    more = waits / np.maximum(delayed(load, servers, 1.0), RAREST)
    return alone * shared_queue(load, servers) * more, waits

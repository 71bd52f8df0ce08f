"""How long a prompt waits in a pool before its first step, and how long a request's tokens take, at one steady rate."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from planner.replica.batching import pick, tpot
from planner.replica.passes import BATCHES
from planner.replica.prefill import latency

if TYPE_CHECKING:
    from planner.numeric import Bools, Floats, Ints
    from planner.replica.batching import Operating
    from planner.replica.prefill import Prefill

BURST = 10.0
"""How long the moving rate stays in one state [s]: while it is beyond saturation, the backlog grows in proportion."""
SHORTEST_QUEUE = 0.55
"""Mean wait under join-shortest-queue over that of one shared queue, less 1, at many servers (simulated, 8 servers at load
0.8: 0.442 against 0.286 service times)."""


@dataclass(frozen=True, slots=True, eq=False)
class Steady:
    """One pool at one rate; (n,) columns, (n, k) over input bins."""

    base: "Floats"
    """Time to first token without waiting, (n, k) [s]."""
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
    tpot: "Floats"
    """Mean time per output token, (n,) [s]."""
    batch: "Floats"
    """Sequences that decode in one replica, (n,)."""
    overloaded: "Bools"
    """Rows beyond saturation, (n,); their wait is that of the backlog that builds up meanwhile."""

    def take(self, index: "Ints") -> "Steady":
        """Return the same state with only the rows of ``index``, repeated as there."""
        return Steady(**{item.name: getattr(self, item.name)[index] for item in fields(self)})


def shared_queue(load: "Floats", servers: "Floats") -> "Floats":
    """Mean wait of c servers behind join-shortest-queue, over that of one server at the same load, any shape.

    Sakasegawa (1977): a common queue waits rho^(sqrt(2 (c + 1)) - 2) / c as long as one server; joining the shortest queue
    comes close to it. Exactly 1 for one server.

    >>> shared_queue(np.array([0.8, 0.8]), np.array([1.0, 8.0])).round(3)
    array([1.   , 0.112])
    """
    pooled = np.maximum(load, 1e-12) ** (np.sqrt(2.0 * (servers + 1.0)) - 2.0) / servers
    return pooled * (1.0 + SHORTEST_QUEUE * (1.0 - 1.0 / servers))


def slot_wait(limit: "Floats", batch: "Floats", residence: "Floats", peakedness: float) -> "tuple[Floats, Floats]":
    r"""Probability of waiting for a decode slot, and mean wait of those who wait [s], any shape.

    Halfin and Whitt (1981), with the batch's variance ``peakedness`` times its mean:
    C = 1 / (1 + beta Phi(beta) / phi(beta)), beta = (limit - batch) / sqrt(peakedness * batch).
    """
    from scipy.special import ndtr  # noqa: PLC0415 - slow to import

    free = np.maximum(limit - batch, 1e-9)
    beta = free / np.sqrt(peakedness * np.maximum(batch, 1e-9))
    density = np.exp(-np.minimum(beta, 37.0) ** 2 / 2.0) / np.sqrt(2.0 * np.pi)
    waits = 1.0 / (1.0 + beta * ndtr(beta) / np.maximum(density, 1e-300))
    return waits, residence * peakedness / free


def steady(  # noqa: PLR0913 - a pool is rows, rate, replicas and the nature of its traffic
    op: "Operating",
    work: "Prefill | None",
    rate: "Floats",
    replicas: "Ints",
    *,
    steps: float,
    bursts: float,
    stages: "Floats",
    mixed: bool,
    handling: float,
) -> Steady:
    """Describe each row at pool rate ``rate`` (n,) on ``replicas`` (n,).

    Parameters
    ----------
    steps
        Mean decode steps of a request; 0 in a prefill pool.
    bursts
        Squared coefficient of variation of fast arrivals (1 for Poisson).
    stages : (n,)
        Pipeline stages.
    mixed
        Whether prompts ride in decode steps.
    handling
        Fixed time of a request outside the engine's steps [s].

    """
    each = rate / replicas
    excess = np.maximum(each / np.maximum(op.saturation, 1e-300) - 1.0, 0.0)
    overloaded = excess > 0.0
    each = np.minimum(each, 0.999 * op.saturation)
    batch = np.minimum(np.maximum(op.at(each), BATCHES[0]), BATCHES[-1])
    step = pick(op.tables.step, batch)
    if work is None:
        stall = second = wait = waits = np.zeros_like(step)
        lanes, base = np.ones_like(step), np.zeros((len(step), 1))
    else:
        stall, second = pick(work.added_mean, batch), pick(work.added_second, batch)
        lanes = work.lanes
        base, wait, waits = _queue(op, work, each, replicas, batch, bursts=bursts, stages=stages, mixed=mixed)
        base = base + handling
    per_token = tpot(step, stall / lanes, each)
    peakedness = (1.0 + bursts) / 2.0
    if steps > 0:
        blocked, held = slot_wait(op.batch_limit, batch, steps * per_token, peakedness)
        mean = waits * wait / np.maximum(waits, 1e-12) + blocked * held
        waits = 1.0 - (1.0 - waits) * (1.0 - blocked)
        wait = mean
    wait = wait + excess * BURST / 2.0
    waits = np.where(overloaded, 1.0, waits)
    above = np.minimum(batch * 1.05 + 1.0, BATCHES[-1])
    slope = np.maximum(pick(op.tables.step, above) - step, 0.0) / np.maximum(above - batch, 1e-9)
    spread = slope * np.sqrt(peakedness * batch) + 1e-9
    return Steady(base, wait, waits, step, spread, stall, second, each / lanes, per_token, batch, overloaded)


def _queue(  # noqa: PLR0913 - as steady
    op: "Operating",
    work: "Prefill",
    each: "Floats",
    replicas: "Ints",
    batch: "Floats",
    *,
    bursts: float,
    stages: "Floats",
    mixed: bool,
) -> "tuple[Floats, Floats, Floats]":
    """Time without waiting (n, k), mean wait (n,), probability of waiting (n,) in the prefill queue.

    M/G/1 by Pollaczek and Khinchine with the variance of arrivals after Allen and Cunneen, over the lanes of all replicas;
    plus the residual E[T^2] / 2 E[T] of the step in flight.
    """
    n, k = len(batch), work.added.shape[2]
    lane_rate = each / work.lanes
    served = pick(op.tables.served, batch)
    second = pick(work.work_second, batch)
    load = np.minimum(each * served, 0.999)
    mean = np.maximum(served * work.lanes, 1e-12)
    scv = np.maximum(second / mean**2 - 1.0, 0.0)
    alone = lane_rate * second / (2.0 * (1.0 - load)) * (bursts + scv) / (1.0 + scv)
    servers = replicas * work.lanes
    wait = alone * shared_queue(load, servers)
    waits = np.maximum(load, 1e-12) ** (np.sqrt(2.0 * (servers + 1.0)) - 1.0)
    flat = np.repeat(batch[:, np.newaxis], k, axis=1)
    index = np.clip(np.searchsorted(BATCHES, batch, side="right") - 1, 0, len(BATCHES) - 2)
    part = np.clip((flat - BATCHES[index][:, None]) / (BATCHES[index + 1] - BATCHES[index])[:, None], 0.0, 1.0)
    rows = np.arange(n)
    added = work.added[rows, index] * (1.0 - part) + work.added[rows, index + 1] * part
    chunks = work.chunks[rows, index + np.rint(part[:, 0]).astype(np.int64)]
    step = pick(op.tables.step, batch)
    riding = step if mixed else np.zeros_like(step)
    base = latency(chunks, riding[:, np.newaxis], added, stages[:, np.newaxis])
    occupied = np.minimum(lane_rate * ((chunks * riding[:, np.newaxis] + added) @ work.shares), 1.0)
    if mixed:
        larger = step + (added @ work.shares) / np.maximum(chunks @ work.shares, 1.0)
        residual = ((1.0 - occupied) * step + occupied * larger) / 2.0
    else:
        residual = (1.0 - occupied) * step / 2.0
    return base + residual[:, np.newaxis], wait, waits

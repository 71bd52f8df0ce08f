"""Goodput: the share of requests that meet TTFT and TPOT together, from the distributions of both.

The slow part of burstiness is a rate that moves (:func:`planner.queueing.bursts.rate_mixture`): each share is the mean
over steady states, weighted by the arrivals that see them. Given the rate, TTFT and TPOT of a request are taken as
independent.
"""

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from planner.fleet.waiting import BURST, Rows, Steady, steady
from planner.numeric import normal_cdf
from planner.queueing.bursts import arrival_shares, divided, rate_mixture

if TYPE_CHECKING:
    from planner.numeric import Floats, Ints
    from planner.workload.blend import Blend
    from planner.workload.stats import Bins

WINDOW = BURST
"""Window whose dispersion describes the moving rate [s]: longer than a queue lives, shorter than a pool is scaled."""
POINTS = 5
"""Steady states that a moving rate is averaged over."""
CENTRE = 0.97
"""Load from which percentiles have no value."""


def fast_bursts(traffic: "Blend") -> float:
    """Variance of arrivals that the moving rate does not explain, as a squared coefficient of variation; at least 1."""
    return _divided(traffic)[0]


def _divided(traffic: "Blend") -> tuple[float, float]:
    return divided(float(traffic.dispersion[0]), float(traffic.dispersion[1]))


@lru_cache(maxsize=256)
def _moving(peak: float, dispersion: float) -> "tuple[Floats, Floats]":
    """Rates (p,) of a stream, and the share of its requests that come at each (p,)."""
    rates, times = rate_mixture(peak, dispersion, WINDOW, POINTS)
    return np.ravel(rates), np.ravel(arrival_shares(rates, times))


def states(rows: Rows, replicas: "Ints", scale: float = 1.0, load: float = 1.0) -> "tuple[Floats, Steady]":
    """Shares of arrivals (p,) over the moving rate, and the steady state of each row in each, (p n,) with rows fastest.

    All times are ``scale`` as long, and the rate is ``load`` times as high. Times k as long at rate r are the same as
    times as they are at rate k r, with limits over k.
    """
    traffic = rows.traffic
    fast, slow = _divided(traffic)
    rates, seen = _moving(traffic.peak_rate * load, slow)
    n = len(replicas)
    index = np.tile(np.arange(n), len(rates))
    calm = np.full(len(index), traffic.peak_rate * load * scale) if len(rates) > 1 else None
    return seen, steady(rows.take(index), np.repeat(rates * scale, n), replicas[index], fast, calm)


def ttft_share(state: Steady, limit: "Floats | float", shares: "Floats", part: slice, transfer: "Floats") -> "Floats":
    """Share of requests whose first token comes within ``limit``, (n,).

    The wait is 0 or exponential with the mean of those who wait: P(W > t) = P exp(-P t / E[W]), exact for M/M/c.
    """
    base = state.base[:, part] + transfer[:, part]
    room = np.asarray(limit, float)[..., np.newaxis] - base
    rate = state.waits / np.maximum(state.wait, 1e-12)
    late = state.waits[:, np.newaxis] * np.exp(-np.clip(room * rate[:, np.newaxis], 0.0, 700.0))
    met = np.where(room >= 0.0, 1.0 - late, 0.0)
    return met @ shares


def stalls(state: Steady, output: "Bins") -> "Floats":
    """Mean number of prompts that lengthen the steps of a request of each output length, (n, k).

    Those that arrive while it decodes, and those that waited behind its own prompt, which come right after; no more fit
    beside it than its steps hold.
    """
    steps = np.maximum(output.value - 1.0, 1e-9)
    count = (state.stalls * state.tpot)[:, np.newaxis] * steps + state.behind[:, np.newaxis]
    most = steps / np.maximum(state.fills, 1e-6)[:, np.newaxis]
    return np.minimum(count, np.minimum(most, 1e6))


def tpot_mean(state: Steady, output: "Bins") -> "Floats":
    """Mean over the requests with more than one output token of their mean time per output token, (n,) [s]."""
    steps = np.maximum(output.value - 1.0, 1e-9)
    weight = np.where(output.value > 1.0, output.share, 0.0)
    each = state.step[:, np.newaxis] + stalls(state, output) * state.stall[:, np.newaxis] / steps
    return each @ (weight / max(float(weight.sum()), 1e-12))


def tpot_share(state: Steady, limit: "Floats | float", output: "Bins") -> "Floats":
    """Share of requests whose mean time per output token stays within ``limit``, (n,).

    A request of d tokens takes (d - 1) steps plus the stalls of the prompts beside it, of :func:`stalls`, a compound
    Poisson sum: none with probability exp(-nu), else gamma with the mean and variance of the sum. So a short output
    feels each stall as stall / (d - 1). One-token outputs meet any limit. Against drawn sums the share is within 2
    points from 0.95 on, and within 3 from 0.8 on.
    """
    steps = np.maximum(output.value - 1.0, 1e-9)
    count = stalls(state, output)
    none = np.exp(-count)
    some = np.maximum(1.0 - none, 1e-12)
    mean = count * state.stall[:, np.newaxis] / some
    second = (count * state.stall_second[:, np.newaxis] + (count * state.stall[:, np.newaxis]) ** 2) / some
    variance = np.maximum(second - mean**2, 0.0) + (steps * state.spread[:, np.newaxis]) ** 2
    room = (limit - state.step)[:, np.newaxis] * steps
    shape = np.maximum(mean**2, 1e-30) / np.maximum(variance, 1e-30)
    # Wilson and Hilferty (1931): the cube root of a gamma variable is nearly normal. From shape 1 on that is within
    # 0.013, and within 0.003 above the 90th percentile.
    ninth = 1.0 / (9.0 * shape)
    stalled = normal_cdf((np.cbrt(np.maximum(room, 0.0) / np.maximum(mean, 1e-15)) - 1.0 + ninth) / np.sqrt(ninth))
    free = normal_cdf((limit - state.step) / state.spread)[:, np.newaxis]
    met = none * free + (1.0 - none) * np.where(room > 0.0, stalled, 0.0)
    met = np.where(output.value <= 1.0, 1.0, met)
    return met @ output.share


def workload_bins(traffic: "Blend", index: int) -> "tuple[Floats, slice, Bins]":
    """Shares (k,) and place of a workload's input bins in the blend, and its output bins."""
    work = traffic.workloads[index]
    return work.input.share, traffic.inputs[index], work.output


def shares(rows: Rows, replicas: "Ints", scale: float = 1.0, load: float = 1.0) -> "Floats":
    """Share of each workload's requests that meets both limits, (n, workloads)."""
    return shares_in(rows, *states(rows, replicas, scale, load), scale)


def shares_in(rows: Rows, seen: "Floats", state: Steady, scale: float = 1.0, first: float = 1.0) -> "Floats":
    """Share of each workload that meets both limits, (n, workloads), over states (p,) seen as :func:`states` gives.

    Times to first token are ``first`` times as long beside that.
    """
    traffic, n = rows.traffic, len(rows.stages)
    transfer = rows.transfer if len(rows.transfer) == 1 else np.tile(rows.transfer, (len(seen), 1))
    out = np.zeros((n, len(traffic.workloads)))
    for index, work in enumerate(traffic.workloads):
        share, part, output = workload_bins(traffic, index)
        met = np.ones(len(seen) * n)
        if rows.work is not None and work.ttft is not None:
            met = met * ttft_share(state, work.ttft / scale / first, share, part, transfer / scale)
        if rows.decodes and work.tpot is not None:
            met = met * tpot_share(state, work.tpot / scale, output)
        if rows.work is None:
            met = np.where(state.overloaded, 0.0, met)
        out[:, index] = seen @ met.reshape(len(seen), n)
    return np.minimum(out, 1.0)


def idle(rows: Rows) -> Steady:
    """State of one replica of each row that serves a request now and then."""
    n = len(rows.op.saturation)
    return steady(rows, np.minimum(1e-6, 1e-6 * rows.op.saturation), np.ones(n, np.int64), 1.0)


def idle_shares(rows: Rows) -> "tuple[Floats, Floats]":
    """Share of TTFT and of TPOT that an idle replica meets, the least over workloads, (n,) each."""
    traffic, n, state = rows.traffic, len(rows.op.saturation), idle(rows)
    first, later = np.ones(n), np.ones(n)
    for index, work in enumerate(traffic.workloads):
        share, part, _ = workload_bins(traffic, index)
        if rows.work is not None and work.ttft is not None:
            base = state.base[:, part] + rows.transfer[:, part]
            first = np.minimum(first, np.where(base <= work.ttft, 1.0, 0.0) @ share)
        if rows.decodes and work.tpot is not None:
            later = np.minimum(later, np.where(state.step <= work.tpot, 1.0, 0.0))
    return first, later

"""Percentiles of TTFT and TPOT of one sized plan, from their distributions."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from planner.fleet.goodput import shares_in, states, tpot_mean, tpot_share, ttft_share, workload_bins
from planner.fleet.waiting import Rows, Steady
from planner.numeric import Floats

LEVELS = (0.50, 0.90, 0.95, 0.99)
"""Percentiles of a report."""
FINE = 12
"""Points into which the cell of a percentile is divided again."""
GRID = 48
"""Points at which a distribution is evaluated, first over all times, then where the percentiles lie; linear between."""


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """A latency of one workload [s]."""

    mean: float
    levels: tuple[float, ...]
    """At each of ``LEVELS``."""
    at: float
    """At the promise's own percentile."""


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One pool of a plan: one row, and replicas that carry the load."""

    rows: Rows
    count: int


def _quantiles(below: Callable[[Floats], Floats], low: float, high: float, wanted: Floats) -> Floats:
    """Invert a distribution function on a logarithmic grid; the grid is widened until it holds the largest level."""
    for _ in range(30):
        if float(below(np.array([high]))[0]) >= wanted.max():
            break
        high *= 2.0
    grid = np.geomspace(max(low, 1e-6), high, GRID)
    cumulative = np.maximum.accumulate(below(grid))
    right = np.searchsorted(cumulative, wanted)
    cells = np.unique(right[(right > 0) & (right < len(grid))])
    if len(cells):
        # The cell of each percentile is divided once more; it spans at most a few per cent of the time.
        more = np.concatenate([np.geomspace(grid[cell - 1], grid[cell], FINE + 2)[1:-1] for cell in cells])
        order = np.argsort(np.concatenate([grid, more]), kind="stable")
        cumulative = np.concatenate([cumulative, below(more)])[order]
        grid = np.concatenate([grid, more])[order]
    return np.interp(wanted, np.maximum.accumulate(cumulative), grid)


@lru_cache(maxsize=64)
def lives(stage: Stage, scale: float = 1.0, load: float = 1.0) -> tuple[Floats, Steady]:
    """States of a stage and the shares of arrivals that see them, asked for by TTFT, TPOT and the share."""
    return states(stage.rows, np.array([stage.count]), scale, load)


def _over(state: Steady, seen: Floats, times: Floats) -> tuple[Steady, Floats]:
    """Every state (p,) with every time (t,), as rows (p t,) with times fastest."""
    points = len(times)
    return state.take(np.repeat(np.arange(len(seen)), points)), np.tile(times, len(seen))


def ttft(stage: Stage, index: int, percentile: float, scale: float = 1.0) -> Spread:
    """Time to first token of workload ``index``, all times ``scale`` as long."""
    rows = stage.rows
    share, part, _ = workload_bins(rows.traffic, index)
    seen, state = lives(stage, scale)
    transfer = rows.transfer / scale
    mean = float(seen @ (state.wait + (state.base + transfer)[:, part] @ share))

    def below(times: Floats) -> Floats:
        many, limits = _over(state, seen, times)
        return seen @ ttft_share(many, limits, share, part, transfer).reshape(len(seen), -1)

    return _spread(below, mean, percentile, scale)


def tpot(stage: Stage, index: int, percentile: float, scale: float = 1.0) -> Spread:
    """Time per output token of workload ``index``, all times ``scale`` as long."""
    rows = stage.rows
    _, _, output = workload_bins(rows.traffic, index)
    seen, state = lives(stage, scale)
    mean = float(seen @ tpot_mean(state, output))

    def below(times: Floats) -> Floats:
        many, limits = _over(state, seen, times)
        return seen @ tpot_share(many, limits, output).reshape(len(seen), -1)

    return _spread(below, mean, percentile, scale)


def _spread(below: Callable[[Floats], Floats], mean: float, percentile: float, scale: float) -> Spread:
    wanted = np.array([*LEVELS, percentile / 100.0])
    found = _quantiles(below, mean / 50.0, mean * 4.0, wanted) * scale
    return Spread(mean * scale, tuple(float(value) for value in found[:-1]), float(found[-1]))


def joint(stages: "tuple[Stage, ...]", scale: float = 1.0, rate: float = 1.0, first: float = 1.0) -> Floats:
    """Share of each workload that meets both limits in all stages, (workloads,); times and rates that much larger.

    Times to first token are ``first`` times as long beside that.
    """
    out: Floats = np.ones(len(stages[0].rows.traffic.workloads))
    for stage in stages:
        out = out * shares_in(stage.rows, *lives(stage, scale, rate), scale, first)[0]
    return out

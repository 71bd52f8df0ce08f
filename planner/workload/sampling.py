"""Requests drawn from a workload: when they come, and how long they are. What bins sum up, one by one."""

from typing import TYPE_CHECKING

import numpy as np

from planner.numeric import Floats, Ints
from planner.queueing.bursts import STAY, divided, rate_variance
from planner.spec.lengths import table_mean

if TYPE_CHECKING:
    from planner.spec.lengths import Lengths


def draw_lengths(lengths: "Lengths", rng: np.random.Generator, count: int) -> Ints:
    """Draw ``count`` lengths [tokens], at least 1 each.

    >>> from planner.spec.scenario import Lengths
    >>> table = Lengths(quantiles={0: 10, 100: 30})
    >>> drawn = draw_lengths(table, np.random.default_rng(0), 10_000)
    >>> int(drawn.min()), int(drawn.max()), round(float(drawn.mean()), 1)
    (10, 30, 20.0)
    """
    if lengths.constant is not None:
        drawn = np.full(count, float(lengths.constant))
    elif lengths.quantiles is not None:
        table = sorted(lengths.quantiles.items())
        levels, marks = np.array([level / 100.0 for level, _ in table]), np.array([mark for _, mark in table])
        scale = lengths.mean / table_mean(lengths.quantiles) if lengths.mean is not None else 1.0
        drawn = np.interp(rng.random(count), levels, marks) * scale
    else:
        centre, spread = lengths.lognormal()
        drawn = rng.lognormal(centre, spread, count)
    if lengths.longest is not None:
        drawn = np.minimum(drawn, lengths.longest)
    made: Ints = np.maximum(np.rint(drawn), 1.0).astype(np.int64)
    return made


def draw_arrivals(rate: float, dispersion: Floats, rng: np.random.Generator, duration: float) -> Floats:
    """Draw the times of arrivals in ``duration`` seconds, rising [s].

    The rate stays for ten seconds at a time at a value drawn from a gamma distribution, so that the counts of ten
    seconds have the index of ``dispersion`` at 10 s (3,); within, gaps are gamma distributed with the squared
    coefficient of variation that the dispersion at 1 s leaves (Cox and Isham, *Point Processes*, 1980).

    >>> times = draw_arrivals(50.0, np.array([1.0, 1.0, 1.0]), np.random.default_rng(0), 200.0)
    >>> counts = np.histogram(times, 200, (0.0, 200.0))[0]
    >>> round(float(counts.mean())), bool(0.8 < counts.var() / counts.mean() < 1.25)
    (50, True)
    """
    states = max(int(np.ceil(duration / STAY)), 1)
    fast, slow = divided(float(dispersion[0]), float(dispersion[1]))
    variance = float(rate_variance(rate, slow, STAY))
    rates = np.full(states, rate)
    if variance > 0.0:
        rates = rng.gamma(rate * rate / variance, variance / rate, states)
    # In operational time, in which one request comes in each unit on average, the gaps are those of a renewal stream.
    passed = np.concatenate([[0.0], np.cumsum(rates * STAY)])
    gaps = rng.gamma(1.0 / fast, fast, int(passed[-1] + 10.0 * np.sqrt(passed[-1] * fast) + 100.0))
    events = np.cumsum(gaps) - gaps[0] * rng.random()
    times: Floats = np.interp(events[events < passed[-1]], passed, np.arange(states + 1) * STAY)
    return times[times < duration]

"""Poisson arrivals, exponential service, many servers: Erlang's formulas and how many servers a wait needs."""

import math
from functools import cache

import numpy as np
import numpy.typing as npt

from planner.numeric import Floats, Ints, floats, least

DEPTH = 38.0
"""The integrand of Erlang B is cut where it has fallen by a factor e^-38, below the last digit of a float."""


@cache
def _nodes() -> tuple[Floats, Floats]:
    """Gauss-Legendre nodes and weights on [0, 1]; 64 suffice for 12 digits at any number of servers."""
    nodes, weights = np.polynomial.legendre.leggauss(64)
    return (nodes + 1) / 2, weights / 2


def erlang_b(servers: npt.ArrayLike, load: npt.ArrayLike) -> Floats:
    """Share of requests that find every server busy where none may wait (M/M/c/c).

    B = (a^c / c!) / sum over k <= c of a^k / k!. It is evaluated by the equal integral
    1 / B = integral over t >= 0 of e^-t (1 + t / a)^c, whose cost does not grow with c.

    ``servers`` c >= 0 and ``load`` a >= 0 (arrival rate times mean service [erlang]) broadcast; so does the result, in
    [0, 1], with a relative error below 1e-11.

    Source: Erlang 1917; the integral in Jagerman, Bell System Technical Journal 53 (1974).

    >>> float(erlang_b(8, 6.4).round(7)), float(erlang_b(8, 10).round(7))
    (0.1443939, 0.3383184)
    """
    c, a = np.broadcast_arrays(floats(servers), floats(load))
    positive = a > 0
    a = np.where(positive, a, 1.0)
    mode = np.maximum(c - a, 0.0)
    base = np.maximum(a, c)
    # From log1p(x) <= x - x^2 / (2 + 4 x / 3): beyond these distances from the mode nothing is left to integrate.
    safe = np.maximum(c, 1e-9)
    bend = 4 * DEPTH / 3
    curved = base * (bend + np.sqrt(bend**2 + 8 * DEPTH * safe)) / (2 * safe)
    straight = DEPTH / np.maximum(1 - c / base, 1e-9)
    right = np.minimum(curved, straight)
    left = np.minimum(mode, np.sqrt(2 * DEPTH * c))
    nodes, weights = _nodes()
    shift = -left[..., None] + (left + right)[..., None] * nodes
    exponent = c[..., None] * np.log1p(shift / base[..., None]) - shift
    area = (left + right) * (np.exp(exponent) @ weights)
    peak = np.where(mode > 0, c * np.log(base / a) - mode, 0.0)
    return np.where(positive, np.exp(-peak) / area, np.where(c > 0, 0.0, 1.0))


def erlang_c(servers: npt.ArrayLike, load: npt.ArrayLike) -> Floats:
    """Probability that an arriving request has to wait (M/M/c).

    C = B / (1 - rho (1 - B)) with Erlang's B and rho = a / c. ``servers`` c >= 1 and ``load`` a [erlang] broadcast. The
    result lies in [0, 1] and is 1 where a >= c: that line only grows.

    Source: Erlang 1917; Harchol-Balter, Performance Modeling and Design of Computer Systems, 2013, section 14.3.

    >>> float(erlang_c(8, 6.4).round(7)), float(erlang_c(10, 8).round(7)), float(erlang_c(8, 8))
    (0.4576449, 0.4091802, 1.0)
    """
    c, a = floats(servers), floats(load)
    blocked = erlang_b(c, a)
    rho = np.minimum(a / c, 1.0)
    return np.where(rho < 1, blocked / (1 - rho * (1 - blocked)), 1.0)


def mmc_wait(servers: npt.ArrayLike, rate: npt.ArrayLike, service: npt.ArrayLike) -> Floats:
    """Mean wait of M/M/c [s]: C / (c / S - rate).

    ``servers`` c, arrival ``rate`` [1/s] and mean ``service`` S [s] of one server broadcast. Infinite at or above
    capacity. Source: Harchol-Balter 2013, section 14.3.

    >>> mmc_wait([8, 10], [6.4, 8.0], 1.0).round(7).tolist()
    [0.2860281, 0.2045901]
    """
    c, arrival, mean = floats(servers), floats(rate), floats(service)
    spare = c - arrival * mean
    stable = spare > 0
    return np.where(stable, erlang_c(c, arrival * mean) * mean / np.where(stable, spare, 1.0), np.inf)


def mmc_wait_survival(
    time: npt.ArrayLike, servers: npt.ArrayLike, rate: npt.ArrayLike, service: npt.ArrayLike
) -> Floats:
    """Share of requests that wait longer than ``time`` [s] in M/M/c: C exp(-(c / S - rate) time). Exact.

    Arguments as in `mmc_wait`. Source: Harchol-Balter 2013, section 14.3.

    >>> float(mmc_wait_survival(2.3896928, 8, 6.4, 1.0).round(6))
    0.01
    """
    c, arrival, mean = floats(servers), floats(rate), floats(service)
    spare = np.maximum(c / mean - arrival, 0.0)
    return erlang_c(c, arrival * mean) * np.exp(-spare * floats(time))


def mmc_wait_quantile(
    level: npt.ArrayLike, servers: npt.ArrayLike, rate: npt.ArrayLike, service: npt.ArrayLike
) -> Floats:
    """Wait that a share ``level`` of requests does not exceed in M/M/c [s]. Exact.

    max(0, ln(C / (1 - level)) / (c / S - rate)); infinite at or above capacity. Arguments as in `mmc_wait`.
    Source: Harchol-Balter 2013, section 14.3.

    >>> mmc_wait_quantile([0.9, 0.95, 0.99], 8, 6.4, 1.0).round(7).tolist()
    [0.9505771, 1.3837941, 2.3896928]
    """
    c, arrival, mean = floats(servers), floats(rate), floats(service)
    spare = c / mean - arrival
    stable = spare > 0
    # A load of zero gives a logarithm of zero, which the maximum turns into no wait.
    waits = np.maximum(erlang_c(c, arrival * mean) / (1 - floats(level)), 1.0)
    return np.where(stable, np.log(waits) / np.where(stable, spare, 1.0), np.inf)


def halfin_whitt(beta: npt.ArrayLike) -> Floats:
    """Probability of waiting with a + beta sqrt(a) servers, as the load a grows: 1 / (1 + beta Phi(beta) / phi(beta)).

    ``beta`` >= 0 is the safety staffing; Phi and phi are the normal distribution and density. The limit is low at
    small loads: 0.2234 at beta = 1, where 110 servers at a load of 100 wait with probability 0.2370.

    Source: Halfin and Whitt, Operations Research 29 (1981), theorem 1.

    >>> halfin_whitt([0.5, 1.0, 2.0]).round(7).tolist()
    [0.5045386, 0.2233613, 0.0268814]
    """
    b = floats(beta)
    below = np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in b.ravel()]).reshape(b.shape)
    # The density in the denominator underflows at large beta, where the answer is zero.
    density = np.exp(-np.square(b) / 2) / math.sqrt(2 * math.pi)
    return floats(density / (density + b * below))


def safety_staffing(probability: npt.ArrayLike) -> Floats:
    """Beta at which `halfin_whitt` gives a ``probability`` of waiting in (0, 1], to 12 digits.

    Source: Halfin and Whitt 1981, as `halfin_whitt`.

    >>> float(safety_staffing(0.2).round(7))
    1.0615163
    """
    goal = floats(probability)
    low, high = np.zeros(goal.shape), np.full(goal.shape, 40.0)
    for _ in range(60):
        middle = (low + high) / 2
        above = halfin_whitt(middle) > goal
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return floats((low + high) / 2)


def square_root_staffing(load: npt.ArrayLike, beta: npt.ArrayLike) -> Ints:
    """Servers by the square-root rule: the load a [erlang] plus ``beta`` sqrt(a), rounded up.

    Source: Halfin and Whitt 1981; Harchol-Balter 2013, section 15.3.

    >>> square_root_staffing([10, 50, 100, 400], safety_staffing(0.2)).tolist()
    [14, 58, 111, 422]
    """
    a = floats(load)
    return np.ceil(a + floats(beta) * np.sqrt(a)).astype(np.int64)


def servers_for_probability(load: npt.ArrayLike, probability: npt.ArrayLike, most: int = 1_000_000) -> Ints:
    """Fewest servers with which at most a share ``probability`` of requests waits (M/M/c, exact).

    ``load`` [erlang] and ``probability`` broadcast to (n,); a row that ``most`` servers do not satisfy answers
    ``most + 1``.

    >>> servers_for_probability([10, 50, 100, 400], 0.2).tolist()
    [14, 58, 111, 422]
    """
    a, goal = np.broadcast_arrays(floats(load), floats(probability))
    low = np.minimum(np.floor(a) + 1, most).astype(np.int64)
    return least(lambda c: erlang_c(c, a) <= goal, low, np.full(a.shape, most))


def servers_for_wait(rate: npt.ArrayLike, service: npt.ArrayLike, wait: npt.ArrayLike, most: int = 1_000_000) -> Ints:
    """Fewest servers with a mean wait of at most ``wait`` [s] (M/M/c, exact).

    ``rate`` [1/s], ``service`` [s] and ``wait`` broadcast to (n,); a row that ``most`` servers do not satisfy answers
    ``most + 1``.

    >>> servers_for_wait([6.4, 8.0, 6.4], 1.0, [0.2861, 0.2, 0.2860]).tolist()
    [8, 11, 9]
    """
    arrival, mean, goal = np.broadcast_arrays(floats(rate), floats(service), floats(wait))
    low = np.minimum(np.floor(arrival * mean) + 1, most).astype(np.int64)
    return least(lambda c: mmc_wait(c, arrival, mean) <= goal, low, np.full(low.shape, most))

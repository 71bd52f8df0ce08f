"""Arrivals whose rate itself moves: bursts that grow with the window over which they are counted.

The index of dispersion of a window is the variance over the mean of the number of arrivals in it: 1 for a Poisson
stream at any window, and 1 + variance of the rate times window / rate where the rate moves slowly against the window.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.numeric import Floats, floats

STAY = 10.0
"""How long a moving rate is taken to stay as it is [s]: longer than a queue lives, shorter than a pool is scaled."""
HALVINGS = 60
"""Bisections: as many as a float distinguishes."""
SLOWEST = 1e-4
"""Least correlation decay that a fit answers, per longer window."""
FASTEST = 1e4
"""Greatest correlation decay that a fit answers, per shorter window."""


def split_dispersion(dispersion: npt.ArrayLike, ways: npt.ArrayLike) -> Floats:
    """Index of dispersion of one of ``ways`` random parts of a stream: 1 + (dispersion - 1) / ways.

    Source: thinning of point processes; Cox and Isham, Point Processes, 1980, section 4.3.

    >>> float(split_dispersion(16.1, 4))
    4.775
    """
    return 1 + (floats(dispersion) - 1) / floats(ways)


def divided(second: float, stay: float) -> tuple[float, float]:
    """Divide the dispersion of counts in 1 s and in :data:`STAY` into what bursts within a second, and what moves.

    Bursts are a squared coefficient of variation of the gaps: the dispersion at 1 s less what a rate that moves adds to
    it. What is left at ``STAY`` is a movement of the rate. Both are at least 1, which is Poisson (Cox and Isham 1980).

    >>> [[round(part, 3) for part in divided(*both)] for both in ((1.39, 3.87), (4.0, 4.0))]
    [[1.103, 3.767], [3.7, 1.3]]
    """
    fast = max(second - max(stay - 1.0, 0.0) / STAY, 1.0)
    return fast, max(stay - fast + 1.0, 1.0)


def rate_variance(rate: npt.ArrayLike, dispersion: npt.ArrayLike, window: npt.ArrayLike) -> Floats:
    """Variance of the rate averaged over a ``window`` [1/s^2]: rate (dispersion - 1) / window, at least 0.

    ``rate`` [1/s], the index of ``dispersion`` of counts in the ``window`` [s] broadcast; a stream steadier than
    Poisson has variance 0. Source: law of total variance for a doubly stochastic Poisson process; Cox and Isham 1980.

    >>> float(rate_variance(5.53, 16.1, 60.0).round(4))
    1.3917
    """
    extra = np.maximum(floats(dispersion) - 1, 0.0)
    return floats(rate) * extra / floats(window)


def gamma_points(mean: npt.ArrayLike, variance: npt.ArrayLike, points: int = 7) -> tuple[Floats, Floats]:
    """Gauss quadrature of a gamma distribution: values, and their shares, each (points, ...).

    ``mean`` >= 0 and ``variance`` >= 0 broadcast to the rest of the shape. The first 2 points - 1 moments are those of
    the gamma distribution; no value is negative, and all equal the mean where the variance is 0. Values rise along the
    first axis.

    Source: Golub and Welsch, Mathematics of Computation 23 (1969), for generalised Laguerre polynomials.

    >>> values, shares = gamma_points(2.0, 2.0, points=3)
    >>> float((values * shares).sum().round(9)), float((values**2 * shares).sum().round(9))
    (2.0, 6.0)
    """
    average, spread = np.broadcast_arrays(floats(mean), floats(variance))
    some = average > 0
    variation = np.sqrt(spread) / np.where(some, average, 1.0)
    index = np.arange(points)
    # The Jacobi matrix of the standardised variable has no singularity where the variation vanishes.
    jacobi = np.zeros((*average.shape, points, points))
    jacobi[..., index, index] = 2 * index * variation[..., None]
    above = index[1:]
    beside = np.sqrt(above * (1 + (above - 1) * variation[..., None] ** 2))
    jacobi[..., above, above - 1] = beside
    jacobi[..., above - 1, above] = beside
    nodes, vectors = np.linalg.eigh(jacobi)
    values = average[..., None] * np.maximum(1 + variation[..., None] * nodes, 0.0)
    return np.moveaxis(values, -1, 0), np.moveaxis(vectors[..., 0, :] ** 2, -1, 0)


def rate_mixture(
    rate: npt.ArrayLike, dispersion: npt.ArrayLike, window: npt.ArrayLike, points: int = 7
) -> tuple[Floats, Floats]:
    """Rates that a stream takes in turn, and the share of time at each: a gamma-distributed slow rate.

    ``rate`` [1/s], ``dispersion`` of counts in ``window`` [s] broadcast to a shape S; both results are (points,) + S.
    Mean and variance of the rate are exact, no rate is negative. It describes a queue that settles at each rate, so the
    window should be long against the queue's own memory; a share over all requests takes `arrival_shares`. The
    quadrature is sharp for smooth functions of the rate; a share that falls off a cliff at capacity steps from point
    to point, by at most the share of one point.

    Source: gamma-mixed Poisson counts, Greenwood and Yule 1920; quadrature as in `gamma_points`.

    A stream of 5.53 requests/s with a dispersion of 16.1 over a minute.

    >>> rates, shares = rate_mixture(5.53, 16.1, 60.0, points=4)
    >>> rates.round(2).tolist(), shares.round(3).tolist()
    ([3.57, 5.15, 7.0, 9.42], [0.128, 0.576, 0.282, 0.014])
    """
    return gamma_points(rate, rate_variance(rate, dispersion, window), points)


def arrival_shares(rates: Floats, shares: Floats) -> Floats:
    """Share of requests, not of time, that arrive at each rate: shares times rates, normalised along the first axis.

    Both are (points, ...), as `rate_mixture` returns them; where no request arrives the shares of time are returned.

    >>> arrival_shares(np.array([1.0, 3.0]), np.array([0.5, 0.5])).tolist()
    [0.25, 0.75]
    """
    weight = rates * shares
    total = weight.sum(axis=0)
    return np.where(total > 0, weight / np.where(total > 0, total, 1.0), shares)


@dataclass(frozen=True, slots=True, eq=False)
class TwoRates:
    """A Poisson stream that alternates between two rates at random moments (MMPP of two states); columns (n,)."""

    low: Floats
    """Arrival rate in the calm state [1/s]."""
    high: Floats
    """Arrival rate in the busy state [1/s]."""
    leave_low: Floats
    """Rate of turning busy [1/s]."""
    leave_high: Floats
    """Rate of calming down [1/s]."""

    @property
    def rate(self) -> Floats:
        """Mean arrival rate [1/s]."""
        return (self.leave_high * self.low + self.leave_low * self.high) / (self.leave_low + self.leave_high)

    def dispersion(self, window: npt.ArrayLike) -> Floats:
        """Index of dispersion of the counts in a ``window`` [s]; (n,).

        1 + 2 V / (rate k) (1 - (1 - e^(-k w)) / (k w)), V the variance of the rate, k the sum of the switching rates.
        Source: Heffes and Lucantoni, IEEE Journal on Selected Areas in Communications 4 (1986).
        """
        decay = self.leave_low + self.leave_high
        variance = self.leave_low * self.leave_high * ((self.high - self.low) / decay) ** 2
        return 1 + 2 * variance / (self.rate * decay) * _growth(decay * floats(window))


def _growth(x: Floats) -> Floats:
    """1 - (1 - e^-x) / x, which is x / 2 at small x and 1 at large."""
    safe = np.maximum(x, 1e-12)
    # Below 1e-4 the difference would lose its digits; the series is then exact to the last.
    return np.where(safe < 1e-4, safe / 2 * (1 - safe / 3), 1 + np.expm1(-safe) / safe)  # noqa: PLR2004


def fit_two_rates(
    rate: npt.ArrayLike,
    windows: tuple[float, float],
    dispersions: tuple[npt.ArrayLike, npt.ArrayLike],
) -> TwoRates:
    """Two-state stream with a given mean rate and given dispersions at two windows.

    ``rate`` [1/s] > 0 and each of ``dispersions`` broadcast to (n,); ``windows`` [s] rise. The skewness of the rate,
    which these leave open, is that of a gamma distribution, so that neither rate is negative. Both are met
    where the excess over 1 grows with the window, but less than in proportion; otherwise the longer window is met and
    the correlation time is the nearest possible. A longer dispersion of at most 1 gives a Poisson stream.

    Source: the moments of Heffes and Lucantoni 1986, with the third moment replaced as said.

    >>> stream = fit_two_rates(5.53, (10.0, 60.0), (3.86, 16.1))
    >>> float(stream.dispersion(10.0).round(6)), float(stream.dispersion(60.0).round(6)), float(stream.rate.round(6))
    (3.86, 16.1, 5.53)
    """
    short, long = windows
    mean, first, second = np.broadcast_arrays(floats(rate), floats(dispersions[0]) - 1, floats(dispersions[1]) - 1)
    goal = np.maximum(second, 0.0) / np.maximum(first, 1e-12)
    low, high = np.full(mean.shape, np.log(SLOWEST / long)), np.full(mean.shape, np.log(FASTEST / short))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        slower = _growth(np.exp(middle) * long) / _growth(np.exp(middle) * short) > goal
        low, high = np.where(slower, middle, low), np.where(slower, high, middle)
    decay = np.exp((low + high) / 2)
    variance = np.maximum(second, 0.0) * mean * decay / (2 * _growth(decay * long))
    rates, shares = gamma_points(mean, variance, points=2)
    return TwoRates(low=rates[0], high=rates[1], leave_low=decay * shares[1], leave_high=decay * shares[0])


def two_rates_wait(stream: TwoRates, values: npt.ArrayLike, shares: npt.ArrayLike) -> Floats:
    """Mean wait of requests at one server behind a two-state stream (MMPP / G / 1) [s]. Exact.

    ``values`` [s] of the service time and their ``shares`` are (k,) or (n, k), the result is (n,); infinite where the
    mean load reaches 1, while the busy state alone may exceed it.

    Source: Fischer and Meier-Hellstern, Performance Evaluation 18 (1993), MMPP cookbook; for two states the matrix G
    follows from one equation in one unknown.

    At a mean load of 0.66 the busy state (7.13 requests/s) loads the server to 0.86; Poisson arrivals wait 0.118 s.

    >>> stream = fit_two_rates(5.53, (10.0, 60.0), (3.86, 16.1))
    >>> float(two_rates_wait(stream, [0.12], [1.0]).round(3))
    0.212
    """
    value, share = floats(values), floats(shares)
    mean, second = (value * share).sum(axis=-1), (value**2 * share).sum(axis=-1)
    rho = stream.rate * mean
    stable = rho < 1
    up, down, low, high = stream.leave_low, stream.leave_high, stream.low, stream.high
    g = _busy_end(stream, value, share)
    # w solves (Q + e pi) w = (low, high), Q the generator and pi its stationary row.
    decay = up + down
    rate = stream.rate
    stays = down / decay
    w_low, w_high = rate + (low - rate) / -decay, rate + (high - rate) / -decay
    idle = np.where(stable, 1 - rho, 1.0)
    row_low = idle * (1 - g) + mean * stays * low
    row_high = idle * g + mean * (1 - stays) * high
    virtual = (2 * rho + rate * second - 2 * mean * (row_low * w_low + row_high * w_high)) / (2 * idle)
    wait = (virtual - rate * second / 2) / np.where(rho > 0, rho, 1.0)
    return np.where(stable, np.maximum(wait, 0.0), np.inf)


def _busy_end(stream: TwoRates, value: Floats, share: Floats) -> Floats:
    """Share of busy periods that end in the busy state: stationary row (1 - g, g) of the matrix G of the cookbook."""
    up, down, low, high = stream.leave_low, stream.leave_high, stream.low, stream.high
    # G = [[1 - x, x], [y, 1 - y]]; x is sought in (0, 1).
    left, right = np.zeros(up.shape), np.ones(up.shape)
    for _ in range(HALVINGS):
        x = (left + right) / 2
        denominator = up + x * (low - high)
        feasible = denominator > 0
        y = np.where(feasible, down * x / np.where(feasible, denominator, 1.0), np.inf)
        exponent = (up + down + low * x + high * np.where(feasible, y, 1.0))[..., None]
        ends = (share * np.exp(-exponent * value)).sum(axis=-1)
        short = feasible & (x + y < 1 - ends)
        left, right = np.where(short, x, left), np.where(short, right, x)
    x = (left + right) / 2
    y = down * x / np.maximum(up + x * (low - high), 1e-300)
    return floats(x / (x + y))

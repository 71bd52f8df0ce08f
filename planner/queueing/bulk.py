"""Service in batches at regular moments: a server that looks up every interval and takes what has come, up to a cap."""

import numpy as np
import numpy.typing as npt

from planner.numeric import Floats, floats

PASSES = 200
"""Most fixed-point passes for the roots; each Newton step after them squares the error."""


def _roots(mean: Floats, capacity: int) -> npt.NDArray[np.complex128]:
    """Roots z != 1 of z^capacity = exp(mean (z - 1)) within the unit circle; shape (capacity - 1, n)."""
    unity = np.exp(2j * np.pi * np.arange(1, capacity) / capacity)[:, None]
    share = mean / capacity
    z = np.zeros((capacity - 1, len(mean)), complex)
    for _ in range(PASSES):
        # Newton on z - unity exp(share (z - 1)); the map contracts by share < 1, so the start at 0 is safe.
        image = unity * np.exp(share * (z - 1))
        step = (z - image) / (1 - share * image)
        z = z - step
        if np.abs(step).max(initial=0.0) < 1e-14:  # noqa: PLR2004
            break
    return z


def bulk_wait(rate: npt.ArrayLike, interval: npt.ArrayLike, capacity: int) -> Floats:
    """Mean wait until a batch departs that takes at most ``capacity`` requests every ``interval`` [s]. Exact.

    Arrivals are Poisson with ``rate`` [1/s]; both broadcast to (n,). With A = rate interval, s = capacity and z_j the
    roots of z^s = exp(A (z - 1)) inside the unit circle other than 1,

    W = interval / 2 + (sum of 1 / (1 - z_j) - (s (s - 1) - A^2) / (2 (s - A))) / rate.

    The first part is the residual of the interval in progress, the second the wait for a place. Infinite at or above
    capacity.

    Source: Bailey, Journal of the Royal Statistical Society B 16 (1954); mean by Downton, ibid. 17 (1955).

    One place every second is M/D/1 with a vacation of a second: 2.0 + 0.5. With ample places only the residual stays.

    >>> float(bulk_wait(0.8, 1.0, 1).round(6)), float(bulk_wait(0.8, 1.0, 40).round(6))
    (2.5, 0.5)
    >>> float(bulk_wait(6.4, 1.0, 8).round(4))
    0.652
    """
    arrival, period = np.broadcast_arrays(floats(rate), floats(interval))
    mean = arrival * period
    stable = mean < capacity
    safe = np.where(stable, mean, 0.5 * capacity)
    roots = _roots(safe.ravel(), capacity)
    poles = (1 / (1 - roots)).real.sum(axis=0).reshape(safe.shape)
    left_over = poles - (capacity * (capacity - 1) - safe**2) / (2 * (capacity - safe))
    # Below the rounding of the two large terms nobody is left over; without arrivals nobody is at all.
    queued = np.maximum(left_over, 0.0) / np.where(arrival > 0, arrival, 1.0)
    return np.where(stable, period / 2 + queued, np.inf)

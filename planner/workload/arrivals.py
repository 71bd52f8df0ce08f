"""What a trace of arrivals says: arrays of times and lengths in, floats out."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from planner.numeric import Floats

EVEN = 0.01
"""Coefficient of variation of the steps up to which a time grid counts as even."""
CROWDED = 1.5
"""Arrivals of one time stamp from which a time grid counts as quantised."""
GOLDEN = (5**0.5 - 1) / 2
"""Irrational step whose multiples cover a circle most evenly without ever repeating."""


def index_of_dispersion(times: npt.ArrayLike, window: float, horizon: float | None = None) -> float:
    r"""Variance over mean of the counts in windows of one length; 1 for a Poisson stream.

    .. math:: I(w) = \operatorname{Var} N(w) / \operatorname{E} N(w)

    Parameters
    ----------
    times : (n,)
        Arrival times, in any order [s].
    window
        Length of the windows [s]; only whole windows are counted, from the first arrival on.
    horizon
        End of the last window after the first arrival; the last arrival where absent [s].

    Raises
    ------
    ValueError
        Where fewer than two windows fit.

    References
    ----------
    D. R. Cox, P. A. W. Lewis, *The Statistical Analysis of Series of Events*, Methuen 1966.

    Examples
    --------
    >>> index_of_dispersion([0.5, 1.5, 2.5, 3.5, 4.5], 1.0), index_of_dispersion([0, 0, 0, 0, 4], 2.0)
    (0.0, 4.0)

    """
    at = np.sort(np.asarray(times, dtype=np.float64))
    at = at - at[0]
    windows = int((at[-1] if horizon is None else horizon) // window)
    if windows < 2:  # noqa: PLR2004 - a variance needs two
        msg = f"{at[-1]:g} s of arrivals do not hold two windows of {window:g} s"
        raise ValueError(msg)
    cell = (at // window).astype(np.int64)
    counts = np.bincount(cell[cell < windows], minlength=windows)
    return float(counts.var(ddof=1) / counts.mean())


def quantised_grid(times: npt.ArrayLike) -> float | None:
    """Step of the grid that time stamps were rounded to [s]; None where they were not.

    A coarse grid fakes burstiness in windows that are not much longer than its step: all arrivals of a step fall into
    one window. It shows as several arrivals on each distinct time stamp and even steps between those.

    >>> quantised_grid([0, 0, 3, 3, 3, 6, 9, 9]), quantised_grid([0, 0.4, 3, 3.3, 5])
    (3.0, None)
    """
    at = np.asarray(times, dtype=np.float64)
    distinct = np.unique(at)
    if len(distinct) < 3 or len(at) < CROWDED * len(distinct):  # noqa: PLR2004 - evenness needs two steps
        return None
    steps = np.diff(distinct)
    return float(np.median(steps)) if steps.std() < EVEN * steps.mean() else None


def gridded_dispersion(times: npt.ArrayLike, steps: int) -> float:
    """Index of dispersion of time stamps on a quantised grid, in windows of ``steps`` whole grid steps.

    A window of 1 s or 10 s on a grid of 3 s holds now more, now fewer steps and shows the rounding, not the arrivals.
    Steps without any arrival are not on the grid, so this serves streams that are busy in every step.

    >>> round(gridded_dispersion([0, 0, 3, 3, 3, 6, 9, 9], 1), 3), gridded_dispersion([0, 0, 3, 3, 6, 6, 9, 9], 2)
    (0.333, 0.0)
    """
    _, counts = np.unique(np.asarray(times, dtype=np.float64), return_counts=True)
    windows = len(counts) // steps
    if windows < 2:  # noqa: PLR2004 - a variance needs two
        msg = f"{len(counts)} time stamps do not hold two windows of {steps}"
        raise ValueError(msg)
    sums = counts[: windows * steps].reshape(windows, steps).sum(axis=1)
    return float(sums.var(ddof=1) / sums.mean())


def length_quantiles(lengths: npt.ArrayLike, levels: Sequence[float]) -> dict[float, float]:
    """Return lengths at each percentile (0 to 100), linear between order statistics.

    >>> length_quantiles([10, 20, 30], [0, 25, 100])
    {0: 10.0, 25: 15.0, 100: 30.0}
    """
    marks = np.percentile(np.asarray(lengths, dtype=np.float64), list(levels))
    return dict(zip(levels, marks.tolist(), strict=True))


def golden_shifts(copies: int, horizon: float) -> Floats:
    """Shifts that spread copies over the horizon: multiples of the golden ratio, shape (copies,) [s].

    Even spacing would make the sum periodic and cancel every swing longer than the spacing, as independent copies never
    do; multiples of an irrational number do not.

    >>> golden_shifts(4, 100.0).round(1).tolist()
    [0.0, 61.8, 23.6, 85.4]
    """
    return np.asarray(np.arange(copies) * GOLDEN % 1.0 * horizon, dtype=np.float64)


def superpose(times: npt.ArrayLike, shifts: npt.ArrayLike, horizon: float) -> Floats:
    """Lay copies of a stream over each other, each shifted round the horizon; sorted, shape (n * copies,) [s].

    Parameters
    ----------
    times : (n,)
        Arrival times, from 0 to less than ``horizon`` [s].
    shifts : (copies,)
        Shift of each copy [s].
    horizon
        Length of the circle [s].

    Examples
    --------
    >>> superpose([0.0, 1.0], [0.0, 9.5], 10.0).tolist()
    [0.0, 0.5, 1.0, 9.5]

    """
    at = np.asarray(times, dtype=np.float64)
    moved = (at[None, :] + np.asarray(shifts, dtype=np.float64)[:, None]) % horizon
    return np.sort(moved, axis=None)

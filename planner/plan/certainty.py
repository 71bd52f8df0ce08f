"""How sure a plan is: how far the times of its steps may be off, and with what probability it holds all the same.

Measured times are taken as predicted times a factor whose logarithm is normal on either side of its median, and whose
10th and 90th percentiles are the band of comparable measurements. One factor is on the time of all steps: a queue
behind slower steps is longer, so what follows from it is evaluated, not multiplied. A second one, independent, is on
the time to first token, which holds what no step accounts for.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log, sqrt

import numpy as np

from planner.numeric import normal_cdf
from planner.spec.bands import Bands
from planner.spec.model import ModelCard

TENTH = 1.2815515655446004
"""Standard deviations between the median of a normal variable and its 90th percentile."""
KIND = "fixed_concurrency"
"""Kind of the measurements that bands of a plan come from: it alone states TTFT and TPOT in large numbers."""
REACH = 8.0
"""Largest factor, and the inverse of the least, that is tried for what breaks a promise."""
HALVINGS = 10


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor on predicted times."""

    low: float
    """10th percentile."""
    median: float
    high: float
    """90th percentile."""

    def below(self, value: float) -> float:
        """Probability that the factor is at most ``value`` > 0.

        >>> unsure = Factor(0.8, 1.0, 1.5)
        >>> [round(unsure.below(at), 3) for at in (0.8, 1.0, 1.5)]
        [0.1, 0.5, 0.9]
        """
        far = log(value / self.median)
        width = log(self.high / self.median) if far > 0.0 else log(self.median / self.low)
        if width <= 0.0:
            return 1.0 if far >= 0.0 else 0.0
        return float(normal_cdf(np.array(far / width * TENTH)))

    @property
    def spread(self) -> float:
        """Standard deviation of the logarithm, as if it were the same on either side."""
        return log(self.high / self.low) / (2.0 * TENTH)


@dataclass(frozen=True, slots=True)
class Certainty:
    """What is known of the times of one model on one kind of accelerator."""

    step: Factor
    """On the time of every step."""
    first: Factor
    """On the time to first token, beside that of its steps."""
    edge: float
    """What times to first token are planned with beside that: 1, or the long end of their band."""
    measured: bool
    """Whether anything comparable was measured on accelerators of this family."""


def certainty(bands: Bands, family: str, model: ModelCard, *, confident: bool) -> Certainty:
    """Return what is known of a model on accelerators of a family.

    A ``confident`` plan has the long end of the band in its step times already: its factors are relative to that.
    """

    def factor(metric: str) -> Factor:
        low, high = bands.of(KIND, metric, family, sparse=model.sparse)
        return Factor(low, 1.0, high)

    step, first, edge = factor("tpot"), factor("ttft"), 1.0
    if confident:
        edge = first.high
        step, first = (Factor(one.low / one.high, 1.0 / one.high, 1.0) for one in (step, first))
    return Certainty(step, first, edge, bands.measured(KIND, "tpot", family))


def breaks_at(holds: Callable[[float], bool]) -> float:
    """Return the largest factor up to which something holds, between 1 / ``REACH`` and ``REACH``, or one of these.

    ``holds`` is true below some factor and false above.

    >>> round(breaks_at(lambda factor: factor <= 2.0), 2)
    2.0
    """
    low, high = (0.0, log(REACH)) if holds(1.0) else (-log(REACH), 0.0)
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if holds(exp(middle)) else (low, middle)
    return exp((low + high) / 2.0)


def better(plan: dict[str, float], other: dict[str, float], spreads: dict[str, float]) -> float:
    """Probability that ``other`` is cheaper than ``plan`` once the true step times are known.

    Both name what they differ in: cost by subject, a subject being one model in one format on one kind of accelerator.
    Replicas grow with step times, so costs do. Errors of one subject are one error, whatever its layout, and those of
    different subjects are independent: the logarithm of the ratio of the costs is then nearly normal, with the variance
    sum over subjects of (share of the plan's cost - share of the other's)^2 times the square of ``spreads``.

    >>> better({"a": 100.0}, {"a": 104.0}, {"a": 0.2})
    0.0
    >>> round(better({"a": 100.0}, {"b": 104.0}, {"a": 0.2, "b": 0.2}), 2)
    0.44
    """
    whole, rival = sum(plan.values()), sum(other.values())
    if whole <= 0.0 or rival <= 0.0:
        return 0.0
    names = sorted({*plan, *other})
    variance = sum(
        (plan.get(name, 0.0) / whole - other.get(name, 0.0) / rival) ** 2 * spreads[name] ** 2 for name in names
    )
    far = log(rival / whole)
    if variance <= 1e-18:  # noqa: PLR2004 - the square of rounding
        return 0.5 if far == 0.0 else float(far < 0.0)
    return float(normal_cdf(np.array(-far / sqrt(variance))))

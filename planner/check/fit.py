"""Least squares on the logarithm of predicted over measured, with priors, and with less weight on what lies far out.

Gauss-Newton with weights of Cauchy's kind (Holland and Welsch, Communications in Statistics 1977, section 3) and
normal priors; a step that does not lessen the cost is halved. Left-out predictions are linear steps from the full fit.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from planner.check.accuracy import configuration_key
from planner.check.expression import Expressed
from planner.numeric import Bools, Floats, Ints

NOISE = {"ttft": 0.4, "tpot": 0.12, "prefill_time": 0.15, "decode_step_time": 0.12}
"""Expected spread of the logarithm by metric; 0.2 for all others."""
BUMP = 0.05
"""Step of the logarithm that slopes are taken over."""
FAR = 3.0
"""Errors, in multiples of the noise, from which on a row loses half its weight."""
HALVINGS = 4
LOST = 3.0
"""Error that a row counts with where a step would not let it fit in memory."""
LONGEST = 0.6
"""Longest step of a logarithm."""


def noise_of(metric: str) -> float:
    """Return the expected spread of the logarithm of a metric.

    >>> noise_of("ttft_p99"), noise_of("output_tokens_per_s")
    (0.4, 0.2)
    """
    return NOISE.get(metric, NOISE.get(metric[:4], 0.2))


class Fit(ABC):
    """A fit under way: what its values are, and what they predict, is up to those who derive from it."""

    def __init__(self, rows: Sequence[Expressed], trusted: Bools, precision: Floats) -> None:
        """Prepare the rows; those not ``trusted`` are predicted, but not fitted on.

        ``precision`` has the inverse variance of the prior of each value, which is normal around zero.
        """
        self.rows, self.trusted, self.precision = rows, trusted, precision
        self.value: Floats = np.zeros(len(precision))
        self.measured: Floats = np.log([one.row.value for one in rows])
        self.noise: Floats = np.array([noise_of(one.row.metric) for one in rows])
        alike = [(configuration_key(one), one.row.metric) for one in rows]
        count = Counter(alike)
        self.share: Floats = np.array([count[one] ** -0.25 for one in alike])
        """Rows of one configuration err together, so many of them weigh less than as many configurations."""

    @abstractmethod
    def predicted(self) -> Floats:
        """Logarithm of every prediction with the values as they are, (rows,); NaN where it does not fit in memory."""

    @abstractmethod
    def design(self, base: Floats) -> Floats:
        """Return the derivative of every prediction by every value, (rows, values)."""

    def weights(self, error: Floats) -> Floats:
        """Weight of each row: by its noise, its configuration's size, and how far out it is."""
        return np.asarray(self.share / self.noise**2 / (1.0 + (error / self.noise / FAR) ** 2))

    def normal(self, design: Floats, error: Floats, used: Bools) -> Floats:
        """Inverse of the covariance that the values have once the rows are known, (values, values)."""
        matrix, weight = design[used], self.weights(error)[used]
        return np.asarray((matrix * weight[:, np.newaxis]).T @ matrix + np.diag(self.precision))

    def solved(self, design: Floats, error: Floats, used: Bools) -> Floats:
        """Values at the minimum of the linear problem."""
        matrix, weight = design[used], self.weights(error)[used]
        right = (matrix * weight[:, np.newaxis]).T @ (error[used] + matrix @ self.value)
        return np.asarray(np.linalg.solve(self.normal(design, error, used), right))

    def cost(self, used: Bools) -> float:
        """Return what the fit lessens: residuals of Cauchy's kind, and the distance of the values from zero."""
        error = (self.measured - self.predicted())[used]
        error = np.where(np.isfinite(error), error, LOST) / self.noise[used] / FAR
        rows = FAR**2 / 2.0 * self.share[used] * np.log1p(error**2)
        return float(rows.sum() + self.precision @ self.value**2 / 2.0)

    def move(self, step: Floats, used: Bools) -> None:
        """Go a step, or half of it as often as it does not help."""
        start, before = self.value, self.cost(used)
        for _ in range(HALVINGS):
            self.value = start + step
            if self.cost(used) < before:
                return
            step = step / 2.0
        self.value = start

    def run(self, rounds: int, watch: Callable[[int, Floats], None] | None = None) -> tuple[Floats, Floats]:
        """Fit; returns the last predictions and the design there. ``watch`` is shown the errors of each round."""
        for number in range(rounds):
            base = self.predicted()
            if watch is not None:
                watch(number, (self.measured - base)[np.isfinite(base) & self.trusted])
            self.step(base, self.design(base))
        base = self.predicted()
        return base, self.design(base)

    def step(self, base: Floats, design: Floats) -> None:
        """Go to the minimum of the linear problem, or as far towards it as lessens the cost."""
        used = np.isfinite(base) & self.trusted
        wanted = self.solved(design, self.measured - base, used)
        self.move(np.clip(wanted - self.value, -LONGEST, LONGEST), used)

    def left_out(self, base: Floats, design: Floats, labels: Sequence[object], folds: int | None) -> Floats:
        """Predictions of each row by a fit without its fold."""
        fold = folded(labels, folds)
        error, out = self.measured - base, base.copy()
        used = np.isfinite(base) & self.trusted
        for one in np.unique(fold):
            away = fold == one
            value = self.solved(design, error, used & ~away)
            out[away] = base[away] + design[away] @ (value - self.value)
        return out


def folded(labels: Sequence[object], folds: int | None) -> Ints:
    """Return the fold of each row; rows of one label share it. Each label is a fold of its own without ``folds``."""
    order = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    draw = np.random.default_rng(1).permutation(len(order))
    return np.array([draw[order[label]] % folds if folds else order[label] for label in labels])

"""Rates, lengths and burstiness of a workload as numbers.

A length distribution becomes a few bins whose values are conditional means, so that every mean over bins is the mean
over the distribution. Burstiness is the index of dispersion, variance over mean of the counts in windows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from planner.numeric import Floats
from planner.spec.scenario import Burstiness, Lengths, WorkloadSpec

HOUR = 3600.0
DAY = 24 * HOUR
WINDOWS = (1.0, 10.0, 60.0)
"""Windows in which arrivals are counted [s]."""
TAIL = 0.9
"""Level above which bins halve their width."""
HALVINGS = 12
"""Most bins above ``TAIL``: the last one holds one request in 20,000."""


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """A distribution as weighted values, rising; both columns have shape (k,)."""

    value: Floats
    """Mean of the distribution within each bin."""
    share: Floats
    """Probability of each bin; the sum is 1."""

    @property
    def mean(self) -> float:
        """Mean of the distribution."""
        return float(self.share @ self.value)

    @property
    def second(self) -> float:
        """Second moment of the bins; below that of the distribution by the variance within bins."""
        return float(self.share @ self.value**2)

    @property
    def maximum(self) -> float:
        """Largest value: the mean of the uppermost bin."""
        return float(self.value[-1])

    def scaled(self, factor: float) -> Self:
        """Return the same distribution with each value times ``factor``."""
        return type(self)(value=self.value * factor, share=self.share)


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """One kind of request, in SI floats."""

    name: str
    model: str
    """Name of a model card."""
    input: Bins
    """Input tokens."""
    output: Bins
    """Output tokens."""
    mean_rate: float
    """24-hour mean [req/s]."""
    hourly: Floats
    """Mean rate of each hour, shape (24,); of a deadline workload, the least even rate that keeps it [req/s]."""
    peak_rate: float
    """Rate of the busiest hour [req/s]; not below the largest of ``hourly``."""
    dispersion: Floats
    """Index of dispersion of the counts in each of ``WINDOWS`` at ``peak_rate``, shape (3,); 1 for Poisson."""
    hit_rate: float
    """Share of the input tokens found in the cache."""
    ttft: float | None
    """Limit on the time to first token [s]."""
    tpot: float | None
    """Limit on the time per output token [s]."""
    share: float
    """Share of requests that must meet both limits."""
    percentile: float
    """Percentile to display."""
    deadline: float | None
    """Time from ``start`` until all documents must be done [s]."""
    start: float | None
    """Start of a deadline run [s after midnight]."""
    documents: int | None
    """Requests of one deadline run."""


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Traffic of several workloads that one pool serves together."""

    input: Bins
    output: Bins
    mean_rate: float
    hourly: Floats
    """Sum of the rates, hour by hour, shape (24,) [req/s]."""
    peak_rate: float
    """Rate of the hour that is busiest in sum [req/s]."""
    dispersion: Floats
    """Of the superposed stream, the streams taken as independent, shape (3,)."""
    hit_rate: float
    """Share of all input tokens found in the cache."""


def edges(count: int) -> Floats:
    """Levels that cut a distribution into bins, shape (count + 1,): even up to 90 %, then halving towards the top.

    >>> edges(6).round(4).tolist()
    [0.0, 0.3, 0.6, 0.9, 0.95, 0.975, 1.0]
    """
    if count < 1:
        msg = f"count must be at least 1, not {count}"
        raise ValueError(msg)
    tail = min(count // 2, HALVINGS)
    if tail == 0:
        return np.linspace(0.0, 1.0, count + 1)
    body = np.linspace(0.0, TAIL, count - tail + 1)
    return np.concatenate([body, 1.0 - (1.0 - TAIL) * 0.5 ** np.arange(1, tail), [1.0]])


def bins(lengths: Lengths, count: int = 16) -> Bins:
    """Cut a length distribution into ``count`` bins that keep its mean.

    Parameters
    ----------
    lengths
        A constant (one bin), a lognormal, or a table of quantiles, linear between its points and scaled to ``mean``
        where one is given [tokens].
    count
        Number of bins; more of them lie in the upper tail, see :func:`edges`.

    Returns
    -------
    Bins
        Values are at least 1 token: where the distribution falls below, it is cut at 1 and the rest of it drawn
        towards 1 so that the mean stays; where it is cut at ``longest``, they end there and the mean falls.

    Examples
    --------
    >>> table = bins(Lengths(quantiles={0: 10, 50: 100, 100: 1000}), count=4)
    >>> table.value.round(2).tolist(), round(table.mean, 6)
    ([50.5, 419.5, 865.0, 955.0], 302.5)

    """
    if lengths.constant is not None:
        return Bins(value=np.array([float(lengths.constant)]), share=np.ones(1))
    levels = edges(count)
    share = np.diff(levels)
    partial = _table_partial(lengths, levels) if lengths.quantiles is not None else _lognormal_partial(lengths, levels)
    value = np.maximum.accumulate(np.diff(partial) / share)  # rounding may undo the order of equal values
    value = _at_least_one(value, share)
    return Bins(value=value if lengths.longest is None else np.minimum(value, lengths.longest), share=share)


def _table_partial(lengths: Lengths, levels: Floats) -> Floats:
    """Integral of the quantile function from 0 to each level, of a table."""
    table = sorted((lengths.quantiles or {}).items())
    knots = np.array([level / 100 for level, _ in table])
    marks = np.array([mark for _, mark in table])
    area = np.concatenate([[0.0], np.cumsum(np.diff(knots) * (marks[1:] + marks[:-1]) / 2)])
    cell = np.clip(np.searchsorted(knots, levels, side="right") - 1, 0, len(knots) - 2)
    within = (levels - knots[cell]) * (marks[cell] + np.interp(levels, knots, marks)) / 2
    scale = lengths.mean / area[-1] if lengths.mean is not None else 1.0
    result: Floats = (area[cell] + within) * scale
    return result


def _lognormal_partial(lengths: Lengths, levels: Floats) -> Floats:
    """Partial expectation of a lognormal up to each level: mean times Phi(z - sigma)."""
    centre, spread = lengths.lognormal()
    from statistics import NormalDist  # noqa: PLC0415 - brings fractions, decimals and hashes along

    normal = NormalDist()
    mean = np.exp(centre + spread**2 / 2)
    below = [normal.cdf(normal.inv_cdf(level) - spread) for level in levels[1:-1]]
    result: Floats = np.array([0.0, *below, 1.0]) * mean
    return result


def _at_least_one(value: Floats, share: Floats) -> Floats:
    """Lift values to 1 token without moving their mean."""
    mean = float(share @ value)
    if value[0] >= 1.0:
        return value
    lifted = np.maximum(value, 1.0)
    excess = lifted - 1.0
    total = float(share @ excess)
    return 1.0 + excess * (max(mean - 1.0, 0.0) / total if total > 0 else 0.0)


def hourly_rates(mean_rate: float, profile: Sequence[float] | None, peak_to_mean: float = 1.0) -> tuple[Floats, float]:
    """Rate of each hour, shape (24,), and of the busiest one [req/s].

    Without a profile all hours have the mean, and the busiest one is ``peak_to_mean`` times as busy: when it comes is
    not known.
    """
    if profile is None:
        return np.full(24, mean_rate), mean_rate * peak_to_mean
    weight = np.array(profile, dtype=np.float64)
    hourly = mean_rate * weight / weight.mean()
    return hourly, float(hourly.max())


def deadline_rates(documents: float, start: float, deadline: float) -> tuple[Floats, float]:
    """Least even rate that finishes ``documents`` between ``start`` and ``start + deadline``.

    Returns
    -------
    tuple
        Mean rate of each hour, shape (24,), and the even rate while the run lasts [req/s]. The hours carry all
        documents: their sum times 3600 s is ``documents``.

    Examples
    --------
    >>> hourly, rate = deadline_rates(7200, start=22.5 * 3600, deadline=7200.0)
    >>> rate, hourly[[21, 22, 23, 0, 1]].tolist()
    (1.0, [0.0, 0.5, 1.0, 0.5, 0.0])

    """
    rate = documents / deadline
    hour = np.arange(int((start + deadline) // HOUR) + 1)
    overlap = np.minimum((hour + 1) * HOUR, start + deadline) - np.maximum(hour * HOUR, start)
    hourly = np.bincount(hour % 24, weights=rate * np.maximum(overlap, 0.0) / HOUR, minlength=24)
    return hourly.astype(np.float64), rate


def rescaled_dispersion(burstiness: Burstiness, offered_rate: float) -> Floats:
    """Index of dispersion at the offered rate, in each of ``WINDOWS``; shape (3,).

    A stream above the measured rate is taken as independent copies laid over each other: variance and mean grow alike,
    so the index stays. (Playing one stream faster would read the index at longer windows instead.) A stream below it
    is taken as thinned at random with probability p, which leaves 1 + p (I - 1).

    References
    ----------
    D. R. Cox, V. Isham, *Point Processes*, Chapman & Hall 1980, chapter 4 (thinning, superposition).

    Examples
    --------
    >>> rescaled_dispersion(Burstiness(dispersion_1s=3, measured_rate="4 req/s"), 1.0).tolist()
    [1.5, 1.0, 1.0]

    """
    index = np.array([burstiness.dispersion_1s, burstiness.dispersion_10s, burstiness.dispersion_60s])
    if burstiness.measured_rate is None:
        return index
    return 1.0 + min(1.0, offered_rate / burstiness.measured_rate) * (index - 1.0)


def summarise(spec: WorkloadSpec) -> Workload:
    """Turn what a scenario says about one workload into numbers.

    An interactive workload is described at its busiest hour; a deadline workload by the even rate that just keeps the
    deadline, with a dispersion of 1 (nobody waits for its arrivals).
    """
    promise = spec.promise
    documents = spec.batch.documents if spec.batch else None
    dispersion = np.ones(len(WINDOWS))
    if documents is not None and promise.start is not None and promise.deadline is not None:
        mean_rate = documents / DAY
        hourly, peak_rate = deadline_rates(documents, promise.start, promise.deadline)
    elif spec.traffic is not None:
        mean_rate = spec.traffic.rate
        hourly, peak_rate = hourly_rates(mean_rate, spec.traffic.profile, spec.traffic.peak_to_mean)
        dispersion = rescaled_dispersion(spec.traffic.burstiness, peak_rate)
    else:
        msg = f"workload {spec.name} has neither traffic nor a deadline with documents"
        raise ValueError(msg)
    return Workload(
        name=spec.name,
        model=spec.model,
        input=bins(spec.lengths.input),
        output=bins(spec.lengths.output),
        mean_rate=mean_rate,
        hourly=hourly,
        peak_rate=peak_rate,
        dispersion=dispersion,
        hit_rate=spec.sharing.hit_rate,
        ttft=promise.ttft,
        tpot=promise.tpot,
        share=promise.share,
        percentile=promise.percentile if promise.percentile is not None else 100 * promise.share,
        deadline=promise.deadline,
        start=promise.start,
        documents=documents,
    )


def merge(workloads: Sequence[Workload]) -> Mixture:
    """Traffic of a pool that serves several workloads.

    Rates add hour by hour. Lengths and burstiness are those of the hour that is busiest in sum: each workload weighs
    as much as it contributes then, since the variances of independent streams add. Where several hours tie, the first
    is taken. Workloads without a profile count with their busiest hour at all times.
    """
    if not workloads:
        raise ValueError("a pool serves at least one workload")
    flat = [np.full(24, w.peak_rate) if np.ptp(w.hourly) == 0 else w.hourly for w in workloads]
    rates = np.array(flat)
    busiest = int(np.argmax(rates.sum(axis=0)))
    weight = rates[:, busiest]
    weight = weight / weight.sum()
    tokens = weight * np.array([w.input.mean for w in workloads])
    return Mixture(
        input=_mixed([w.input for w in workloads], weight),
        output=_mixed([w.output for w in workloads], weight),
        mean_rate=sum(w.mean_rate for w in workloads),
        hourly=np.sum([w.hourly for w in workloads], axis=0),
        peak_rate=float(rates[:, busiest].sum()),
        dispersion=weight @ np.array([w.dispersion for w in workloads]),
        hit_rate=float(tokens @ np.array([w.hit_rate for w in workloads]) / tokens.sum()),
    )


def _mixed(parts: Sequence[Bins], weight: Floats) -> Bins:
    """Mixture of distributions; bins of parts without weight drop out."""
    value = np.concatenate([part.value for part in parts])
    share = np.concatenate([part.share * w for part, w in zip(parts, weight, strict=True)])
    order = np.argsort(value, kind="stable")
    kept = order[share[order] > 0]
    return Bins(value=value[kept], share=share[kept])

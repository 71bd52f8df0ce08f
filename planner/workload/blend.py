"""Traffic of one pool: one workload, or several that share it. Bins are laid end to end, so each keeps its own."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.numeric import Floats
from planner.workload.stats import Bins, Workload

CONTEXTS = 16
"""Bins of the contexts of running sequences."""


@dataclass(frozen=True, slots=True, eq=False)
class Blend:
    """What a pool serves; bins of all workloads end to end, shares weighted by rate."""

    workloads: tuple[Workload, ...]
    input: Bins
    """Input tokens of a request."""
    output: Bins
    """Output tokens of a request."""
    cached: Floats
    """Of each input bin, the tokens found in the cache, shape of ``input``."""
    inputs: tuple[slice, ...]
    """Where each workload's input bins lie."""
    outputs: tuple[slice, ...]
    """Where each workload's output bins lie."""
    weight: Floats
    """Share of the requests of each workload."""
    peak_rate: float
    """Rate of the hour that is busiest in sum [req/s]."""
    dispersion: Floats
    """Index of dispersion in windows of 1, 10 and 60 s, (3,)."""

    @property
    def fresh(self) -> Floats:
        """Of each input bin, the tokens to prefill, at least 1; shape of ``input``."""
        return np.maximum(self.input.value - self.cached, 1.0)

    @property
    def steps(self) -> float:
        """Mean decode steps of a request: output tokens less the first, which prefill makes."""
        return float(self.output.share @ np.maximum(self.output.value - 1.0, 0.0))

    def contexts(self) -> Bins:
        """Contexts of the sequences that run at a random moment [tokens].

        A request is seen in proportion to its decode steps, at an even place among them: input + output * u
        (length-biased sampling, e.g. Harchol-Balter, *Performance Modeling and Design of Computer Systems*, 2013,
        section 23.3).
        """
        values, shares = [], []
        for index, weight in enumerate(self.weight):
            into, out = self.input.value[self.inputs[index]], self.output.value[self.outputs[index]]
            into_share, out_share = self.input.share[self.inputs[index]], self.output.share[self.outputs[index]]
            seen = out_share * np.maximum(out - 1.0, 1e-9)
            place = np.array([1.0, 3.0, 5.0, 7.0]) / 8.0
            values.append((into[:, None, None] + out[None, :, None] * place).ravel())
            shares.append(
                (into_share[:, None, None] * seen[None, :, None] * np.full(4, 0.25)).ravel() / max(weight, 1e-300)
            )
        value, share = np.concatenate(values), np.concatenate(shares)
        return _rebin(value, share / share.sum(), CONTEXTS)

    @property
    def longest(self) -> float:
        """Largest input and output together, over the workloads [tokens]."""
        return max(work.input.maximum + work.output.maximum for work in self.workloads)


def _rebin(value: Floats, share: Floats, count: int) -> Bins:
    """Pool weighted values into ``count`` bins of about equal share that keep the mean."""
    order = np.argsort(value, kind="stable")
    value, share = value[order], share[order]
    label = np.minimum((np.cumsum(share) - share / 2.0) * count, count - 1).astype(np.int64)
    weight = np.bincount(label, share, count).astype(np.float64)
    mass = np.bincount(label, share * value, count)
    kept = weight > 0
    return Bins(value=mass[kept] / weight[kept], share=weight[kept])


def busy_hours(workloads: Sequence[Workload]) -> Floats:
    """Rate of each workload in each hour, (workloads, 24) [req/s].

    One without a profile counts with its busiest hour at all times: when that comes is not known.
    """
    return np.array([np.full(24, w.peak_rate) if np.ptp(w.hourly) == 0.0 else w.hourly for w in workloads])


def blend(workloads: Sequence[Workload]) -> Blend:
    """Lay workloads over each other at the hour that is busiest in sum, the first of equals; dispersions add by rate.

    >>> from planner.spec.scenario import WorkloadSpec
    >>> from planner.workload.stats import summarise
    >>> text = {"traffic": {"rate": "4 req/s", "peak_to_mean": 1.5}, "promise": {"ttft": "1 s", "tpot": "50 ms"}}
    >>> lengths = {"input": {"constant": 100}, "output": {"constant": 10}}
    >>> chat = summarise(WorkloadSpec.model_validate({"name": "chat", "model": "m", "lengths": lengths, **text}))
    >>> blend([chat]).peak_rate, blend([chat, chat]).peak_rate
    (6.0, 12.0)
    """
    hourly = busy_hours(workloads)
    # A deadline run alone works at its even rate, though it may fill no whole hour.
    rates = hourly[:, int(np.argmax(hourly.sum(axis=0)))]
    if len(workloads) == 1:
        rates = np.array([workloads[0].peak_rate])
    peak = float(rates.sum())
    weight = rates / peak
    dispersion = np.sum([share * work.dispersion for share, work in zip(weight, workloads, strict=True)], axis=0)
    inputs, outputs, start, end = [], [], 0, 0
    for work in workloads:
        inputs.append(slice(start, start + len(work.input.value)))
        outputs.append(slice(end, end + len(work.output.value)))
        start, end = inputs[-1].stop, outputs[-1].stop
    return Blend(
        workloads=tuple(workloads),
        input=Bins(
            value=np.concatenate([work.input.value for work in workloads]),
            share=np.concatenate([part * work.input.share for part, work in zip(weight, workloads, strict=True)]),
        ),
        output=Bins(
            value=np.concatenate([work.output.value for work in workloads]),
            share=np.concatenate([part * work.output.share for part, work in zip(weight, workloads, strict=True)]),
        ),
        cached=np.concatenate([work.hit_rate * work.input.value for work in workloads]),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        weight=weight,
        peak_rate=peak,
        dispersion=dispersion,
    )

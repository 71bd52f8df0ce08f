"""Runs that would tell more: of all that could be made with the models at hand, the one that narrows a factor most.

The covariance that a fit has after a further run follows from the slopes of what the run would measure, whatever it
measures (D-optimal design; Atkinson and Donev, Optimum Experimental Designs, 1992, chapter 11).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.check.expression import ROUNDS, Expressed, Load
from planner.check.fit import noise_of
from planner.numeric import Bools, Floats

CONCURRENCIES = (1, 8, 64, 512)
INPUTS = (128, 2048, 16384)
OUTPUTS = (128, 1024)
DEGREES = (1, 2, 4, 8)
METRICS = ("ttft_mean", "tpot_mean")
BASES = 2
"""Pairs of number formats that runs are thought of for."""
USEFUL = 0.9
"""Standard deviation after a run over before, from which on the run tells nothing to speak of."""


@dataclass(frozen=True, slots=True)
class Run:
    """A load test that could be made."""

    model: str
    weights: str
    kv: str
    tp: int
    concurrency: int
    input: int
    output: int

    @property
    def words(self) -> str:
        """Say it.

        >>> Run("m", "bf16", "bf16", 4, 1, 2048, 128).words
        'm with TP 4 at concurrency 1, 2048 tokens in and 128 out'
        """
        return (
            f"{self.model} with TP {self.tp} at concurrency {self.concurrency}, "
            f"{self.input} tokens in and {self.output} out"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A run, and how what it measures depends on the factors."""

    run: Run
    slopes: Floats
    """(metrics, values)."""
    metrics: tuple[str, ...]


def experiments(rows: Sequence[Expressed]) -> list[tuple[Run, list[Expressed]]]:
    """Return runs with the models and number formats that were measured most, and the rows that they would give."""
    count = Counter((one.configuration.weights, one.configuration.kv) for one in rows)
    pairs = sorted(count, key=lambda pair: (-count[pair], pair))[:BASES]
    out = []
    for pair in pairs:
        some = [one for one in rows if (one.configuration.weights, one.configuration.kv) == pair]
        models = Counter(one.configuration.model.name for one in some)
        name = min(models, key=lambda model: (-models[model], model))
        base = next(one for one in some if one.configuration.model.name == name)
        for tp in DEGREES:
            for given in INPUTS:
                for made in OUTPUTS:
                    if given + made <= base.configuration.model.context:
                        out += [_experiment(base, tp, number, given, made) for number in CONCURRENCIES]
    return out


def _experiment(base: Expressed, tp: int, concurrency: int, given: int, made: int) -> tuple[Run, list[Expressed]]:
    of = base.configuration
    run = Run(of.model.name, of.weights, of.kv, tp, concurrency, given, made)
    ep = tp if of.layout[3] > 1 else 1
    configuration = replace(of, layout=(tp, 1, 1, ep), replicas=1)
    load = Load(given, made, None, float(concurrency), None, ROUNDS)
    change = {"kind": "fixed_concurrency", "concurrency": float(concurrency), "tp": tp, "regime": None}
    rows = [base.row.model_copy(update=change | {"metric": metric}) for metric in METRICS]
    return run, [Expressed(row, configuration, load) for row in rows]


def telling(
    candidates: Sequence[Candidate], information: Floats, scale: float, free: Bools, number: int | None
) -> Run | None:
    """Return the run that narrows a value most, or all values where none is named; None where no run does.

    Parameters
    ----------
    information
        Inverse covariance of all values, priors included, (values, values).
    scale
        Noise over what :func:`planner.check.fit.noise_of` expects.
    free
        Values that are fitted; the others are known, but for the one that is asked about.
    number
        Place of the value.

    """
    chosen = np.flatnonzero(free if number is None else free | (np.arange(len(free)) == number))
    if number is None:
        chosen = np.arange(len(free))

    def width(matrix: Floats) -> float:
        covariance = np.linalg.inv(matrix[np.ix_(chosen, chosen)])
        if number is None:
            return float(np.exp(np.linalg.slogdet(covariance)[1] / 2.0))
        return float(np.sqrt(covariance[chosen == number, chosen == number][0]))

    best, least = None, USEFUL * width(information)
    for one in candidates:
        weight = np.array([(scale * noise_of(metric)) ** -2.0 for metric in one.metrics])
        after = width(information + (one.slopes * weight[:, np.newaxis]).T @ one.slopes)
        if after < least * (1.0 - 1e-9):
            best, least = one.run, after
    return best

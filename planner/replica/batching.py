r"""Continuous batching: what one replica sustains at each decode batch.

With b sequences decoding, each needs E[out - 1] steps of T0(b); a prompt adds S(b) to the steps of everyone on its
rank. In one second there are N steps with N T0 + lambda S = 1, and by Little's law b = lambda E[out - 1] / N. Hence

.. math:: \lambda(b) = \frac{b}{E[out - 1] T_0(b) + b S(b)}, \qquad TPOT(b) = T_0(b) + \frac{b S(b)}{E[out - 1]}

which is the fixed point b = lambda E[out - 1] TPOT(b, prefill share), solved for lambda instead of b.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.engine.step import column
from planner.numeric import interpolate_rows, inverse_rows
from planner.replica.passes import BATCHES

if TYPE_CHECKING:
    from planner.numeric import Floats, Ints
    from planner.replica.passes import Passes
    from planner.replica.prefill import Prefill

FULL = 0.98
"""Share of the time that prompts may ride before the prefill queue only grows."""


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """What each (layout, budget) row does at each decode batch; (n, g) over the grid."""

    step: "Floats"
    """Pure decode step T0 [s]."""
    stall: "Floats"
    """Mean time that a prompt adds to everyone's steps, per prompt of the replica [s]."""
    rate: "Floats"
    """Requests that keep b sequences decoding [req/s]; non-decreasing."""
    served: "Floats"
    """Mean time that a prompt keeps later ones waiting, per prompt of the replica [s]."""


@dataclass(frozen=True, slots=True, eq=False)
class Operating:
    """What each candidate sustains; (n,) columns beside the tables of all (layout, budget) pairs."""

    pairs: Tables
    pair: "Ints"
    """Row of the tables."""
    batch_limit: "Floats"
    """Most sequences that decode together: batch limit, memory and prefill queue."""
    saturation: "Floats"
    """Largest sustainable rate of one replica [req/s]."""

    def at(self, rate: "Floats") -> "Floats":
        """Decode batch at which each candidate serves ``rate`` (n,) [req/s]; infinite beyond its table."""
        return inverse_rows(self.pairs.rate[self.pair], BATCHES, rate)

    def rows(self, index: "Ints") -> "Operating":
        """Return the same with only the rows of ``index``."""
        return Operating(self.pairs, self.pair[index], self.batch_limit[index], self.saturation[index])

    @property
    def tables(self) -> Tables:
        """The tables, a row for each candidate, (n, g)."""
        of, pair = self.pairs, self.pair
        return Tables(of.step[pair], of.stall[pair], of.rate[pair], of.served[pair])


@dataclass(frozen=True, slots=True, eq=False)
class Spot:
    """A place between two batches of the grid for each row, (n,)."""

    left: "Ints"
    part: "Floats"

    def pick(self, table: "Floats", rows: "Ints") -> "Floats":
        """Value of ``rows`` (n,) of a table (r, g) there, linear between the grid's batches; (r, g, k) gives (n, k)."""
        below, above = table[rows, self.left], table[rows, self.left + 1]
        part = self.part.reshape(self.part.shape + (1,) * (below.ndim - 1))
        return below + part * (above - below)


def spot(batch: "Floats") -> Spot:
    """Find batches (n,) on the grid; those outside are at its edge."""
    left = np.minimum(np.maximum(np.searchsorted(BATCHES, batch, side="right") - 1, 0), len(BATCHES) - 2)
    part = (batch - BATCHES[left]) / (BATCHES[left + 1] - BATCHES[left])
    return Spot(left, np.minimum(np.maximum(part, 0.0), 1.0))


def tpot(step: "Floats", stall: "Floats", rate: "Floats") -> "Floats":
    """Mean time per output token at a rate, any shape [s]: prompts take the share ``rate * stall`` of the time.

    >>> float(tpot(np.array(0.02), np.array(0.1), np.array(2.0)).round(4))
    0.025
    """
    return step / np.maximum(1.0 - rate * stall, 1e-3)


def slowest_batch(table: Tables, limit: float) -> "Floats":
    """Decode batch at which the mean TPOT of each row meets ``limit`` [s], (n,).

    0 where one sequence already misses it, infinite where the whole table keeps it.
    """
    each = np.maximum.accumulate(tpot(table.step, table.stall, table.rate), axis=1)
    found = inverse_rows(each, BATCHES, np.full(len(each), limit))
    return np.where(each[:, 0] > limit, 0.0, found)


def tables(passes: "Passes", row: "Ints", work: "Prefill | None", steps: float) -> Tables:
    """Tables of (layout, budget) rows with mean decode ``steps`` of a request; without ``work`` they decode only."""
    step = passes.decode[row]
    stall = served = np.zeros_like(step)
    if work is not None:
        stall = work.added_mean / column(work.lanes)
        served = work.work_mean / column(work.lanes)
    rate = np.maximum.accumulate(BATCHES / (max(steps, 1e-9) * step + BATCHES * stall), axis=1)
    return Tables(step, stall, rate, served)


def operating(table: Tables, pair: "Ints", cap: "Floats") -> Operating:
    """Operating point of candidates: row ``pair`` (n,) of the tables, ``cap`` (n,) sequences that fit.

    The rate at which the prefill queue fills bounds the batch; where it fills below one sequence, it bounds the rate.
    """
    queue = np.maximum.accumulate(table.rate * table.served, axis=1)
    grown = inverse_rows(queue, BATCHES, np.full(len(queue), FULL))
    limit = np.clip(np.minimum(cap, grown[pair]), 0.0, BATCHES[-1])
    rate, served = table.rate[pair], table.served[pair, 0]
    saturation = interpolate_rows(BATCHES, rate, np.maximum(limit, 1.0)) * np.minimum(limit, 1.0)
    bound = FULL / np.maximum(served, 1e-300)
    saturation = np.where(queue[pair, 0] >= FULL, np.minimum(saturation, bound), saturation)
    return Operating(table, pair, limit, saturation)

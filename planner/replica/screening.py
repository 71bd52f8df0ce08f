"""Screening: which candidates are worth their percentiles. The others keep the reason why not."""

from typing import TYPE_CHECKING

import numpy as np

from planner.engine.reasons import Reason
from planner.numeric import interpolate_rows
from planner.replica.batching import slowest_batch
from planner.replica.passes import BATCHES

if TYPE_CHECKING:
    from planner.numeric import Floats, Ints
    from planner.replica.candidates import Replicas

BUDGETS_KEPT = 3
"""Token budgets of a layout that are judged on percentiles."""
LIMITS_KEPT = 2
"""Batch limits of a layout and budget that are judged on percentiles."""
FAR = 2.5
"""A layout that needs so many times the accelerators of the best by its mean is not judged on percentiles."""


def mean_capacity(replicas: "Replicas") -> "Floats":
    """Return the requests that one replica carries with its means within the promises, (n,) [req/s].

    An upper bound of what the percentiles allow: the mean of a promise that most requests must meet lies below the
    limit.
    """
    op, table = replicas.operating, replicas.tables
    limits = [work.tpot for work in replicas.subject.traffic.workloads if work.tpot is not None]
    if not limits or replicas.role == "prefill":
        return op.saturation
    slowest = slowest_batch(table, min(limits))[replicas.pair]
    batch = np.minimum(slowest, op.batch_limit)
    reached = interpolate_rows(BATCHES, table.rate[replicas.pair], np.maximum(batch, 1.0))
    return np.where(slowest > 0.0, np.minimum(reached, op.saturation), 0.0)


def survivors(replicas: "Replicas", most: "Ints") -> "Replicas":
    """Mark all but the most promising candidates of each layout as dominated.

    Kept are, of layouts within reach of the best, the token budgets with the largest mean capacity and of each the
    smallest batch limits that reach it (ties: row order).
    """
    capacity = np.where(replicas.rejected == 0, mean_capacity(replicas), 0.0)
    peak = replicas.subject.traffic.peak_rate
    with np.errstate(divide="ignore"):
        need = np.where(capacity > 0, np.ceil(peak / capacity), np.inf) * replicas.size
    reach = need <= FAR * np.min(need, initial=np.inf)
    kept = np.zeros(len(replicas), bool)
    for layout in np.unique(replicas.row[(replicas.rejected == 0) & reach]):
        rows = np.flatnonzero((replicas.row == layout) & (replicas.rejected == 0))
        order = rows[np.lexsort((rows, replicas.limit[rows], -np.round(capacity[rows], 9)))]
        seen: dict[int, int] = {}
        for row in order:
            budget = int(replicas.budget[row])
            if seen.get(budget, 0) < LIMITS_KEPT and (budget in seen or len(seen) < BUDGETS_KEPT):
                seen[budget] = seen.get(budget, 0) + 1
                kept[row] = True
    alive = (replicas.rejected == 0) & (most > 0)
    if alive.any() and not kept.any():
        kept = alive
    return replicas.with_rejected(replicas.rejected | np.where(alive & ~kept, int(Reason.DOMINATED), 0))

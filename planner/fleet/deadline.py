"""Deadline work: a pool of its own, or the hours that interactive work on the same replicas leaves."""

from typing import TYPE_CHECKING

import numpy as np

from planner.numeric import interpolate_rows, least
from planner.replica.batching import tpot
from planner.replica.passes import BATCHES

if TYPE_CHECKING:
    from planner.numeric import Bools, Floats, Ints
    from planner.replica.batching import Operating
    from planner.workload.blend import Blend
    from planner.workload.stats import Workload

HOUR = 3600.0
SAFE = 0.95
"""Share of a rate that deadline work is planned on: replicas are neither equally fast nor given equally long work."""


def hours(work: "Workload") -> "Floats":
    """Share of each hour of the day that lies in the run's window, (24,).

    A window of more than a day counts as a whole day.

    >>> from types import SimpleNamespace
    >>> window = hours(SimpleNamespace(start=22 * 3600.0, deadline=8 * 3600.0))
    >>> float(window.sum()), window[21:24].tolist(), window[5:7].tolist()
    (8.0, [0.0, 1.0, 1.0], [1.0, 0.0])
    """
    if work.start is None or work.deadline is None:
        msg = f"workload {work.name} has no deadline"
        raise ValueError(msg)
    begin, end = work.start / HOUR, (work.start + min(work.deadline, 24.0 * HOUR)) / HOUR
    edges = np.arange(49, dtype=float)
    inside = np.clip(np.minimum(edges[1:], end) - np.maximum(edges[:-1], begin), 0.0, 1.0)
    both: Floats = inside[:24] + inside[24:]
    return both


def residence(op: "Operating", traffic: "Blend", batch: "Floats") -> "Floats":
    """Time that the longest of ``batch`` (n,) documents in a replica takes with its own prompt, (n,) [s].

    By Little's law a mean document stays ``b / lambda(b)``; the longest one decodes for as many more steps as it has
    more tokens. Batches beyond those of the grid count as its edges.
    """
    table, batch = op.tables, np.clip(batch, BATCHES[0], BATCHES[-1])
    step, stall, rate = (interpolate_rows(BATCHES, of, batch) for of in (table.step, table.stall, table.rate))
    longer = max(traffic.output.maximum - 1.0 - traffic.steps, 0.0)
    stay: Floats = batch / np.maximum(rate, 1e-300) + longer * tpot(step, stall, rate)
    return stay


def run_time(op: "Operating", traffic: "Blend", documents: float, count: "Ints | Floats") -> "Floats":
    """Time from the start of a run to its last document on ``count`` (n,) replicas of each candidate, (n,) [s].

    The fullest replica takes up as many documents as it decodes together, then each of the others as one ends. The
    last one starts when only a batch is left, and no run is shorter than the stay of its longest document.
    """
    each = np.ceil(documents / np.maximum(count, 1))
    batch = np.minimum(each, np.maximum(op.batch_limit, 1.0))
    queued = (each - batch) / np.maximum(op.saturation * SAFE, 1e-300)
    ends: Floats = queued + residence(op, traffic, batch)
    return ends


def dedicated(op: "Operating", traffic: "Blend", documents: float, deadline: float, most: "Ints") -> "Ints":
    """Least replicas that finish ``documents`` in ``deadline`` seconds, (n,); ``most + 1`` (n,) where none do."""

    def holds(count: "Ints") -> "Bools":
        return np.asarray(run_time(op, traffic, documents, count) <= deadline)

    return least(holds, np.ones_like(most), most)


def spare_rate(hourly: "Floats", peak: "Floats", replicas: "Ints", rate: "Floats") -> "Floats":
    """Deadline work that a pool does in each hour beside its interactive load, (n, 24) [req/s].

    Replicas carry the interactive peak with their promise; in an hour with less, the rest of their time is free, and
    each free replica does ``rate`` (n,).
    """
    free = 1.0 - np.minimum(hourly / np.maximum(peak[:, np.newaxis], 1e-12), 1.0)
    return free * replicas[:, np.newaxis] * rate[:, np.newaxis] * SAFE


def beside(
    work: "Workload", hourly: "Floats", peak_each: "Floats", rate: "Floats", low: "Ints", high: "Ints"
) -> "Ints":
    """Least replicas of a shared pool that also finish the run, (n,); ``high + 1`` where none do.

    Parameters
    ----------
    work
        The deadline work.
    hourly : (24,)
        Interactive rate of each hour [req/s].
    peak_each : (n,)
        Interactive rate that one replica carries with its promise [req/s].
    rate : (n,)
        Deadline work that one free replica does [req/s].
    low, high : (n,)
        Bounds; ``low`` carries the interactive work.

    """
    window = hours(work)

    def holds(count: "Ints") -> "Bools":
        done = spare_rate(hourly, peak_each * count, count, rate) @ (window * HOUR)
        return np.asarray(done >= float(work.documents or 0))

    return least(holds, low, high)


def finish(work: "Workload", done_per_hour: "Floats") -> float:
    """When a run ends that does ``done_per_hour`` (24,) documents in each whole hour of the day [s from its start].

    Infinity where a day does not suffice.
    """
    start = work.start or 0.0
    left, elapsed = float(work.documents or 0), 0.0
    for step in range(48):
        hour = int((start + elapsed) // HOUR) % 24
        until = HOUR - (start + elapsed) % HOUR
        pace = float(done_per_hour[hour]) / HOUR
        if pace * until >= left > 0.0 and pace > 0.0:
            return elapsed + left / pace
        left -= pace * until
        elapsed += until
        if step and elapsed >= 24.0 * HOUR:
            break
    return float("inf")

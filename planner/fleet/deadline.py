"""Deadline work: a pool of its own, or the hours that interactive work on the same replicas leaves."""

from typing import TYPE_CHECKING

import numpy as np

from planner.numeric import least

if TYPE_CHECKING:
    from planner.numeric import Bools, Floats, Ints
    from planner.workload.stats import Workload

HOUR = 3600.0
SAFE = 0.95
"""Share of a rate that deadline work is planned on: the run ramps up, drains, and shares nothing evenly."""


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


def dedicated(documents: float, deadline: float, rate: "Floats") -> "Ints":
    """Replicas that finish ``documents`` in ``deadline`` seconds at ``rate`` (n,) [req/s] each, (n,)."""
    return np.ceil(documents / np.maximum(deadline * rate * SAFE, 1e-12)).astype(np.int64)


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

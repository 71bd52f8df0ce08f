"""Measured replays: requests whose tokens were timed on a running engine, replayed by the simulator."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.check.lanes import QUEUE, Requests, Rules, Times, begun, time_per_token
from planner.check.stepping import feed, look
from planner.check.steptimes import ranks, rules, times
from planner.intake.traces import Trace
from planner.numeric import Floats
from planner.replica.candidates import Replicas

ROUNDS = 8


@dataclass(frozen=True, slots=True, eq=False)
class Replayed:
    """What the simulator makes of a trace."""

    ttft: Floats
    """(n,) [s]."""
    tpot: Floats
    """(n,), NaN where there is one output token [s]."""
    running: Floats
    """Requests that run at each moment that was asked for, (m,)."""
    waiting: Floats
    """Requests that wait then, (m,)."""
    factor: float
    """On all step times."""


def scaled(t: Times, factor: float) -> Times:
    """Return step times that are ``factor`` times as long."""
    return t._replace(
        linear=t.linear * factor, head=t.head * factor, decode=t.decode * factor, prefill=t.prefill * factor
    )


def replayed(of: Replicas, trace: Trace, moments: Sequence[float] = (), calibrate: int = 0) -> Replayed:
    """Replay a trace on one replica.

    Parameters
    ----------
    of
        One candidate.
    trace
        Requests.
    moments
        Times at which to count who runs and who waits, rising [s].
    calibrate
        Requests, from the first on, whose measured mean TPOT sets one factor on all step times; 0: none.

    """
    r, t = rules(of, 0, QUEUE), times(of, 0)
    factor = 1.0
    done = _play(of, r, t, trace, moments)
    if calibrate and trace.first is not None and trace.last is not None:
        some = slice(0, calibrate)
        measured = np.nanmean(time_per_token(trace.last - trace.first, trace.output)[some])
        for _ in range(ROUNDS):
            factor *= float(measured / np.nanmean(done.tpot[some]))
            done = _play(of, r, scaled(t, factor), trace, moments)
    return replace(done, factor=factor)


def _play(of: Replicas, r: Rules, t: Times, trace: Trace, moments: Sequence[float]) -> Replayed:
    count = len(trace)
    none = np.zeros(count, np.int64)
    q = Requests(trace.arrival, trace.input, none, trace.output, np.zeros(count), none)
    s, start, seen = begun(ranks(of, 0), r, count), 0, []
    for moment in moments:
        end = int(np.searchsorted(trace.arrival, moment))
        feed(s, q, r, t, (start, end))
        start = end
        seen.append(look(s, q, r, t, float(moment)))
    feed(s, q, r, t, (start, count))
    look(s, q, r, t, float("inf"))
    counts = np.array(seen, float).reshape(-1, 2)
    return Replayed(
        s.first - trace.arrival, time_per_token(s.end - s.first, trace.output), counts[:, 0], counts[:, 1], 1.0
    )

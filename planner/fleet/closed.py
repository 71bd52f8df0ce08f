r"""Closed loops: a fixed number of requests that circulate, each sent when another is done.

Benchmarks that hold a concurrency run so. With N requests in the replica, b of them decoding, and lambda(b) the rate
that keeps b decoding, Little's law closes the loop:

.. math:: N = \lambda(b) \, TTFT(b) + b

(J. D. C. Little, *A Proof for the Queuing Formula L = lambda W*, Operations Research 1961). The first N requests come
at once and wait for each other's prefill: the first burst. Where all requests have the same length, order lasts. In
mixed steps those that were prefilled one after the other end a step apart; a successor comes while the prompt before it
is in its step, and waits for that. Where prompts have steps of their own, all begin to decode at once, end at once, and
every round is a burst.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.engine.step import column
from planner.numeric import inverse_rows
from planner.replica.batching import FULL, spot, tpot
from planner.replica.passes import BATCHES
from planner.replica.prefill import latency

if TYPE_CHECKING:
    from planner.fleet.waiting import Rows
    from planner.numeric import Floats, Ints
    from planner.replica.prefill import Prefill


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A closed loop in its steady state; (n,) columns."""

    batch: "Floats"
    """Requests that decode."""
    rate: "Floats"
    """Requests that end in a second [req/s]."""
    tpot: "Floats"
    """Mean time per output token [s]."""
    ttft: "Floats"
    """Mean time to first token once the first burst is over [s]."""
    burst: "Floats"
    """Mean time to first token in the first burst [s]."""

    def mean_ttft(self, rounds: float) -> "Floats":
        """Mean time to first token of a run in which each place of the loop serves ``rounds`` requests [s]."""
        part = 1.0 / max(rounds, 1.0)
        return part * self.burst + (1.0 - part) * self.ttft


def _first(rows: "Rows", work: "Prefill", circulating: "Floats", *, even: bool) -> "Floats":
    """Time to first token at each batch of the grid in the steady state, (n, g) [s]."""
    op = rows.op
    step = op.pairs.step[op.pair]
    served = op.pairs.served[op.pair]
    riding = step if rows.mixed else np.zeros_like(step)
    chunks = work.chunks[work.row]
    own = latency(chunks, riding[:, :, np.newaxis], work.added[work.row], rows.stages[:, np.newaxis, np.newaxis])
    mean = own @ work.shares
    load = np.minimum(op.pairs.rate[op.pair] * served, FULL)
    others = 1.0 - 1.0 / np.maximum(column(circulating), 1.0)
    # Poisson arrivals see half a prefill more for each in the queue (M/D/1); one request alone never waits.
    wait = others * load * served / (2.0 * (1.0 - load))
    if even:
        # The first two of the order find no prompt before them.
        wait = np.maximum(wait, np.maximum(1.0 - 2.0 / np.maximum(column(circulating), 1.0), 0.0) * mean)
    return rows.handling + mean + (1.0 - load) * step / 2.0 * others + wait


def circulate(
    rows: "Rows", circulating: "Floats", budget: "Ints", sharing: Callable[["Floats"], "Floats"], *, even: bool
) -> Loop:
    """Steady state of ``circulating`` (n,) requests in a replica of each row, and its first burst.

    Parameters
    ----------
    rows
        Pools of one replica that prefills and decodes.
    circulating
        Requests in flight.
    budget
        Most tokens of a step of one rank, (n,).
    sharing
        Time per prompt where so many (n,) share steps that only prefill, over that of one alone.
    even
        Whether all requests have the same lengths.

    """
    op, work = rows.op, rows.work
    if work is None:
        raise ValueError("a closed loop needs prefill")
    fresh = float(rows.traffic.input.share @ rows.traffic.fresh)
    most = np.maximum(circulating, 1.0)
    # Prompts of one burst share steps.
    together = np.minimum(np.maximum(np.floor(budget * work.lanes / fresh), 1.0), most)
    rate = op.pairs.rate[op.pair]
    first = _first(rows, work, circulating, even=even)
    held = np.maximum.accumulate(rate * first + BATCHES, axis=1)
    batch = np.minimum(inverse_rows(held, BATCHES, circulating), np.minimum(op.batch_limit, BATCHES[-1]))
    # Below one request on average the loop is that one request, in prefill for part of the time.
    batch = np.maximum(batch, BATCHES[0])
    place = spot(batch)
    step, stall, served, ends = (
        place.pick(table, op.pair) for table in (op.pairs.step, op.pairs.stall, op.pairs.served, op.pairs.rate)
    )
    ttft = place.pick(first, np.arange(len(batch)))
    alone = batch <= BATCHES[0]
    ends = np.where(alone, np.minimum(ends, circulating / (ttft + rows.steps * step)), ends)
    # Who finds no place to decode waits for one (Little's law once more).
    waiting = np.maximum(circulating - batch - ends * ttft, 0.0)
    ttft = ttft + np.where(batch >= op.batch_limit - 1e-9, waiting / ends, 0.0)
    each = tpot(step, stall, ends)
    inside = np.minimum(circulating, np.maximum(op.batch_limit, 1.0))
    served = served if rows.mixed else served * sharing(inside)
    mean, whole = served * (inside + np.minimum(together, inside)) / 2.0, served * inside
    if even and not rows.mixed:
        batch = np.minimum(inside, BATCHES[-1])
        step = spot(batch).pick(op.pairs.step, op.pair)
        each = step + (whole - mean) / max(rows.steps, 1.0)
        ends = inside / (rows.handling + whole + rows.steps * step)
        ttft = circulating / ends - rows.steps * each
    # Those beyond the places wait for the first to end.
    beyond = np.maximum(circulating - inside, 0.0)
    burst = rows.handling + mean + beyond / most * (beyond / 2.0 / ends + rows.steps * step)
    return Loop(batch, ends, each, ttft, burst)

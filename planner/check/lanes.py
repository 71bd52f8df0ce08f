"""What the simulator's ranks and lanes are made of: requests, step times, rules, and where everything is.

See :mod:`planner.check.stepping` for what happens to them.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from planner.numeric import Floats, Ints

NOBODY = -1
QUEUE, TOKENS, TURN, DRAW = 0, 1, 2, 3
"""Routers: fewest requests, fewest prompt tokens to compute, in turn, at random."""


class Requests(NamedTuple):
    """Requests in the order of their arrival; (n,) columns."""

    arrival: "Floats"
    """[s]."""
    prompt: "Ints"
    """Input tokens."""
    cached: "Ints"
    """Of those, tokens whose keys and values are there already."""
    output: "Ints"
    """Output tokens; 1 in a prefill pool."""
    draw: "Floats"
    """Even random numbers below 1, for the router."""
    decoded: "Ints"
    """1 where the prompt was computed elsewhere, so that only decoding is left; else 0."""


class Times(NamedTuple):
    """Step times of one lane as tables; linear between points. See :mod:`planner.check.steptimes`."""

    tokens: "Floats"
    linear: "Floats"
    """By tokens of a step, (t,) [s]."""
    rows: "Floats"
    head: "Floats"
    """By sampled rows, (r,) [s]."""
    batches: "Floats"
    contexts: "Floats"
    decode: "Floats"
    """Decode attention by sequences and mean context, (b, c) [s]."""
    starts: "Floats"
    chunks: "Floats"
    prefill: "Floats"
    """Prefill attention of a chunk by tokens before it and its own, (s, k) [s]."""


class Rules(NamedTuple):
    """How a lane schedules."""

    budget: int
    """Most tokens of a step."""
    limit: int
    """Most sequences of a lane."""
    room: float
    """Tokens that the KV cache of a rank holds."""
    each: float
    """Tokens that a sequence occupies beside its own: its state, and half a block."""
    mixed: bool
    reserve: bool
    """Whether admission reserves the whole output at once."""
    chunked: bool
    """Whether a prompt may be cut; else it waits for a step that begins with it."""
    router: int
    stages: int
    """Lanes of a rank."""


class State(NamedTuple):
    """Where everything is; (k,) over ranks, (l,) over lanes, (n,) over requests."""

    gate: "Floats"
    """When the first stage is free, (k,) [s]."""
    head: "Ints"
    tail: "Ints"
    """Ends of the queue, (k,); NOBODY where it is empty."""
    queued: "Ints"
    waiting: "Ints"
    """Prompt tokens that are left to compute, (k,)."""
    part: "Ints"
    """Request whose prompt is partly done, (k,)."""
    used: "Floats"
    """Tokens that the cache holds or has promised, (k,)."""
    clock: "Floats"
    """When the next step may begin, (l,) [s]."""
    running: "Ints"
    """Sequences that decode, (l,)."""
    context: "Floats"
    """Tokens in their caches, (l,)."""
    step: "Ints"
    """Decode steps so far, (l,)."""
    heap_key: "Ints"
    """Step at which a sequence ends, (l, limit)."""
    heap_who: "Ints"
    next: "Ints"
    """Who stands behind in the queue, (n,)."""
    done: "Ints"
    """Tokens of the prompt that are computed, (n,)."""
    emitted: "Ints"
    """Output tokens when it began to decode last, (n,)."""
    joined: "Ints"
    """Step at which that was, (n,)."""
    order: "Ints"
    """When it was admitted, (n,)."""
    first: "Floats"
    """When its first token came [s], (n,)."""
    end: "Floats"
    """When its last token came [s], (n,)."""
    again: "Ints"
    """How often it was computed again, (n,)."""
    counters: "Ints"
    """Admissions so far; next lane in turn; steps; requests that no lane can hold, (4,)."""


def time_per_token(span: "Floats", output: "Ints") -> "Floats":
    """TPOT of requests whose last token came ``span`` after the first, (n,) [s]; NaN where one token is all."""
    return np.asarray(np.where(output > 1, span / np.maximum(output - 1, 1), np.nan))


def begun(ranks: int, r: Rules, count: int) -> State:
    """Return ranks that have nothing to do."""

    def whole(size: int, value: int = 0) -> "Ints":
        return np.full(size, value, np.int64)

    def real(size: int, value: float = 0.0) -> "Floats":
        return np.full(size, value)

    lanes = ranks * r.stages
    heap = np.zeros((lanes, r.limit), np.int64)
    return State(
        gate=real(ranks),
        head=whole(ranks, NOBODY),
        tail=whole(ranks, NOBODY),
        queued=whole(ranks),
        waiting=whole(ranks),
        part=whole(ranks, NOBODY),
        used=real(ranks),
        clock=real(lanes),
        running=whole(lanes),
        context=real(lanes),
        step=whole(lanes),
        heap_key=heap,
        heap_who=heap.copy(),
        next=whole(count, NOBODY),
        done=whole(count),
        emitted=whole(count),
        joined=whole(count),
        order=whole(count),
        first=real(count, np.nan),
        end=real(count, np.nan),
        again=whole(count),
        counters=whole(4),
    )

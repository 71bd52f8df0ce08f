"""The inner loop of the simulator: continuous batching of one pool, iteration by iteration, compiled by Numba.

A rank has a queue, a cache, and a lane for each stage of its pipeline: one micro-batch each, which enters the first
stage once the one before has left it. The queue is first come, first served; a prompt is cut to what is left of the
token budget, and its pieces may follow each other a stage apart (Mooncake's chunked pipeline, Qin et al., FAST 2025).
Mixed steps decode everyone and prefill beside (Agrawal et al., *Sarathi-Serve*, OSDI 2024); separate steps prefill
while anyone can be admitted, and decode else (Yu et al., *Orca*, OSDI 2022). Where the cache is full the sequence that
was admitted last gives up its blocks, goes back to the front of the queue and is computed again (Kwon et al.,
*PagedAttention*, SOSP 2023, section 4.5).

Decoding sequences are counted, not visited: a step adds a token to each, and a heap knows at which step each ends.
"""

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from planner.check.lanes import DRAW, NOBODY, TOKENS, TURN, Requests, Rules, State, Times
from planner.check.queues import across, along, held, left, lift, need, put_first, put_last, remove, take_first

if TYPE_CHECKING:
    from planner.numeric import Ints


@njit(cache=True)
def _give_up(s: State, q: Requests, r: Rules, lane: int) -> None:
    """Send the sequence of a lane that was admitted last, or the prompt in hand, back to the front of the queue."""
    rank = lane // r.stages
    who = s.part[rank]
    if who != NOBODY:
        s.part[rank] = NOBODY
        s.used[rank] -= need(s, q, r, who)
        s.waiting[rank] -= left(s, q, who)
    else:
        latest = 0
        for place in range(s.running[lane]):
            if s.order[s.heap_who[lane, place]] > s.order[s.heap_who[lane, latest]]:
                latest = place
        who = s.heap_who[lane, latest]
        context, occupied = held(s, q, r, lane, who)
        remove(s, lane, latest)
        s.context[lane] -= context
        s.used[rank] -= occupied
        s.emitted[who] += s.step[lane] - s.joined[who]
    s.done[who] = 0
    s.again[who] += 1
    put_first(s, q, rank, who)


@njit(cache=True)
def _decoding(s: State, r: Rules, rank: int) -> int:
    """Count the sequences that decode on a rank."""
    return int(s.running[rank * r.stages : (rank + 1) * r.stages].sum())


@njit(cache=True)
def _admits(s: State, q: Requests, r: Rules, lane: int, beside: int) -> bool:
    """Whether the front of the queue can begin, with ``beside`` prompts that end in this step.

    What it leaves must last for a step of all that decode, or nobody would ever get on.
    """
    rank = lane // r.stages
    who = s.head[rank]
    if who == NOBODY or s.running[lane] + beside >= r.limit:
        return False
    growing = 1 if r.reserve else _decoding(s, r, rank) + beside + 1
    return bool(s.used[rank] + need(s, q, r, who) + growing <= r.room)


@njit(cache=True)
def _prefills(s: State, q: Requests, r: Rules, lane: int) -> bool:
    """Whether a lane has a prompt to go on with, or to begin."""
    if s.part[lane // r.stages] != NOBODY:
        return bool(s.running[lane] < r.limit)
    return bool(_admits(s, q, r, lane, 0))


@njit(cache=True)
def _join(s: State, q: Requests, r: Rules, lane: int, who: int, now: float) -> None:
    """Let a request whose prompt is done decode, or end where one token is all."""
    s.emitted[who] += 1
    s.joined[who] = s.step[lane]
    if np.isnan(s.first[who]):
        s.first[who] = now
    if s.emitted[who] >= q.output[who]:
        s.end[who] = now
        held = q.prompt[who] + (q.output[who] if r.reserve else s.emitted[who] - 1)
        s.used[lane // r.stages] -= float(held + r.each)
        return
    place = s.running[lane]
    s.heap_key[lane, place] = s.step[lane] + q.output[who] - s.emitted[who]
    s.heap_who[lane, place] = who
    s.running[lane] += 1
    lift(s.heap_key[lane], s.heap_who[lane], place)
    s.context[lane] += q.prompt[who] + s.emitted[who] - 1


@njit(cache=True)
def _prompts(
    s: State, q: Requests, r: Rules, t: Times, lane: int, room: int, ended: "Ints"
) -> "tuple[int, int, float]":
    """Fill a step with prompts; returns its tokens, how many prompts end with it (in ``ended``), and attention [s]."""
    rank, tokens, count, attention = lane // r.stages, 0, 0, 0.0
    # What another lane has begun may end here only where there is a place.
    while room > 0 and s.running[lane] + count < r.limit:
        if s.part[rank] == NOBODY:
            if not _admits(s, q, r, lane, count):
                break
            if not r.chunked and tokens > 0 and left(s, q, s.head[rank]) > room:
                break
            who = take_first(s, rank)
            s.used[rank] += need(s, q, r, who)
            s.order[who] = s.counters[0]
            s.counters[0] += 1
            s.part[rank] = who
        who = s.part[rank]
        piece = min(room, left(s, q, who))
        if piece > 0:
            attention += across(float(s.done[who]), float(piece), t.starts, t.chunks, t.prefill)
        s.done[who] += piece
        s.waiting[rank] -= piece
        tokens += piece
        room -= piece
        if left(s, q, who) > 0:
            break
        ended[count] = who
        count += 1
        s.part[rank] = NOBODY
    return tokens, count, attention


@njit(cache=True)
def _grow(s: State, q: Requests, r: Rules, lane: int, now: float) -> None:
    """Give each running sequence a token, and let those end that have all of theirs."""
    batch, rank = s.running[lane], lane // r.stages
    s.step[lane] += 1
    s.context[lane] += batch
    s.used[rank] += 0 if r.reserve else batch
    while s.running[lane] > 0 and s.heap_key[lane, 0] <= s.step[lane]:
        context, occupied = held(s, q, r, lane, s.heap_who[lane, 0])
        who = remove(s, lane, 0)
        s.context[lane] -= context
        s.used[rank] -= occupied
        s.end[who] = now


@njit(cache=True)
def _step(s: State, q: Requests, r: Rules, t: Times, lane: int, ended: "Ints") -> None:
    """Run one step of a lane."""
    rank = lane // r.stages
    while not r.reserve and s.running[lane] > 1 and s.used[rank] + s.running[lane] > r.room:
        _give_up(s, q, r, lane)
    batch = s.running[lane]
    if not r.mixed and _prefills(s, q, r, lane):
        batch = 0
    tokens, count, attention = 0, 0, 0.0
    if r.mixed or batch == 0:
        tokens, count, attention = _prompts(s, q, r, t, lane, r.budget - batch, ended)
    time = attention
    if tokens + batch > 0:
        time += along(float(tokens + batch), t.tokens, t.linear) + along(float(batch + count), t.rows, t.head)
    if batch > 0:
        time += across(float(batch), s.context[lane] / batch, t.batches, t.contexts, t.decode)
    now = s.clock[lane] + time
    s.gate[rank] = s.clock[lane] + time / r.stages
    s.clock[lane] = now
    s.counters[2] += 1
    if batch > 0:
        _grow(s, q, r, lane, now)
    for place in range(count):
        _join(s, q, r, lane, ended[place], now)


@njit(cache=True)
def _next(s: State, q: Requests, r: Rules, rank: int) -> int:
    """Lane of a rank whose step comes next; NOBODY where there is nothing to do. Its clock is when that is."""
    first = rank * r.stages
    idle = s.part[rank] == NOBODY
    for lane in range(first, first + r.stages):
        idle = idle and s.running[lane] == 0
    while idle and s.head[rank] != NOBODY and need(s, q, r, s.head[rank]) + 1 > r.room:
        # What does not fit into an empty cache never will.
        s.waiting[rank] -= left(s, q, take_first(s, rank))
        s.counters[3] += 1
    best = NOBODY
    for lane in range(first, first + r.stages):
        if s.running[lane] > 0 or _prefills(s, q, r, lane):
            s.clock[lane] = max(s.clock[lane], s.gate[rank])
            if best == NOBODY or s.clock[lane] < s.clock[best]:
                best = lane
    return best


@njit(cache=True)
def _advance(s: State, q: Requests, r: Rules, t: Times, until: float, ended: "Ints") -> None:
    """Run all steps that begin up to a moment."""
    for rank in range(len(s.gate)):
        lane = _next(s, q, r, rank)
        while lane != NOBODY and s.clock[lane] <= until:
            _step(s, q, r, t, lane, ended)
            lane = _next(s, q, r, rank)


@njit(cache=True)
def _busy(s: State, r: Rules, rank: int) -> int:
    """Count the requests that a rank has."""
    return int(s.queued[rank] + _decoding(s, r, rank))


@njit(cache=True)
def _chosen(s: State, r: Rules, draw: float) -> int:
    """Choose a rank; ties go to the next in turn."""
    ranks = len(s.gate)
    if r.router == DRAW:
        return int(draw * ranks)
    turn = s.counters[1] % ranks
    s.counters[1] += 1
    if r.router == TURN:
        return int(turn)
    best, least = turn, _busy(s, r, turn)
    for ahead in range(1, ranks):
        rank = (turn + ahead) % ranks
        one = _busy(s, r, rank)
        tokens = s.waiting[rank] - s.waiting[best] if r.router == TOKENS else 0
        if tokens < 0 or (tokens == 0 and one < least):
            best, least = rank, one
    return int(best)


@njit(cache=True)
def feed(s: State, q: Requests, r: Rules, t: Times, span: "tuple[int, int]") -> None:
    """Let the requests of a span arrive, each at a rank that the router chooses at that moment."""
    ended = np.empty(r.limit, np.int64)
    for who in range(span[0], span[1]):
        now = q.arrival[who]
        _advance(s, q, r, t, now, ended)
        rank = _chosen(s, r, q.draw[who])
        s.done[who] = q.prompt[who] if q.decoded[who] == 1 else min(q.cached[who], q.prompt[who] - 1)
        put_last(s, q, rank, who)
        for lane in range(rank * r.stages, (rank + 1) * r.stages):
            s.clock[lane] = max(s.clock[lane], now)


@njit(cache=True)
def look(s: State, q: Requests, r: Rules, t: Times, until: float) -> "tuple[int, int]":
    """Go on to a moment without arrivals; returns how many run and how many wait then."""
    ended = np.empty(r.limit, np.int64)
    _advance(s, q, r, t, until, ended)
    partly = np.count_nonzero(s.part != NOBODY)
    return int(s.running.sum() + partly), int(s.queued.sum())

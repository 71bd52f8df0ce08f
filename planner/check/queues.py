"""Tables, heaps and queues of the simulator, compiled by Numba."""

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from planner.check.lanes import NOBODY, Requests, Rules, State

if TYPE_CHECKING:
    from planner.numeric import Floats, Ints


@njit(cache=True)
def between(x: float, marks: "Floats") -> "tuple[int, float]":
    """Place of x among marks, and its part of the way to the next; beyond the last one the way goes on."""
    left = min(max(int(np.searchsorted(marks, x, side="right")) - 1, 0), len(marks) - 2)
    return left, max((x - marks[left]) / (marks[left + 1] - marks[left]), 0.0)


@njit(cache=True)
def along(x: float, marks: "Floats", table: "Floats") -> float:
    """Read a table of one column, (k,)."""
    left, part = between(x, marks)
    return float(table[left] + part * (table[left + 1] - table[left]))


@njit(cache=True)
def across(x: float, y: float, first: "Floats", second: "Floats", table: "Floats") -> float:
    """Read a table of two columns, (k, m)."""
    i, p = between(x, first)
    j, q = between(y, second)
    low = table[i, j] + q * (table[i, j + 1] - table[i, j])
    high = table[i + 1, j] + q * (table[i + 1, j + 1] - table[i + 1, j])
    return float(low + p * (high - low))


@njit(cache=True)
def lift(key: "Ints", who: "Ints", place: int) -> None:
    """Move an entry of a heap up to where it belongs."""
    while place > 0 and key[(place - 1) // 2] > key[place]:
        up = (place - 1) // 2
        key[up], key[place] = key[place], key[up]
        who[up], who[place] = who[place], who[up]
        place = up


@njit(cache=True)
def sink(key: "Ints", who: "Ints", place: int, count: int) -> None:
    """Move an entry of a heap of ``count`` down to where it belongs."""
    while 2 * place + 1 < count:
        least = 2 * place + 1
        if least + 1 < count and key[least + 1] < key[least]:
            least += 1
        if key[place] <= key[least]:
            return
        key[least], key[place] = key[place], key[least]
        who[least], who[place] = who[place], who[least]
        place = least


@njit(cache=True)
def remove(s: State, lane: int, place: int) -> int:
    """Take a sequence out of the heap."""
    key, who = s.heap_key[lane], s.heap_who[lane]
    out = who[place]
    s.running[lane] -= 1
    last = s.running[lane]
    key[place], who[place] = key[last], who[last]
    if place < last:
        lift(key, who, place)
        sink(key, who, place, last)
    return int(out)


@njit(cache=True)
def held(s: State, q: Requests, r: Rules, lane: int, who: int) -> "tuple[int, float]":
    """Tokens in the cache of a running sequence, and tokens that it occupies."""
    context = q.prompt[who] + s.emitted[who] + s.step[lane] - s.joined[who] - 1
    occupied = q.prompt[who] + q.output[who] if r.reserve else context
    return int(context), float(occupied + r.each)


@njit(cache=True)
def left(s: State, q: Requests, who: int) -> int:
    """Tokens that are left to compute before the next output token."""
    return int(q.prompt[who] + s.emitted[who] - s.done[who])


@njit(cache=True)
def need(s: State, q: Requests, r: Rules, who: int) -> float:
    """Tokens that admission must find."""
    return float(q.prompt[who] + (q.output[who] if r.reserve else s.emitted[who]) + r.each)


@njit(cache=True)
def put_first(s: State, q: Requests, rank: int, who: int) -> None:
    """Put a request at the front of the queue."""
    s.next[who] = s.head[rank]
    s.head[rank] = who
    if s.tail[rank] == NOBODY:
        s.tail[rank] = who
    s.queued[rank] += 1
    s.waiting[rank] += left(s, q, who)


@njit(cache=True)
def put_last(s: State, q: Requests, rank: int, who: int) -> None:
    """Put a request at the end of the queue."""
    s.next[who] = NOBODY
    if s.tail[rank] == NOBODY:
        s.head[rank] = who
    else:
        s.next[s.tail[rank]] = who
    s.tail[rank] = who
    s.queued[rank] += 1
    s.waiting[rank] += left(s, q, who)


@njit(cache=True)
def take_first(s: State, rank: int) -> int:
    """Take the front of the queue; its prompt is still to be computed."""
    who = s.head[rank]
    s.head[rank] = s.next[who]
    if s.head[rank] == NOBODY:
        s.tail[rank] = NOBODY
    s.queued[rank] -= 1
    return int(who)

"""Deadline work: offers of its own pool, or beside interactive work in the hours that this leaves."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from planner.engine.reasons import Reason
from planner.fleet.deadline import beside, dedicated, finish, hours, residence, run_time, spare_rate
from planner.fleet.pools import cheapest
from planner.numeric import Floats, Ints
from planner.plan.offers import Count, Offer, PoolChoice, Room, best
from planner.plan.subjects import Group, Member
from planner.replica.batching import tpot
from planner.replica.candidates import Subject, bench, evaluate, judge
from planner.replica.passes import BATCHES
from planner.workload.blend import busy_hours


def alone(subject: Subject, group: Group, room: Room, count: Count) -> list[Offer]:
    """Offers of a pool that runs the deadline work at its largest batch, as an offline engine does."""
    member = group.members[0]
    replicas = evaluate(subject, "mixed", room.largest)
    deadline, documents = float(member.numbers.deadline or 0.0), float(member.numbers.documents or 0)
    most = room.accelerators // replicas.size
    need, held = most + 1, np.flatnonzero(replicas.rejected == 0)
    need[held] = dedicated(replicas.operating.rows(held), subject.traffic, documents, deadline, most[held])
    rejected = replicas.rejected | np.where((replicas.rejected == 0) & (need > most), int(Reason.NODES), 0)
    count.add(rejected)
    fits = np.flatnonzero(rejected == 0)
    offers = (
        Offer(group, subject.chip.hardware, "together", (PoolChoice(replicas, int(row), int(need[row]), 0),))
        for row in fits[cheapest(replicas, fits, need[fits])]
    )
    return best(offers, room.reserve)


@dataclass(frozen=True, slots=True)
class Free:
    """What one free replica of an interactive pool does for a run while it keeps the pool's TPOT."""

    rate: float
    """Documents [req/s]; 0 where it could not even load the work."""
    last: float
    """Time that the longest document takes in it [s]."""


@lru_cache(maxsize=4096)
def free(pool: PoolChoice, work: Subject) -> Free:
    """Deadline work in one free replica of an interactive pool, which keeps its layout, budget and batch limit."""
    of = pool.replicas
    rows = tuple(np.array([int(column[pool.index])], np.int64) for column in (of.row, of.budget, of.limit))
    table, zero = of.machine.layouts, np.zeros(1, np.int64)
    only = judge(bench(work, table.rows(rows[0]), zero), "mixed", (zero, rows[1], rows[2]))
    if only.rejected[0]:
        return Free(0.0, float("inf"))
    limits = [one.tpot for one in of.subject.traffic.workloads if one.tpot is not None]
    each = tpot(only.tables.step, only.tables.stall, only.tables.rate)[0]
    good = (each <= min(limits, default=np.inf)) & (np.maximum(only.operating.batch_limit[0], 1.0) >= BATCHES)
    rates = np.where(good, only.tables.rate[0], 0.0)
    batch = min(BATCHES[int(np.argmax(rates))], float(work.traffic.workloads[0].documents or 1))
    last = residence(only.operating, work.traffic, np.array([batch]))
    return Free(float(min(rates.max(), only.operating.saturation[0])), float(last[0]))


@lru_cache(maxsize=4096)
def free_rate(pool: PoolChoice, work: Subject) -> float:
    """Deadline work that one free replica of an interactive pool does while it keeps the pool's TPOT [req/s]."""
    return free(pool, work).rate


def shared(offer: Offer, group: Group, work: Subject, accelerators: int) -> Offer | None:
    """Let the deadline member of ``group`` use the hours that an interactive offer leaves, on more replicas if need be.

    A replica counts as full at its load of the busiest hour, though it may carry more: the rest is the margin of the
    interactive promise, and what a run would take of it is not predicted for those who wait. None where the work does
    not fit the pool, or the pool not the inventory.
    """
    pool, run = offer.pools[0], group.deadline[0].numbers
    one = free(pool, work)
    left = (run.deadline or 0.0) - one.last
    if one.rate <= 0.0 or left <= 0.0 or len(offer.pools) > 1:
        return None
    traffic = pool.replicas.subject.traffic
    # The last document must have started when there is just time for the longest.
    run = replace(run, deadline=left)
    low, high = np.array([pool.count]), np.array([max(accelerators // pool.size, pool.count)])
    hourly = interactive_hours(group)
    need: Ints = beside(run, hourly, np.array([traffic.peak_rate / pool.count]), np.array([one.rate]), low, high)
    if need[0] > high[0]:
        return None
    return Offer(
        group, offer.hardware, "together", (PoolChoice(pool.replicas, pool.index, int(need[0]), 0),), pool.count
    )


def interactive_hours(group: Group) -> Floats:
    """Interactive rate of a group in each hour, (24,) [req/s]."""
    total: Floats = busy_hours([member.numbers for member in group.interactive]).sum(axis=0)
    return total


def run_end(offer: Offer, member: Member, work: Subject, scale: float = 1.0) -> float:
    """When the run of ``member`` ends under an offer, all times ``scale`` as long [s from its start]."""
    pool, run = offer.pools[0], member.numbers
    traffic = pool.replicas.subject.traffic
    if not offer.group.interactive:
        op = pool.replicas.operating.rows(np.array([pool.index]))
        return float(run_time(op, traffic, float(run.documents or 0), np.array([pool.count]))[0]) * scale
    carried = np.array([traffic.peak_rate / offer.interactive_count * pool.count / scale])
    one = free(pool, work)
    done = spare_rate(interactive_hours(offer.group), carried, np.array([pool.count]), np.array([one.rate / scale]))
    return finish(run, done[0] * 3600.0 * (hours(run) > 0.0)) + one.last * scale

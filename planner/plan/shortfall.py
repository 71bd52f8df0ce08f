"""Why there is no plan: what binds for each workload, and the nearest change that would free it."""

from collections.abc import Callable

import numpy as np

from planner.engine.layouts import LARGEST
from planner.engine.memory import kv_per_sequence
from planner.engine.reasons import Reason
from planner.fleet.deadline import residence
from planner.fleet.goodput import idle, workload_bins
from planner.fleet.pools import rows_of
from planner.numeric import Floats
from planner.plan import night
from planner.plan.answer import Change, Infeasible
from planner.plan.changes import changed, only
from planner.plan.offers import Count, Room, split, together
from planner.plan.scaling import carried
from planner.plan.search import Search, largest
from planner.plan.subjects import Group, Member, subject
from planner.replica.candidates import Role, evaluate
from planner.spec.catalog import Case

FINE = 1.02
"""Ratio of one step by which a promise is loosened."""
STEPS = 255
"""Most steps: a limit is loosened to FINE^STEPS = 156 times at most."""
SLACK = 16
"""Steps beyond the nearest promise of a workload alone that are tried beside the others."""
MOST_NODES = 16
"""Most times the nodes of an inventory that are tried."""
BOUNDLESS = 10**12
"""Accelerators of an inventory without limit."""

Carries = tuple[Callable[[int], bool], Callable[[int], bool]]
"""Whether the workload alone, and all of them together, have a plan at a step."""


def without_offer(case: Case, found: Search, member: Member) -> Infeasible:
    """Say what binds for a workload that no candidate can serve, and the nearest changes with which it has a plan.

    The changes were tried: with any one of them, the workload has a plan beside all others that have an offer, or,
    where these leave no room, alone.
    """
    name = member.spec.name
    reason = found.by_group[(name,)].binding
    served = {one for offer in found.offers for one in offer.group.names}
    alone, whole = only(case, [name]), only(case, [*served, name])
    nodes = None if reason in {Reason.TTFT, Reason.TPOT} else _nodes(alone, whole)
    binding, value, limit = str(reason.name).lower(), None, None
    nearest: list[Change] = []
    if reason in {Reason.SHARE, Reason.NODES, Reason.LINK_RATE} and (few := nodes or _boundless(alone, member)):
        binding, value, limit = "nodes", _number(few.to), _number(few.from_)
    elif not member.interactive and reason is Reason.NODES:
        binding, value, limit, nearest = _deadline(alone, whole, member)
    elif member.interactive and reason in {Reason.TTFT, Reason.TPOT, Reason.SHARE}:
        value, limit, nearest = _promise(alone, whole, member, reason)
    elif reason is Reason.MEMORY:
        value, limit = _memory(case, member)
    nearest += [nodes] if nodes else []
    return Infeasible(workload=name, binding=binding, value=value, limit=limit, nearest=tuple(nearest))


def _number(value: float | str | None) -> float | None:
    return value if isinstance(value, float) else None


def _first(holds: Callable[[int], bool], low: int, high: int) -> int | None:
    """Least number of [low, high] that holds, by doubling and halving; None where not even ``high`` does."""
    fails, reach = low - 1, low
    while not holds(reach):
        if reach >= high:
            return None
        fails, reach = reach, min(high, 2 * reach - low + 1)
    while reach - fails > 1:
        middle = (fails + reach) // 2
        fails, reach = (fails, middle) if holds(middle) else (middle, reach)
    return reach


def _least(carries: Carries, low: int, high: int, slack: int) -> int | None:
    """Least number with which the workload has a plan beside the others, within ``slack`` of where it has one alone."""
    alone, whole = carries
    first = _first(alone, low, high)
    if first is None:
        return None
    beside = _first(whole, first, first + slack)
    return first if beside is None else beside


def _nodes(alone: Case, whole: Case) -> Change | None:
    """Nodes of the inventory that lacks the fewest; None where even ``MOST_NODES`` times as many of none suffice."""
    out = []
    for stock in alone.scenario.cluster.inventory:
        field = f"cluster.inventory.{stock.hardware}.nodes"
        carries = _carries(alone, whole, field, lambda nodes: nodes)
        enough = _least(carries, stock.nodes + 1, stock.nodes * MOST_NODES, stock.nodes)
        if enough is not None:
            out.append(Change(field=field, from_=float(stock.nodes), to=float(enough), unit=""))
    return _nearest(out)


def _nearest(changes: list[Change]) -> Change | None:
    """Return the change that adds the least, the first of equals."""
    return min(changes, key=lambda one: (_number(one.to) or 0.0) - (_number(one.from_) or 0.0), default=None)


def _boundless(alone: Case, member: Member) -> Change | None:
    """Nodes that a workload alone takes at least of the inventory that lacks the fewest, however many that is.

    They are counted by accelerators and not placed, so they are not offered as a change that was tried. None where no
    number of nodes suffices.
    """
    out, group = [], Group((member,))
    room = Room(BOUNDLESS, LARGEST, alone.scenario.reserve.nodes)
    for stock in alone.scenario.cluster.inventory:
        served = subject(alone, stock, [member])
        ways = (together, split) if member.interactive else (night.alone,)
        taken = [offer.spared(room.reserve) for way in ways for offer in way(served, group, room, Count())]
        if taken:
            nodes = -(-min(taken) // alone.hardware[stock.hardware].node.accelerators)
            field = f"cluster.inventory.{stock.hardware}.nodes"
            out.append(Change(field=field, from_=float(stock.nodes), to=float(nodes), unit=""))
    return _nearest(out)


def _deadline(alone: Case, whole: Case, member: Member) -> tuple[str, float | None, float, list[Change]]:
    """Name a deadline that no number of replicas keeps: the least time that the longest document takes, and more."""
    limit, best = float(member.numbers.deadline or 0.0), np.inf
    for stock in alone.scenario.cluster.inventory:
        served = subject(alone, stock, [member])
        of = evaluate(served, "mixed", LARGEST)
        op = of.operating.rows(np.flatnonzero(of.rejected == 0))
        best = min(best, float(residence(op, served.traffic, np.ones(len(op.saturation))).min(initial=np.inf)))
    value = best if best < np.inf else None
    return "deadline", value, limit, _longer(alone, whole, "deadline", limit, max(value or 0.0, limit))


def _carries(alone: Case, whole: Case, field: str, value: Callable[[int], float]) -> Carries:
    """Whether each case has a plan with ``field`` at the value of a step."""
    return (
        lambda step: carried(changed(alone, field, value(step))),
        lambda step: carried(changed(whole, field, value(step))),
    )


def _longer(alone: Case, whole: Case, name: str, limit: float, start: float) -> list[Change]:
    """Nearest limit ``name`` of the promise from ``start`` [s] on, where there is one."""
    field = f"workloads.{alone.scenario.workloads[0].name}.promise.{name}"
    carries = _carries(alone, whole, field, lambda steps: start * FINE**steps)
    steps = _least(carries, 1, STEPS, SLACK)
    return [] if steps is None else [Change(field=field, from_=limit, to=start * FINE**steps, unit="s")]


def _looser(alone: Case, whole: Case, share: float) -> list[Change]:
    """Nearest share of the promise, in whole per cents below ``share``, where there is one."""
    field = f"workloads.{alone.scenario.workloads[0].name}.promise.share"

    def lower(percent: int) -> float:
        return round(share - percent / 100.0, 6)

    percent = _least(_carries(alone, whole, field, lower), 1, int(share * 100.0 - 1e-9), SLACK)
    return [] if percent is None else [Change(field=field, from_=share, to=lower(percent), unit="")]


def _promise(alone: Case, whole: Case, member: Member, reason: Reason) -> tuple[float | None, float, list[Change]]:
    """Best figure that an idle replica reaches, its limit, and the nearest promises that can be kept."""
    work = member.numbers
    value, limit, out = None, work.share, list[Change]()
    for name, bound, of in (("ttft", work.ttft or 0.0, Reason.TTFT), ("tpot", work.tpot or 0.0, Reason.TPOT)):
        if reason is of:
            value, limit = _idle(alone, member, reason), bound
        if reason in {of, Reason.SHARE}:
            out += _longer(alone, whole, name, bound, max(value or 0.0, bound))
    return value, limit, out + _looser(alone, whole, work.share)


def _idle(case: Case, member: Member, reason: Reason) -> float:
    """Least TTFT at the promised share, or TPOT, of an idle replica [s]."""
    best = np.inf
    for stock in case.scenario.cluster.inventory:
        served = subject(case, stock, [member])
        roles: tuple[Role, ...] = ("mixed", "prefill") if reason is Reason.TTFT else ("mixed", "decode")
        for role in roles:
            replicas = evaluate(served, role, largest(case, stock))
            rows = rows_of(replicas, np.flatnonzero(replicas.rejected == 0))
            state = idle(rows)
            if reason is Reason.TTFT:
                share, part, _ = workload_bins(rows.traffic, 0)
                best = min(best, float(_quantile(state.base[:, part], share, member.numbers.share).min(initial=np.inf)))
            else:
                best = min(best, float(state.step.min(initial=np.inf)))
    return best


def _quantile(base: Floats, share: Floats, level: float) -> Floats:
    """Quantile of each row's bins, (n,)."""
    order = np.argsort(base, axis=1)
    reached = np.cumsum(share[order], axis=1)
    place = np.argmax(reached + 1e-9 >= level, axis=1)
    found: Floats = np.take_along_axis(base, order, axis=1)[np.arange(len(base)), place]
    return found


def _memory(case: Case, member: Member) -> tuple[float | None, float | None]:
    """Least memory that one accelerator would need with the longest request, and what it has [B]."""
    need, room = np.inf, 0.0
    for stock in case.scenario.cluster.inventory:
        of = evaluate(subject(case, stock, [member]), "mixed", largest(case, stock))
        held, block = of.memory, of.subject.engine.caching.block
        longest = kv_per_sequence(of.machine, np.array([of.subject.traffic.longest]), block)[of.row, 0]
        total = held.weights + held.activations + held.reserve + held.adapters + longest
        legal = (of.rejected & ~int(Reason.MEMORY)) == 0
        fewest = float(np.min(total[legal], initial=np.inf))
        if fewest < need:
            need, room = fewest, float(held.capacity[0])
    return (need, room) if need < np.inf else (None, None)

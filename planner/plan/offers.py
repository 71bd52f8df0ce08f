"""Offers: ways to serve a group of workloads on one kind of accelerator, sized but not yet placed."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from planner.engine.reasons import Reason, tally
from planner.fleet.pools import cheapest_by_layout, size
from planner.numeric import Ints
from planner.plan.subjects import Group
from planner.replica.candidates import Replicas, Role, Subject, evaluate
from planner.replica.screening import survivors

SPLITS = (0.25, 0.5, 0.75)
"""Shares of the allowed misses that a prefill pool may spend; the decode pool keeps the rest."""
LINKS = 8
"""Most links that carry the KV of one request in parallel."""
KEPT = 10
"""Offers of a kind that go into the programme, fewest accelerators first."""


@dataclass(frozen=True, slots=True, eq=False)
class PoolChoice:
    """One pool of an offer: a candidate, and replicas without spares."""

    replicas: Replicas
    index: int
    count: int
    width: int
    """Accelerators that move one request's KV in parallel; 0 where nothing moves."""

    @property
    def size(self) -> int:
        """Accelerators of one replica."""
        table, row = self.replicas.machine.layouts, self.replicas.row[self.index]
        return int(table.tp[row] * table.pp[row] * table.dp[row])

    @property
    def accelerators(self) -> int:
        """Accelerators of the pool without spares."""
        return self.size * self.count

    @property
    def layout(self) -> str:
        """Layout in a few letters, for example ``TP4 EP4``."""
        table, row = self.replicas.machine.layouts, self.replicas.row[self.index]
        tp, pp, dp, ep = (int(axis[row]) for axis in (table.tp, table.pp, table.dp, table.ep))
        parts = [f"TP{tp}"] + [f"{name}{degree}" for name, degree in (("PP", pp), ("DP", dp), ("EP", ep)) if degree > 1]
        return " ".join(parts)


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """A way to serve a group."""

    group: Group
    hardware: str
    decision: str
    """``together`` or ``split``."""
    pools: tuple[PoolChoice, ...]
    interactive_count: int = 0
    """Of a pool with deadline work beside: replicas that the interactive work alone needs."""

    @property
    def accelerators(self) -> int:
        """Accelerators without spares."""
        return sum(pool.accelerators for pool in self.pools)

    @property
    def kind(self) -> str:
        """What a person would call a different plan."""
        names = "+".join(self.group.names)
        return f"{names}: {self.decision} {' | '.join(pool.layout for pool in self.pools)} on {self.hardware}"


@dataclass(slots=True)
class Count:
    """Candidates tried, and reasons against them."""

    tried: int = 0
    rejected: Counter[str] = field(default_factory=Counter)

    def add(self, rejected: Ints) -> None:
        """Count a column of bit masks."""
        self.tried += len(rejected)
        self.rejected.update(tally(rejected))


def _most(replicas: Replicas, accelerators: int) -> Ints:
    return accelerators // replicas.size


def together(subject: Subject, group: Group, accelerators: int, count: Count, largest: int) -> list[Offer]:
    """Offers of one mixed pool."""
    replicas = evaluate(subject, "mixed", largest)
    kept = survivors(replicas, _most(replicas, accelerators))
    plan, rejected = size(kept, _most(kept, accelerators))
    count.add(rejected)
    cheap = cheapest_by_layout(plan)
    offers = [
        Offer(group, subject.chip.hardware, "together", (PoolChoice(kept, int(cheap.index[i]), int(cheap.count[i]), 0),))
        for i in range(len(cheap))
    ]
    return best(offers)


def _screened(subject: Subject, role: Role, accelerators: int, largest: int) -> Replicas:
    replicas = evaluate(subject, role, largest)
    return survivors(replicas, _most(replicas, accelerators))


def split(subject: Subject, group: Group, accelerators: int, count: Count, largest: int) -> list[Offer]:
    """Offers of a prefill and a decode pool, joined over the frontier of both.

    KV moves over as many links as the prefill side has; a decode replica with fewer is not joined to it (ADR 6).
    """
    offers: list[Offer] = []
    prefills = _screened(subject, "prefill", accelerators, largest)
    decodes = _screened(subject, "decode", accelerators, largest)
    first_links, later_links = (
        np.minimum((side.machine.layouts.tp * side.machine.layouts.pp)[side.row], LINKS) for side in (prefills, decodes)
    )
    for part in SPLITS:
        plan, rejected = size(prefills, _most(prefills, accelerators), part, first_links)
        count.add(rejected)
        first = cheapest_by_layout(plan)
        plan, rejected = size(decodes, _most(decodes, accelerators), 1.0 - part)
        count.add(rejected)
        later = cheapest_by_layout(plan)
        total = (first.accelerators[:, np.newaxis] + later.accelerators).astype(float)
        narrow = later_links[later.index] < first.width[:, np.newaxis]
        total = np.where(narrow, np.inf, total)
        for flat in np.argsort(total, axis=None, kind="stable")[: 4 * KEPT]:
            i, j = divmod(int(flat), len(later))
            if total[i, j] > accelerators:
                break
            pools = (
                PoolChoice(prefills, int(first.index[i]), int(first.count[i]), int(first.width[i])),
                PoolChoice(decodes, int(later.index[j]), int(later.count[j]), int(first.width[i])),
            )
            offers.append(Offer(group, subject.chip.hardware, "split", pools))
    return best(offers)


def best(offers: Iterable[Offer]) -> list[Offer]:
    """Fewest accelerators first, one offer for each layout, ties in row order."""
    seen: dict[str, Offer] = {}
    for offer in sorted(offers, key=lambda offer: offer.accelerators):
        seen.setdefault(offer.kind, offer)
    return list(seen.values())[:KEPT]


def infeasible_reason(rejected: Counter[str]) -> Reason:
    """Name what binds: the reason that struck the candidates which came furthest, the last in the order of judging."""
    order = (Reason.SHARE, Reason.NODES, Reason.LINK_RATE, Reason.TPOT, Reason.TTFT, Reason.MEMORY)
    for reason in order:
        if rejected.get(str(reason.name).lower()):
            return reason
    return Reason.ENGINE

"""Offers: ways to serve a group of workloads on one kind of accelerator, sized but not yet placed."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from planner.engine.reasons import Reason, tally
from planner.fleet.pools import Ask, cheapest, size
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
FURTHEST = (
    *(Reason.SHARE, Reason.NODES, Reason.LINK_RATE, Reason.TPOT, Reason.TTFT, Reason.MEMORY, Reason.ENGINE),
    *(Reason.LINKS, Reason.EXPERTS, Reason.QUANT_BLOCK, Reason.WIDTH, Reason.HEADS),
)
"""Reasons from the last in the order of judging to the first: what one of them strikes has passed those behind it."""


@dataclass(frozen=True, slots=True)
class Room:
    """What an offer may take."""

    accelerators: int
    """Of one kind, in the whole cluster."""
    largest: int
    """Most accelerators of one replica."""
    reserve: int
    """Nodes that may be lost."""


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

    def spared(self, reserve: int) -> int:
        """Accelerators with the fewest spares against a loss of ``reserve`` nodes: one replica of each pool a node."""
        spares = reserve * sum(pool.size for pool in self.pools) if self.group.interactive else 0
        return self.accelerators + spares

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
    by_role: dict[Role, Counter[str]] = field(default_factory=dict)
    """Reasons against the candidates of each role."""
    alive: set[Role] = field(default_factory=set)
    """Roles in which a candidate is left."""

    def add(self, rejected: Ints, role: Role = "mixed") -> None:
        """Count a column of bit masks."""
        reasons = tally(rejected)
        self.tried += len(rejected)
        self.rejected.update(reasons)
        self.by_role.setdefault(role, Counter()).update(reasons)
        if (rejected == 0).any():
            self.alive.add(role)

    @property
    def binding(self) -> Reason:
        """What binds where there is no offer: of one pool and of a split, whichever came further.

        A split comes as far as the worse of its two sides; where both sides have a candidate, it is nodes that lack.
        """
        ways = [infeasible_reason(self.by_role.get("mixed", Counter()))]
        if "prefill" in self.by_role:
            sides = [infeasible_reason(self.by_role[r]) for r in ("prefill", "decode") if r not in self.alive]
            ways.append(max(sides, key=FURTHEST.index, default=Reason.NODES))
        return min(ways, key=FURTHEST.index)


def together(subject: Subject, group: Group, room: Room, count: Count) -> list[Offer]:
    """Offers of one mixed pool."""
    kept = _screened(subject, "mixed", room)
    every = np.arange(len(kept))
    ask = Ask(every, room.accelerators // kept.size, np.ones(len(kept)), np.zeros(len(kept), np.int64))
    held, replicas, rejected = size(kept, ask)
    count.add(rejected, "mixed")
    offers = (
        Offer(group, subject.chip.hardware, "together", (PoolChoice(kept, int(held.index[i]), int(replicas[i]), 0),))
        for i in cheapest(kept, held.index, replicas)
    )
    return best(offers, room.reserve)


def _screened(subject: Subject, role: Role, room: Room) -> Replicas:
    replicas = evaluate(subject, role, room.largest)
    return survivors(replicas, room.accelerators // replicas.size)


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """One role of a split, sized for each of ``SPLITS``."""

    replicas: Replicas
    index: Ints
    count: Ints
    part: Ints
    """Place in ``SPLITS``."""
    links: Ints
    """Accelerators that can move one request's KV in parallel."""

    def of(self, part: int) -> Ints:
        """Rows of a split, the cheapest of each layout."""
        rows = np.flatnonzero(self.part == part)
        return rows[cheapest(self.replicas, self.index[rows], self.count[rows])]

    def choice(self, row: int, width: int) -> PoolChoice:
        """Pool of a row whose KV moves over ``width`` links."""
        return PoolChoice(self.replicas, int(self.index[row]), int(self.count[row]), width)


def _side(subject: Subject, role: Role, room: Room, count: Count) -> _Side:
    replicas = _screened(subject, role, room)
    table, n = replicas.machine.layouts, len(replicas)
    links = np.minimum(table.tp * table.pp, LINKS)[replicas.row]
    shares = SPLITS if role == "prefill" else tuple(1.0 - part for part in SPLITS)
    alive = np.flatnonzero(replicas.rejected == 0)
    index, place = np.tile(alive, len(shares)), np.repeat(np.arange(len(shares)), len(alive))
    width = links[index] if role == "prefill" else np.zeros(len(index), np.int64)
    ask = Ask(index, room.accelerators // replicas.size[index], np.array(shares)[place], width)
    held, number, rejected = size(replicas, ask)
    worst = replicas.rejected.copy()
    out = rejected.reshape(len(shares), -1)
    worst[alive] = (
        np.where((out == 0).any(axis=0), 0, np.bitwise_or.reduce(out, axis=0)) if len(alive) else worst[alive]
    )
    count.add(worst, role)
    where = np.flatnonzero(rejected == 0)
    return _Side(replicas, held.index, number, place[where] if n else where, links[held.index])


def split(subject: Subject, group: Group, room: Room, count: Count) -> list[Offer]:
    """Offers of a prefill and a decode pool, joined over the frontier of both.

    The allowed misses are divided between the pools in a few ways. KV moves over as many links as the prefill side has;
    a decode replica with fewer is not joined to it.
    """
    offers: list[Offer] = []
    prefills = _side(subject, "prefill", room, count)
    decodes = _side(subject, "decode", room, count)
    first_size, later_size = prefills.replicas.size[prefills.index], decodes.replicas.size[decodes.index]
    for part in range(len(SPLITS)):
        first, later = prefills.of(part), decodes.of(part)
        if not len(first) or not len(later):
            continue
        ahead, behind = (prefills.count + room.reserve) * first_size, (decodes.count + room.reserve) * later_size
        needs = ahead[first][:, np.newaxis] + behind[later]
        narrow = decodes.links[later] < prefills.links[first][:, np.newaxis]
        total = np.where(narrow, np.inf, needs.astype(float))
        for flat in np.argsort(total, axis=None, kind="stable")[: 4 * KEPT]:
            i, j = divmod(int(flat), len(later))
            if total[i, j] > room.accelerators:
                break
            width = int(prefills.links[first[i]])
            pools = prefills.choice(int(first[i]), width), decodes.choice(int(later[j]), width)
            offers.append(Offer(group, subject.chip.hardware, "split", pools))
    return best(offers, room.reserve)


def best(offers: Iterable[Offer], reserve: int) -> list[Offer]:
    """Fewest accelerators first, spares included; one offer for each layout; ties in row order."""
    seen: dict[str, Offer] = {}
    for offer in sorted(offers, key=lambda offer: offer.spared(reserve)):
        seen.setdefault(offer.kind, offer)
    return list(seen.values())[:KEPT]


def infeasible_reason(rejected: Counter[str]) -> Reason:
    """Name what binds: the reason that struck the candidates which came furthest, the last in the order of judging."""
    struck = (reason for reason in FURTHEST if rejected.get(str(reason.name).lower()))
    return next(struck, Reason.ENGINE)

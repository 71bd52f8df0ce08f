"""Offers: joined frontiers equal a search over all pairs, and what binds is told by role."""

from collections import Counter
from functools import lru_cache

import numpy as np
import pytest

from planner.engine.reasons import Reason
from planner.fleet.pools import Ask, size
from planner.plan.changes import changed, only
from planner.plan.offers import LINKS, SPLITS, Count, Offer, Room, best, infeasible_reason, split, together
from planner.plan.subjects import Group, members, subject
from planner.replica.candidates import Replicas, Role, Subject, evaluate
from planner.replica.screening import survivors
from planner.spec.catalog import Case, Catalog, resolve

ROOM = Room(accelerators=16, largest=16, reserve=1)


@lru_cache(maxsize=1)
def answers() -> Case:
    """Search answers by day, in which a split pays."""
    catalog = Catalog()
    case = only(resolve(catalog.scenario("rtx-documents"), catalog), ["answers"])
    return changed(case, "workloads.answers.traffic.rate", 3.0)


def served() -> tuple[Subject, Group]:
    case = answers()
    (member,) = members(case)
    return subject(case, case.scenario.cluster.inventory[0], [member]), Group((member,))


def sized(replicas: Replicas, row: int, part: float, width: int) -> int | None:
    """Least replicas of one row alone."""
    most = ROOM.accelerators // int(replicas.size[row])
    ask = Ask(np.array([row]), np.array([most]), np.array([part]), np.array([width]))
    _, count, _ = size(replicas, ask)
    return int(count[0]) if len(count) else None


def links(replicas: Replicas, row: int) -> int:
    table, at = replicas.machine.layouts, replicas.row[row]
    return min(int(table.tp[at] * table.pp[at]), LINKS)


def test_joined_frontiers_equal_all_pairs() -> None:
    of, group = served()
    prefills = survivors(evaluate(of, "prefill", ROOM.largest), ROOM.accelerators // np.ones(1, np.int64))
    decodes = survivors(evaluate(of, "decode", ROOM.largest), ROOM.accelerators // np.ones(1, np.int64))
    least = np.inf
    for part in SPLITS:
        ahead = {}
        for row in np.flatnonzero(prefills.rejected == 0).tolist():
            width = links(prefills, row)
            count = sized(prefills, row, part, width)
            if count is not None:
                ahead[row] = (count, width)
        for later in np.flatnonzero(decodes.rejected == 0).tolist():
            count = sized(decodes, later, 1.0 - part, 0)
            if count is None:
                continue
            behind = (count + ROOM.reserve) * int(decodes.size[later])
            for row, (first, width) in ahead.items():
                total = (first + ROOM.reserve) * int(prefills.size[row]) + behind
                if links(decodes, later) >= width and total <= ROOM.accelerators:
                    least = min(least, total)
    joined = split(of, group, ROOM, Count())
    assert joined
    assert min(offer.spared(ROOM.reserve) for offer in joined) == least


def test_offers_come_cheapest_first_one_of_each_layout() -> None:
    of, group = served()
    for make in (together, split):
        offers = make(of, group, ROOM, Count())
        taken = [offer.spared(ROOM.reserve) for offer in offers]
        assert taken == sorted(taken)
        assert len({offer.kind for offer in offers}) == len(offers)
        assert all(offer.accelerators <= ROOM.accelerators for offer in offers)


def test_the_best_are_the_first_of_their_kind() -> None:
    of, group = served()
    offers = together(of, group, ROOM, Count())
    dearer = [Offer(o.group, o.hardware, o.decision, o.pools) for o in offers]
    kept = best([*offers, *dearer], ROOM.reserve)
    assert [id(offer) for offer in kept] == [id(offer) for offer in offers]


def test_candidates_are_counted_once_with_all_their_reasons() -> None:
    of, group = served()
    count = Count()
    together(of, group, ROOM, count)
    first = count.tried
    split(of, group, ROOM, count)
    roles: tuple[Role, ...] = ("mixed", "prefill", "decode")
    assert first == len(evaluate(of, "mixed", ROOM.largest))
    assert count.tried == sum(len(evaluate(of, role, ROOM.largest)) for role in roles)
    total: Counter[str] = Counter()
    for reasons in count.by_role.values():
        total.update(reasons)
    assert total == count.rejected


@pytest.mark.parametrize(
    ("struck", "reason"),
    [
        ({"share": 1, "memory": 9}, Reason.SHARE),
        ({"tpot": 1, "ttft": 4, "heads": 2}, Reason.TPOT),
        ({"quant_block": 3, "heads": 8}, Reason.QUANT_BLOCK),
        ({}, Reason.ENGINE),
    ],
)
def test_what_binds_is_what_struck_those_that_came_furthest(struck: dict[str, int], reason: Reason) -> None:
    assert infeasible_reason(Counter(struck)) is reason


def test_a_split_comes_as_far_as_its_worse_side() -> None:
    count = Count()
    count.add(np.array([int(Reason.TTFT)]), "mixed")
    count.add(np.array([int(Reason.TTFT), int(Reason.MEMORY)]), "prefill")
    count.add(np.array([0, int(Reason.SHARE)]), "decode")
    assert infeasible_reason(count.rejected) is Reason.SHARE
    assert count.binding is Reason.TTFT


def test_a_split_whose_sides_both_stand_lacks_nodes() -> None:
    count = Count()
    count.add(np.array([int(Reason.TPOT)]), "mixed")
    count.add(np.array([0]), "prefill")
    count.add(np.array([0]), "decode")
    assert count.binding is Reason.NODES

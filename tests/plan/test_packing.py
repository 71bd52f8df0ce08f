"""Placements hold what they must, and the search by hand misses nothing where sizes divide each other."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.numeric import Ints
from planner.plan import packing
from planner.plan.options import Need, Node, caps
from planner.plan.packing import Pack, as_nodes, faults, least_shared_nodes, left_after_loss, pack, search, spread


@st.composite
def pools(draw: st.DrawFn, sizes: tuple[int, ...] = (1, 2, 4), node: int = 8) -> list[Pack]:
    out = []
    for index in range(draw(st.integers(1, 4))):
        size = draw(st.sampled_from(sizes))
        out.append(Pack(f"p{index}", size, draw(st.integers(1, 12)), draw(st.integers(1, node // size))))
    return out


def is_sound(packs: list[Pack], placed: Ints, node: int) -> bool:
    sizes = np.array([one.size for one in packs])
    within = (placed <= np.array([[one.cap] for one in packs])).all() and (sizes @ placed <= node).all()
    return bool(within and (placed >= 0).all() and placed.sum(axis=1).tolist() == [one.replicas for one in packs])


@given(packs=pools(), nodes=st.integers(1, 8))
def test_a_placement_holds_all_replicas_within_caps_and_nodes(packs: list[Pack], nodes: int) -> None:
    for placed in (spread(packs, nodes, 8), search(packs, nodes, 8)):
        assert placed is None or is_sound(packs, placed, 8)


@given(packs=pools(), nodes=st.integers(1, 6))
@settings(max_examples=150)
def test_by_hand_is_as_good_as_exact_where_sizes_divide_each_other(packs: list[Pack], nodes: int) -> None:
    assert spread(packs, nodes, 8) is not None or search(packs, nodes, 8) is None


@given(packs=pools(sizes=(1, 2, 4)))
def test_without_caps_the_accelerators_are_enough(packs: list[Pack]) -> None:
    loose = [Pack(one.pool, one.size, one.replicas, 8 // one.size) for one in packs]
    placed = pack(loose, 100, 8)
    assert placed is not None
    assert placed.shape[1] == -(-sum(one.size * one.replicas for one in loose) // 8) == least_shared_nodes(loose, 8)


@given(packs=pools(sizes=(1, 2, 3, 4, 6), node=12))
@settings(max_examples=60)
def test_pools_on_nodes_of_their_own_always_fit(packs: list[Pack]) -> None:
    apart = sum(-(-one.replicas // one.cap) for one in packs)
    placed = pack(packs, apart, 12)
    assert placed is not None
    assert is_sound(packs, placed, 12)
    assert placed.any(axis=0).all()


def test_the_exact_search_finds_what_the_hand_misses() -> None:
    """Halves of six spread over both nodes leave twice six: one of four each, where 6 + 6 and 4 + 4 + 4 fit."""
    packs = [Pack("six", 6, 2, 2), Pack("four", 4, 3, 3)]
    assert spread(packs, 2, 12) is None
    found = search(packs, 2, 12)
    assert found is not None
    assert is_sound(packs, found, 12)
    placed = pack(packs, 9, 12)
    assert placed is not None
    assert placed.shape == (2, 2)


def test_a_search_that_is_too_large_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    packs = [Pack("six", 6, 2, 2), Pack("four", 4, 3, 3)]
    monkeypatch.setattr(packing, "SEARCH_CELLS", 3)
    assert search(packs, 2, 12) is None
    placed = pack(packs, 9, 12)
    assert placed is not None
    assert placed.shape == (2, 3)


@given(
    size=st.sampled_from([1, 2, 4, 8, 16]), count=st.integers(1, 20), reserve=st.integers(0, 3), spared=st.booleans()
)
def test_any_cap_survives_the_reserve_and_no_cap_is_beaten(
    size: int, count: int, reserve: int, *, spared: bool
) -> None:
    need = Need("p", "a", size, count, spared)
    ways = caps(need, 8, reserve)
    for way in ways:
        replicas = count + way.spares
        nodes = way.least_nodes or way.whole_nodes * 8 // size
        if way.least_nodes:
            placed = pack([Pack("p", size, replicas, way.cap)], nodes, 8)
            assert placed is not None
            placement = as_nodes([Pack("p", size, replicas, way.cap)], placed, "a")
        else:
            placement = (Node("a", size // 8, (("p", 1),)),) * replicas
        assert faults(placement, {"p": size}, {"a": 8}) == []
        assert left_after_loss(placement, reserve)["p"] >= (count if spared else count - reserve * way.cap)
    for one, other in product(ways, ways):
        if one is not other:
            assert (one.spares < other.spares) != (one.least_nodes < other.least_nodes)


@given(packs=pools(), reserve=st.integers(0, 3))
@settings(max_examples=60)
def test_the_worst_loss_is_the_worst_of_all_losses(packs: list[Pack], reserve: int) -> None:
    placed = pack(packs, 50, 8)
    assert placed is not None
    placement = as_nodes(packs, placed, "a")
    left = left_after_loss(placement, reserve)
    for row, one in enumerate(packs):
        worst = min(
            int(placed[row].sum() - placed[row, list(lost)].sum())
            for lost in combinations(range(placed.shape[1]), min(reserve, placed.shape[1]))
        )
        assert left[one.pool] == worst


def test_too_much_on_a_node_is_named() -> None:
    nodes = (Node("a", 1, (("p", 2),)), Node("a", 2, (("q", 1),)), Node("a", 1, (("p", 3),)))
    assert faults(nodes, {"p": 4, "q": 16}, {"a": 8}) == ["node 2 (a) holds 12 accelerators of 8"]

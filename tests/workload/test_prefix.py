"""Laws of hit rates against cache capacity."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.spec.scenario import Sharing
from planner.workload.prefix import hit_rate, lru_hits, power_law, replayed_hit_rate


@given(share=st.floats(0, 1), working_set=st.floats(1, 1e9), low=st.floats(0, 1e9), more=st.floats(0, 1e9))
def test_hits_rise_with_capacity_up_to_what_is_shared(
    share: float, working_set: float, low: float, more: float
) -> None:
    small, large = hit_rate(Sharing(prefix_share=share, working_set=working_set), [low, low + more])
    assert 0 <= small <= large <= share


def test_without_a_working_set_the_stated_rate_holds_at_any_capacity() -> None:
    assert hit_rate(Sharing(hit_rate=0.3), [0, 1e3, 1e9]).tolist() == [0.3] * 3


@given(capacity=st.floats(0, 400), exponent=st.floats(0, 2), count=st.integers(1, 300))
def test_a_cache_holds_what_fits(capacity: float, exponent: float, count: int) -> None:
    hits = lru_hits(power_law(count, exponent), capacity)
    assert hits.sum() == pytest.approx(min(capacity, count), rel=1e-6)
    assert ((hits >= 0) & (hits <= 1)).all()
    assert (np.diff(hits) <= 1e-12).all()


@given(capacity=st.integers(1, 49))
def test_equally_popular_items_are_found_in_proportion(capacity: int) -> None:
    np.testing.assert_allclose(lru_hits(np.full(50, 0.02), capacity), capacity / 50, rtol=1e-9)


def test_ches_approximation_agrees_with_a_replayed_cache() -> None:
    share = power_law(200, 1.0)
    draws = np.random.default_rng(2002).choice(200, size=100_000, p=share)
    replayed = replayed_hit_rate([[int(item)] for item in draws], [1] * len(draws), block=1, capacity=40)
    assert float(share @ lru_hits(share, 40)) == pytest.approx(replayed, abs=0.01)


def test_a_negative_capacity_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 0, not -1"):
        lru_hits([0.5, 0.5], -1)


def test_an_unlimited_cache_finds_every_repeated_prefix() -> None:
    conversation = [[1], [1, 2], [1, 2, 3], [9, 2, 3]]
    assert replayed_hit_rate(conversation, [10, 20, 30, 30], block=10) == pytest.approx(30 / 90)


@given(st.lists(st.lists(st.integers(0, 8), min_size=1, max_size=5, unique=True), min_size=1, max_size=30))
def test_a_larger_cache_never_finds_less(blocks: list[list[int]]) -> None:
    tokens = [4 * len(hashes) for hashes in blocks]
    single = [[hashes[0]] for hashes in blocks]
    found = [replayed_hit_rate(single, [4] * len(single), block=4, capacity=size) for size in (0, 1, 2, 4, 9)]
    assert found == sorted(found)
    assert replayed_hit_rate(blocks, tokens, block=4, capacity=0) == 0


def test_no_requests_find_nothing() -> None:
    assert replayed_hit_rate([], [], block=16) == 0

"""Laws of Erlang's formulas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.queueing.erlang import (
    erlang_b,
    erlang_c,
    halfin_whitt,
    mmc_wait,
    mmc_wait_quantile,
    mmc_wait_survival,
    safety_staffing,
    servers_for_probability,
    servers_for_wait,
    square_root_staffing,
)

loads = st.floats(0.01, 0.999)


def recursion(servers: int, load: float) -> float:
    """Erlang B by its recursion, server by server."""
    blocked = 1.0
    for k in range(1, servers + 1):
        blocked = load * blocked / (k + load * blocked)
    return blocked


@given(st.integers(0, 3000), st.floats(0.01, 10))
def test_the_integral_is_the_recursion(servers: int, share: float) -> None:
    load = max(servers, 1) * share
    assert float(erlang_b(servers, load)) == pytest.approx(recursion(servers, load), rel=1e-11, abs=1e-290)


def test_no_load_and_no_servers() -> None:
    assert erlang_b([0, 0, 3], [0.0, 2.0, 0.0]).tolist() == pytest.approx([1.0, 1.0, 0.0])
    assert float(erlang_c(3, 0.0)) == 0.0
    assert float(mmc_wait_quantile(0.99, 3, 0.0, 1.0)) == 0.0


@given(st.integers(1, 20_000), loads)
def test_waiting_is_a_probability_and_pooling_helps(servers: int, rho: float) -> None:
    alone, pooled = erlang_c([servers, 2 * servers], [servers * rho, 2 * servers * rho])
    assert 0 <= pooled <= alone <= 1
    apart, together = mmc_wait([servers, 2 * servers], [servers * rho, 2 * servers * rho], 1.0)
    assert together <= apart


@given(st.integers(1, 500), loads, loads)
def test_more_load_waits_longer(servers: int, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert mmc_wait(servers, servers * low, 1.0) <= mmc_wait(servers, servers * high, 1.0) * (1 + 1e-10)


@given(st.integers(1, 200), st.floats(0.3, 0.999), st.floats(0.01, 0.999))
def test_the_quantile_inverts_the_survival(servers: int, rho: float, level: float) -> None:
    at = mmc_wait_quantile(level, servers, servers * rho, 1.0)
    left = float(mmc_wait_survival(at, servers, servers * rho, 1.0))
    assert left == pytest.approx(1 - level, rel=1e-9) if at > 0 else left <= (1 - level) * (1 + 1e-9)


@given(st.floats(1e-3, 1e3))
def test_a_faster_clock_scales_the_wait(pace: float) -> None:
    assert float(mmc_wait(8, 6.4 * pace, 1 / pace)) * pace == pytest.approx(0.2860281, abs=1e-7)


def test_an_overloaded_line_only_grows() -> None:
    assert mmc_wait([1, 1], [1.0, 2.0], 1.0).tolist() == [np.inf, np.inf]
    assert mmc_wait_quantile(0.5, [1, 1], [1.0, 2.0], 1.0).tolist() == [np.inf, np.inf]
    assert mmc_wait_survival(1e9, 1, 2.0, 1.0) == 1.0


def test_columns_agree_with_single_rows() -> None:
    servers = np.arange(1, 60)
    rate = servers * np.linspace(0.1, 1.1, 59)
    whole = mmc_wait(servers, rate, 1.0)
    single = [float(mmc_wait(int(c), float(r), 1.0)) for c, r in zip(servers, rate, strict=True)]
    np.testing.assert_allclose(whole, single, rtol=1e-13)


@given(st.floats(1e-6, 1.0))
def test_safety_staffing_inverts_halfin_whitt(probability: float) -> None:
    assert float(halfin_whitt(safety_staffing(probability))) == pytest.approx(probability, rel=1e-9)


def test_the_square_root_rule_is_exact_for_many_servers() -> None:
    servers = square_root_staffing(1e4, 1.0)
    assert float(erlang_c(servers, 1e4)) == pytest.approx(float(halfin_whitt(1.0)), rel=0.01)


@given(st.lists(st.floats(0.1, 5000), min_size=1, max_size=20), st.floats(1e-4, 10))
def test_servers_for_a_wait_are_enough_and_one_fewer_are_not(rates: list[float], limit: float) -> None:
    rate = np.array(rates)
    servers = servers_for_wait(rate, 1.0, limit)
    assert (mmc_wait(servers, rate, 1.0) <= limit).all()
    fewer = np.maximum(servers - 1, 1)
    assert (mmc_wait(fewer, rate, 1.0) > limit)[servers > 1].all()


def test_a_row_out_of_reach_answers_one_more_than_the_most() -> None:
    assert servers_for_wait([5.0, 1.0], 1.0, 0.1, most=3).tolist() == [4, 3]
    assert servers_for_probability([5.0, 1.0], 0.1, most=3).tolist() == [4, 3]

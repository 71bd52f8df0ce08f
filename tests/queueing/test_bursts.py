"""Laws of arrivals whose rate moves, and of bursty gaps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.numeric import Floats
from planner.queueing.bursts import (
    TwoRates,
    arrival_shares,
    fit_two_rates,
    gamma_points,
    rate_mixture,
    rate_variance,
    split_dispersion,
    two_rates_wait,
)
from planner.queueing.erlang import erlang_c, mmc_wait
from planner.queueing.general import md1_wait, mg1_wait
from planner.queueing.renewal import gig_c_wait, gim_c_wait, synchrony


@given(st.floats(0.01, 1e4), st.floats(1.0, 500.0), st.sampled_from([1.0, 10.0, 60.0]), st.integers(2, 12))
def test_a_mixture_keeps_mean_and_variance(rate: float, dispersion: float, window: float, points: int) -> None:
    rates, shares = rate_mixture(rate, dispersion, window, points)
    assert rates.shape == shares.shape == (points,)
    assert (rates >= 0).all()
    assert (shares >= 0).all()
    assert float(shares.sum()) == pytest.approx(1.0, abs=1e-12)
    assert float(rates @ shares) == pytest.approx(rate, rel=1e-9)
    variance = float(rate_variance(rate, dispersion, window))
    assert float(((rates - rate) ** 2) @ shares) == pytest.approx(variance, rel=1e-7, abs=1e-20 * rate**2)
    assert float(arrival_shares(rates, shares).sum()) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("dispersion", [0.3, 1.0])
def test_a_steady_stream_has_one_rate(dispersion: float) -> None:
    rates, shares = rate_mixture(np.array([2.0, 5.0]), dispersion, 10.0)
    np.testing.assert_array_equal(rates, np.broadcast_to([2.0, 5.0], (7, 2)))
    np.testing.assert_allclose(shares.sum(axis=0), 1.0, rtol=1e-12)


def test_columns_agree_with_single_rows() -> None:
    rate, dispersion = np.array([0.0, 2.0, 50.0]), np.array([9.0, 1.0, 400.0])
    rates, shares = rate_mixture(rate, dispersion, 10.0)
    for i in range(3):
        one, part = rate_mixture(rate[i], dispersion[i], 10.0)
        np.testing.assert_allclose(rates[:, i], one, rtol=1e-12)
        np.testing.assert_allclose(shares[:, i], part, rtol=1e-12)
    assert (rates[:, 0] == 0).all()
    np.testing.assert_array_equal(arrival_shares(rates, shares)[:, 0], shares[:, 0])


def test_the_points_integrate_the_moments_of_the_gamma_distribution() -> None:
    values, shares = gamma_points(3.0, 18.0, points=5)  # shape 1/2, scale 6
    moments, expected = [], []
    moment = 1.0
    for k in range(1, 10):
        moment *= (0.5 + k - 1) * 6.0
        moments.append(float(values**k @ shares))
        expected.append(moment)
    np.testing.assert_allclose(moments, expected, rtol=1e-9)


@given(st.floats(1.0, 300.0), st.integers(1, 100))
def test_splitting_calms_a_stream(dispersion: float, ways: int) -> None:
    part = float(split_dispersion(dispersion, ways))
    assert 1 <= part <= dispersion * (1 + 1e-12)


@given(st.floats(0.1, 100), st.floats(0.05, 50), st.floats(1.05, 5.9))
def test_two_rates_meet_two_dispersions(rate: float, excess: float, growth: float) -> None:
    stream = fit_two_rates(rate, (10.0, 60.0), (1 + excess, 1 + excess * growth))
    assert float(stream.low) >= 0
    assert float(stream.rate) == pytest.approx(rate, rel=1e-9)
    assert float(stream.dispersion(10.0)) == pytest.approx(1 + excess, rel=1e-6)
    assert float(stream.dispersion(60.0)) == pytest.approx(1 + excess * growth, rel=1e-6)


def test_out_of_reach_the_longer_window_is_met() -> None:
    stream = fit_two_rates(5.0, (10.0, 60.0), ([1.0, 2.0, 2.0, 5.0], [1.0, 20.0, 0.5, 5.0]))
    np.testing.assert_allclose(stream.dispersion(60.0), [1.0, 20.0, 1.0, 5.0], rtol=1e-6)


def exponential_wait(stream: TwoRates) -> float:
    """Mean wait of MMPP/M/1 at unit service by the matrix-geometric method (Neuts 1981)."""
    up, down = float(stream.leave_low[0]), float(stream.leave_high[0])
    arrive = np.diag([float(stream.low[0]), float(stream.high[0])])
    turn = np.array([[-up, up], [down, -down]])
    eye = np.eye(2)
    ratio = np.zeros((2, 2))
    for _ in range(100_000):
        after: Floats = -(arrive + ratio @ ratio) @ np.linalg.inv(turn - arrive - eye)
        if np.abs(after - ratio).max() < 1e-15:
            break
        ratio = after
    total = np.linalg.inv(eye - ratio)
    empty = turn - arrive + ratio
    start = np.linalg.solve(np.column_stack([empty[:, 0], total.sum(axis=1)]).T, [0.0, 1.0])
    return float((start @ ratio @ ratio @ total @ total).sum() / stream.rate[0])


@pytest.mark.parametrize(
    "numbers", [(0.2, 0.9, 0.1, 0.3), (0.1, 2.0, 0.05, 0.2), (0.5, 0.5, 1.0, 1.0), (0.0, 3.0, 0.1, 0.5)]
)
def test_two_rates_agree_with_the_matrix_geometric_method(numbers: tuple[float, ...]) -> None:
    """Sixty points of Gauss and Laguerre stand in for exponential service: they share its first 119 moments."""
    stream = TwoRates(*(np.array([number]) for number in numbers))
    values, shares = np.polynomial.laguerre.laggauss(60)
    assert float(two_rates_wait(stream, values, shares)[0]) == pytest.approx(exponential_wait(stream), rel=1e-7)


@given(st.floats(0.05, 0.95), st.floats(0.0, 0.9))
def test_two_equal_rates_are_poisson(rate: float, lean: float) -> None:
    stream = TwoRates(np.array([rate]), np.array([rate]), np.array([0.1 + lean]), np.array([1.0 - lean]))
    wait = float(two_rates_wait(stream, [0.5, 1.5], [0.5, 0.5])[0])
    assert wait == pytest.approx(float(mg1_wait(rate, 1.0, 0.25)), rel=1e-8)


def test_bursts_wait_longer_and_overload_for_ever() -> None:
    stream = fit_two_rates(5.53, (10.0, 60.0), (3.86, 16.1))
    assert float(two_rates_wait(stream, [0.12], [1.0])) > 1.5 * float(md1_wait(5.53, 0.12))
    assert float(two_rates_wait(stream, [0.2], [1.0])) == np.inf


@given(st.integers(1, 400), st.floats(0.05, 0.99))
def test_gaps_of_scv_one_are_poisson(servers: int, rho: float) -> None:
    waits = gim_c_wait(servers, servers * rho, 1.0, 1.0)
    assert float(waits.probability) == pytest.approx(float(erlang_c(servers, servers * rho)), rel=1e-7, abs=1e-250)
    assert float(waits.mean) == pytest.approx(float(mmc_wait(servers, servers * rho, 1.0)), rel=1e-7, abs=1e-250)


@given(st.integers(1, 64), st.floats(0.1, 0.97), st.floats(0.0, 20.0), st.floats(0.0, 20.0))
def test_burstier_gaps_wait_longer(servers: int, rho: float, one: float, other: float) -> None:
    low, high = sorted((one, other))
    waits = gim_c_wait(servers, servers * rho, 1.0, [low, high])
    assert waits.mean[0] <= waits.mean[1] * (1 + 1e-6) + 1e-300
    assert ((waits.probability >= 0) & (waits.probability <= 1)).all()


@given(st.integers(1, 64), st.floats(0.1, 0.97), st.floats(0.0, 20.0), st.floats(0.0, 4.0))
def test_general_waits_are_waits(servers: int, rho: float, gaps: float, service: float) -> None:
    waits = gig_c_wait(servers, servers * rho, 1.0, gaps, service)
    assert float(waits.mean) >= 0
    assert 0 <= float(waits.probability) <= 1


@given(st.floats(0.05, 0.97), st.floats(0.0, 5.0))
def test_general_waits_are_exact_for_poisson_gaps_at_one_server(rho: float, service: float) -> None:
    assert float(gig_c_wait(1, rho, 1.0, 1.0, service).mean) == pytest.approx(
        float(mg1_wait(rho, 1.0, service)), rel=1e-7
    )


@given(st.integers(1, 40), st.floats(0.1, 0.97), st.floats(0.0, 16.0))
def test_general_waits_are_exact_for_exponential_service(servers: int, rho: float, gaps: float) -> None:
    exact, general = gim_c_wait(servers, servers * rho, 1.0, gaps), gig_c_wait(servers, servers * rho, 1.0, gaps, 1.0)
    assert float(general.mean) == pytest.approx(float(exact.mean), rel=1e-7, abs=1e-200)


def test_gaps_in_columns_agree_with_single_rows() -> None:
    servers, gaps = np.array([1, 8, 30]), np.array([0.5, 4.0, 16.0])
    whole = gig_c_wait(servers, servers * 0.8, 1.0, gaps, 0.25).mean
    single = [float(gig_c_wait(c, c * 0.8, 1.0, g, 0.25).mean) for c, g in zip(servers, gaps, strict=True)]
    np.testing.assert_allclose(whole, single, rtol=1e-9)


def test_no_gaps_and_no_capacity() -> None:
    waits = gig_c_wait(2, [0.0, 2.0], 1.0, 4.0, 0.25)
    assert waits.mean.tolist() == [0.0, np.inf]
    assert waits.probability.tolist() == [0.0, 1.0]


def test_constant_service_keeps_a_burst_together() -> None:
    falling = synchrony([0.0, 0.1, 1.0, 5.0, 50.0])
    assert float(falling[0]) == 2.0
    assert (np.diff(falling) < 0).all()

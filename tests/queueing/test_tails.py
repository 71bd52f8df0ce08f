"""Distributions of the wait against exact series and against each other."""

from decimal import Decimal, localcontext
from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.queueing.general import mg1_wait
from planner.queueing.tails import invert, mg1_wait_quantile, mg1_wait_survival, wait_quantile, wait_survival


def constant_service_survival(time: float, rho: float) -> float:
    """Erlang's alternating series for M/D/1, in as many digits as it needs."""
    with localcontext() as context:
        context.prec = 80
        at, load = Decimal(time), Decimal(rho)
        total = Decimal(0)
        for k in range(int(time) + 1):
            x = load * (at - k)
            total += (-x) ** k / factorial(k) * x.exp()
        return float(1 - (1 - load) * total)


@pytest.mark.parametrize("rho", [0.1, 0.5, 0.8, 0.95])
def test_inversion_agrees_with_the_series_of_constant_service(rho: float) -> None:
    time = np.array([0.01, 0.3, 0.8, 0.95, 1.0, 1.05, 1.7, 3.2, 5.5, 20.0])
    stated = np.array([1e-7, 1e-7, 1e-6, 3e-5, 5e-4, 3e-5, 3e-5, 1e-5, 1e-7, 1e-7])
    exact = [constant_service_survival(float(t), rho) for t in time]
    assert (np.abs(mg1_wait_survival(time, rho, [1.0], [1.0]) - exact) <= stated).all()


@given(st.floats(0.05, 0.98), st.floats(0.01, 50))
def test_inversion_agrees_with_exponential_service(rho: float, time: float) -> None:
    survival = invert(lambda s: (1 - (1 - rho) * s / (s - rho * (1 - 1 / (1 + s)))) / s, time)
    assert float(survival) == pytest.approx(rho * np.exp(-(1 - rho) * time), abs=2e-8)


def test_the_area_under_the_survival_is_the_mean_wait() -> None:
    values, shares = np.array([0.2, 1.0, 4.0]), np.array([0.5, 0.4, 0.1])
    mean, second = values @ shares, values**2 @ shares
    rate = 0.7 / mean
    time = np.linspace(0.0, 200.0, 20_001)
    survival = mg1_wait_survival(time, rate, values, shares)
    area = float(((survival[1:] + survival[:-1]) / 2).sum() * 0.01)
    assert area == pytest.approx(float(mg1_wait(rate, mean, second / mean**2 - 1)), rel=1e-4)


def test_columns_agree_with_single_rows() -> None:
    rate = np.array([0.2, 0.5, 0.9, 1.5])
    values = np.array([[1.0, 0.5], [1.0, 2.0], [0.3, 1.0], [1.0, 1.0]])
    shares = np.array([[0.5, 0.5], [0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    whole = mg1_wait_survival(2.0, rate, values, shares)
    single = [float(mg1_wait_survival(2.0, rate[i], values[i], shares[i])) for i in range(4)]
    np.testing.assert_allclose(whole, single, rtol=1e-12)
    quantiles = mg1_wait_quantile(0.9, rate, values, shares)
    expected = [float(mg1_wait_quantile(0.9, rate[i], values[i], shares[i])) for i in range(4)]
    np.testing.assert_allclose(quantiles, expected, rtol=1e-9)
    assert whole[3] == 1.0
    assert quantiles[3] == np.inf


@given(st.floats(0.2, 0.95), st.floats(0.5, 0.999))
def test_the_quantile_inverts_the_survival(rho: float, level: float) -> None:
    values, shares = [0.5, 1.25, 2.0], [0.5, 0.2, 0.3]
    at = float(mg1_wait_quantile(level, rho / 1.1, values, shares))
    left = float(mg1_wait_survival(at, rho / 1.1, values, shares))
    assert left == pytest.approx(1 - level, abs=1e-6) if at > 0 else left <= 1 - level + 1e-12


def test_an_idle_server_makes_nobody_wait() -> None:
    assert float(mg1_wait_survival(0.0, 0.0, [1.0], [1.0])) == 0.0
    assert float(mg1_wait_survival(1.0, 0.0, [1.0], [1.0])) == pytest.approx(0.0, abs=1e-8)
    assert float(mg1_wait_quantile(0.99, 0.0, [1.0], [1.0])) == 0.0
    assert float(wait_survival(1.0, 0.0, 0.0)) == 0.0
    assert float(wait_quantile(0.99, 0.0, 0.0)) == 0.0


@given(st.floats(0.01, 100), st.floats(0.05, 1), st.floats(0.01, 0.999))
def test_the_exponential_tail_is_its_own_inverse(mean: float, probability: float, level: float) -> None:
    at = float(wait_quantile(level, mean, probability))
    left = float(wait_survival(at, mean, probability))
    assert left == pytest.approx(1 - level, rel=1e-9) if at > 0 else left <= 1 - level + 1e-12


def test_an_endless_wait_is_longer_than_any_time() -> None:
    assert float(wait_survival(1e9, np.inf, 1.0)) == 1.0
    assert float(wait_quantile(0.5, np.inf, 1.0)) == np.inf

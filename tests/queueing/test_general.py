"""Laws of the mean waits beyond exponential service, and of their neighbours in other modules."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.queueing.bulk import bulk_wait
from planner.queueing.erlang import mmc_wait
from planner.queueing.general import (
    allen_cunneen,
    kingman,
    md1_wait,
    mg1_vacation_wait,
    mg1_wait,
    mg_c_wait,
    mm1_wait,
    priority_waits,
    residual_life,
    sakasegawa,
)
from planner.queueing.parallel import crossover, pipeline_latency, tensor_latency
from planner.queueing.routing import choices_wait

loads = st.floats(0.01, 0.98)
scvs = st.floats(0.0, 20.0)


@given(loads, scvs)
def test_approximations_are_exact_for_poisson_arrivals_at_one_server(rho: float, scv: float) -> None:
    exact = float(mg1_wait(rho, 1.0, scv))
    for form in (allen_cunneen, sakasegawa):
        assert float(form(1, rho, 1.0, 1.0, scv)) == pytest.approx(exact, rel=1e-9)
    assert float(kingman(rho, 1.0, 1.0, scv)) == pytest.approx(exact, rel=1e-9)
    assert float(mg_c_wait(1, rho, 1.0, scv)) == pytest.approx(exact, rel=1e-9)


@given(st.integers(1, 200), loads)
def test_constant_service_waits_between_half_and_all_of_exponential(servers: int, rho: float) -> None:
    share = mg_c_wait(servers, servers * rho, 1.0, 0.0) / mmc_wait(servers, servers * rho, 1.0)
    assert 0.5 - 1e-12 <= share <= 1 + 1e-12


def test_at_capacity_waits_are_infinite() -> None:
    full = [mm1_wait(1.0, 1.0), md1_wait(2.0, 1.0), kingman(1.0, 1.0, 1.0, 1.0), sakasegawa(2, 2.0, 1.0, 1.0, 1.0)]
    full += [bulk_wait(8.0, 1.0, 8), choices_wait(1.0, 1.0), mg_c_wait(2, 2.0, 1.0, 0.0), tensor_latency(2.0, 1.0, 2.0)]
    assert np.isinf(full).all()


@given(st.lists(st.tuples(st.floats(0.01, 0.2), st.floats(0.1, 2.0), scvs), min_size=1, max_size=5))
def test_priorities_conserve_the_load_weighted_wait(classes: list[tuple[float, float, float]]) -> None:
    """Kleinrock's conservation law: the wait weighted by load does not depend on the order of the classes."""
    rate, service, scv = (np.array(column) for column in zip(*classes, strict=True))
    load = rate * service
    if load.sum() >= 0.99:
        rate, load = rate * 0.9 / load.sum(), load * 0.9 / load.sum()
    waits = priority_waits(rate, service, scv)
    common = (rate * service**2 * (1 + scv)).sum() / 2 / (1 - load.sum())
    assert float((waits * load).sum() / load.sum()) == pytest.approx(common, rel=1e-9)


def test_the_first_class_is_served_whatever_the_others_offer() -> None:
    """An overloaded low class keeps the server always busy, and the first class waits at most for its residual."""
    waits = priority_waits(np.array([[0.5], [5.0]]), 1.0, 0.0)
    assert waits[:, 0].tolist() == [1.0, np.inf]


def test_residual_of_nothing_is_nothing() -> None:
    assert residual_life([0.0, 2.0], [0.0, 4.0]).tolist() == [0.0, 1.0]


@given(loads)
def test_a_bulk_of_one_is_constant_service_with_a_vacation(rho: float) -> None:
    vacation = float(mg1_vacation_wait(rho, 1.0, 0.0, 1.0, 1.0))
    assert float(bulk_wait(rho, 1.0, 1)) == pytest.approx(vacation, rel=1e-9)


@given(st.integers(1, 12), st.floats(0.05, 0.9))
def test_the_bulk_queue_agrees_with_its_own_chain(capacity: int, rho: float) -> None:
    """The stationary queue at the looks of the server, iterated to rest."""
    mean = capacity * rho
    size = 600
    logs = np.cumsum(np.log(mean / np.arange(1, size)))
    arrivals = np.exp(-mean + np.concatenate([[0.0], logs]))
    left = np.zeros(size)
    left[0] = 1.0
    for _ in range(2000):
        present = np.convolve(left, arrivals)[:size]
        after = np.append(present[capacity:], np.zeros(capacity))
        after[0] += present[:capacity].sum()
        if np.abs(after - left).max() < 1e-13:
            break
        left = after
    expected = 0.5 + float(left @ np.arange(size)) / mean
    assert float(bulk_wait(mean, 1.0, capacity)) == pytest.approx(expected, rel=1e-6)


def test_a_wide_bulk_leaves_only_the_residual() -> None:
    np.testing.assert_allclose(bulk_wait([0.0, 3.0, 100.0], 0.5, 256), 0.25, rtol=1e-9)


@given(st.floats(1.01, 1.99))
def test_both_ways_of_splitting_tie_at_the_crossover(speedup: float) -> None:
    load = float(crossover(speedup))
    assert 0 < load < speedup
    assert float(pipeline_latency(load, 1.0, 2)) == pytest.approx(float(tensor_latency(load, 1.0, speedup)), rel=1e-9)


@given(loads)
def test_more_choices_wait_less(rho: float) -> None:
    waits = [float(choices_wait(rho, 1.0, choices)) for choices in (2, 3, 5)]
    assert float(mm1_wait(rho, 1.0)) >= waits[0] >= waits[1] >= waits[2] >= 0
